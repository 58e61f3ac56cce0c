"""Command lines and images that start an engine, as draft fields with their places."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from capcheck.deployment import ARGS, ENV, FieldPath, flatten
from capcheck.source import Mapping, Node, Scalar, ScalarType, to_plain
from capcheck.source import Sequence as SequenceNode
from capcheck.unrendered import unrendered_in, unresolved_why
from capcheck.values import Origin, Place, Value, derived
from capcheck.words import Command, Word

if TYPE_CHECKING:
    from capcheck.argv import ArgvOption
    from capcheck.engine import Engine, Image, Launch
    from capcheck.options import Version

__all__ = [
    "OPEN_ARGS", "Started", "argument_path", "command_of", "node_of", "read_commands",
    "unrendered_in", "unresolved_why", "word_value",
]  # fmt: skip

OPEN_ARGS: FieldPath = ("engine", "more")  # arguments that could not be resolved
_ENV_WITH_VALUE = frozenset({"-u", "--unset", "-C", "--chdir"})
Fields = dict[FieldPath, Value[Node]]


class Started(NamedTuple):
    """The engine that a command or image starts, and what its words say.

    `fields` hold engine.name, engine.version, engine.args and what the command itself puts into
    engine.env. `servers`: how many servers the commands start, branches counted once.
    """

    engine: Engine
    image: Image | None
    fields: Fields
    place: Place  # of the command, or of the image that starts by itself
    servers: int
    places: dict[FieldPath, Place]  # of the options' names


class _Start(NamedTuple):
    command: Command
    engine: Engine
    launch: Launch


def node_of(plain: Any, place: Place) -> Node:
    """Plain data as nodes that all stand at one place."""
    if isinstance(plain, dict):
        entries = tuple(
            (Scalar(str(key), "text", "plain", place), node_of(child, place))
            for key, child in plain.items()
        )
        return Mapping(entries, place)
    if isinstance(plain, list):
        return SequenceNode(tuple(node_of(item, place) for item in plain), place)
    if plain is None:
        return Scalar("null", "null", "plain", place)
    if isinstance(plain, bool):
        return Scalar("true" if plain else "false", "boolean", "plain", place)
    kind: ScalarType = "text"
    if isinstance(plain, (int, float)):
        kind = "integer" if isinstance(plain, int) else "number"
    return Scalar(str(plain), kind, "plain", place)


def command_of(words: Sequence[Word], place: Place) -> Command:
    """A command that is given as a list of words."""
    return Command(tuple(words), place)


def argument_path(name: str) -> FieldPath:
    """Where an engine's option goes, whether it is spelled with dashes, underscores or dots."""
    return (*ARGS, *name.replace("-", "_").split("."))


def word_value(word: Word, name: str) -> Value[Node]:
    """A word as a value: unknown when a variable in it could not be resolved."""
    origin = Origin("written", word.place, word=name)
    if word.unresolved:
        return Value((), origin._replace(why=unresolved_why(word.unresolved)))
    if word.defaulted:
        shown = ", ".join(f"${{{variable}}}" for variable in word.defaulted)
        origin = origin._replace(why=f"the default of {shown}")
    node: Node = Scalar(word.text, "text", "double" if word.quoted else "plain", word.place)
    text = word.text.strip()
    if text[:1] in ("{", "[") and text[-1:] in ("}", "]"):
        with suppress(ValueError, RecursionError):  # the option's reader says what is wrong
            node = node_of(json.loads(text), word.place)
    return Value((node,), origin)


def read_commands(
    engines: Sequence[Engine],
    commands: Iterable[Command],
    image: Word | None,
    *,
    whole: bool = True,
) -> Started | None:
    """The first command that starts a known engine, else what the image itself starts.

    `whole` is False when the words are only the arguments of the image's entry point.
    """
    commands = tuple(commands)
    found = _image(engines, image)
    starts = _starts(engines, commands) if whole else _entry_point(commands, image, found)
    if not starts:
        return None
    first = starts[0]
    of_image = found[1] if found is not None and found[0] is first.engine else None
    version = _version(first.engine, commands if whole else (), image, of_image)
    release = _release(first.engine, version)
    same = [start for start in starts if start.engine is first.engine]
    all_fields = [_start_fields(start, release) for start in same]
    fields = all_fields[0]
    servers = sum(1 for start in same if not start.command.conditional)
    if first.command.conditional:
        fields, servers = _in_doubt(all_fields), 1
    place = first.command.place
    name = derived(node_of(first.engine.name, place), place, "the command starts it")
    fields = {("engine", "name"): name, ("engine", "version"): version, **fields}
    return Started(first.engine, of_image, fields, place, servers, _name_places(first, release))


def _image(engines: Sequence[Engine], image: Word | None) -> tuple[Engine, Image] | None:
    """The engine that an image is of."""
    if image is not None:
        for engine in engines:
            claimed = engine.image(image.text)
            if claimed is not None:
                return engine, claimed
    return None


def _starts(engines: Sequence[Engine], commands: Iterable[Command]) -> list[_Start]:
    starts = []
    for command in commands:
        for engine in engines:
            launch = engine.launch(command.words, None)
            if launch is not None:
                starts.append(_Start(command, engine, launch))
                break
    return starts


def _entry_point(
    commands: Sequence[Command], image: Word | None, found: tuple[Engine, Image] | None
) -> list[_Start]:
    """What the image starts with the words as arguments."""
    if found is None or image is None:
        return []
    command = commands[0] if commands else Command((), image.place)
    launch = found[0].launch(command.words, found[1])
    return [] if launch is None else [_Start(command, found[0], launch)]


def _version(
    engine: Engine, commands: Sequence[Command], image: Word | None, claimed: Image | None
) -> Value[Node]:
    """The release that a command installs, else that of the image."""
    from capcheck.installs import installed

    version = installed(commands, (engine.name, *engine.names))
    if version is not None:
        return version
    place = image.place if image is not None else commands[0].place if commands else Place("")
    origin = Origin("written", place, word="image")
    if image is None:
        return Value((), origin._replace(why="no image is named"))
    if image.unresolved:
        return Value((), origin._replace(why=unresolved_why(image.unresolved)))
    if claimed is None:
        return Value((), origin._replace(why=f"the image {image.text} does not tell the release"))
    if claimed.version is None:
        return Value((), origin._replace(why=claimed.why))
    start = image.text.rfind(claimed.version)
    if start >= 0:
        place = image.part(start, start + len(claimed.version))
    node = Scalar(claimed.version, "text", "plain", place)
    return Value((node,), origin._replace(place=place))


def _release(engine: Engine, version: Value[Node]) -> Version | None:
    """The release that names and prefixes of options are looked up in."""
    node = version.either(None)
    if not isinstance(node, Scalar):
        return None
    releases = engine.releases(node.text, "")
    return releases[0].version if len(releases) == 1 and releases[0].known else None


def _start_fields(start: _Start, release: Version | None) -> Fields:
    """The options of one command, and its own part of the environment."""
    fields: Fields = {}
    for name, word in start.command.environment:
        fields[(*ENV, name)] = word_value(word, name)
    for name, word in _given_by_env(start.command.words):
        fields[(*ENV, name)] = word_value(word, name)
    return {**fields, **_options(start.engine, start.launch, release)}


def _given_by_env(words: Sequence[Word]) -> Iterator[tuple[str, Word]]:
    """The variables that `env NAME=value command` sets."""
    if not words or words[0].text.rpartition("/")[2] != "env":
        return
    rest = iter(words[1:])
    for word in rest:
        name, equals, text = word.text.partition("=")
        if word.text in _ENV_WITH_VALUE:
            next(rest, None)
        elif not word.text.startswith("-"):
            if not equals or not name.isidentifier():
                return
            start = len(name) + 1
            yield name, word._replace(text=text, place=word.part(start, len(word.text)))


def _options(engine: Engine, launch: Launch, release: Version | None) -> Fields:
    from capcheck.argv import read_argv

    table = engine.options
    if table is None:
        return {}
    argv = read_argv(launch.arguments, table, release)
    fields: Fields = {}
    for option in argv.options:
        found = _option(option)
        if "." not in option.name:  # the last of several counts, whole
            unit = next(iter(found))[: len(ARGS) + 1]
            fields = {path: value for path, value in fields.items() if path[: len(unit)] != unit}
        fields.update(found)
    for place, word in enumerate(argv.positionals):
        if place == 0 and launch.positional:
            fields[(*ARGS, launch.positional)] = word_value(word, launch.positional)
        elif word.unresolved:
            # A word that is a variable as a whole may hold any number of arguments.
            why = unresolved_why(word.unresolved)
            fields[OPEN_ARGS] = Value((), Origin("written", word.place, word=word.text, why=why))
        elif word is launch.arguments[0]:
            # Nothing takes it: the engine reads it as an option that it does not have.
            true = node_of(True, word.place)
            fields[(*ARGS, word.text)] = Value(
                (true,), Origin("written", word.place, word=word.text)
            )
    return fields


def _name_places(start: _Start, release: Version | None) -> dict[FieldPath, Place]:
    """Where the names of the options stand; of an option given twice the last."""
    from capcheck.argv import read_argv

    if start.engine.options is None:
        return {}
    options = read_argv(start.launch.arguments, start.engine.options, release).options
    names = ((argument_path(one.name or one.written.lstrip("-")), one.place) for one in options)
    return {path[: len(ARGS) + 1]: place for path, place in names}


def _option(option: ArgvOption) -> Fields:
    """One option as fields: JSON as one for each of its leaves."""
    path = argument_path(option.name or option.written.lstrip("-"))
    value = option.value
    if isinstance(value, bool):
        origin = Origin("written", option.place, word=option.written)
        return {path: Value((node_of(value, option.place),), origin)}
    if not isinstance(value, Word):
        origin = Origin("written", option.value_place, word=option.written)
        lost = tuple(name for word in value for name in word.unresolved)
        if lost:
            return {path: Value((), origin._replace(why=unresolved_why(lost)))}
        items = tuple(Scalar(word.text, "text", "plain", word.place) for word in value)
        return {path: Value((SequenceNode(items, option.value_place),), origin)}
    made = word_value(value, option.written)
    node = made.either(None)
    leaves = flatten(node, path) if isinstance(node, Mapping) else {}
    return {leaf: Value(one.options, made.origin) for leaf, one in leaves.items()} or {path: made}


def _in_doubt(branches: Sequence[Fields]) -> Fields:
    """What the branches of a script have in common; where they differ nothing is known."""
    fields = dict(branches[0])
    for other in branches[1:]:
        for path in dict.fromkeys((*fields, *other)):
            mine, theirs = fields.get(path), other.get(path)
            if mine is not None and theirs is not None and _same(mine, theirs):
                continue
            origin = (mine or theirs or branches[0][path]).origin
            fields[path] = Value((), origin._replace(why="the branches of the script differ"))
    return fields


def _same(one: Value[Node], other: Value[Node]) -> bool:
    return [to_plain(node) for node in one.options] == [to_plain(node) for node in other.options]
