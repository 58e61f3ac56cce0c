"""An engine's own configuration file as a format: a map of its options, as most engines have it."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from capcheck.deployment import ARGS, Draft, FieldPath, flatten, places_of
from capcheck.formats import Desk, Document, Format
from capcheck.launch import argument_path, node_of
from capcheck.options import OptionTable
from capcheck.source import Mapping, Node, Scalar
from capcheck.unrendered import unrendered_in, unresolved_why
from capcheck.values import Place, Value, derived

Problem = tuple[str, str, Place]
OTHERS_KEYS = frozenset({"apiVersion", "kind", "services"})  # manifests, compose files


class OptionFile(Format):
    """A flat map of an engine's options. It names no release, and often no model.

    Fill in `name`, `title`, `engine_config`, `config_options`, `engine_title`, `table` and
    `telling`. A document is such a file when its keys are mostly the engine's options and some of
    them nobody else's, or when its name fits and half of its keys do.
    """

    engine_title: str = ""  # "vLLM"
    table: OptionTable
    telling: frozenset[str] = frozenset()  # options that no other engine has under this name
    file_names: tuple[str, ...] = ()  # patterns, in lower case
    others_keys: frozenset[str] = OTHERS_KEYS
    least_telling: int = 1
    least_known: int = 2
    known_for_each_foreign: int = 2
    structured: bool = False  # whether options that are not known may be maps

    def claims(self, document: Document) -> bool:
        """Whether the keys are mostly the engine's options; misspelt ones are nobody else's."""
        root = document.root
        if not isinstance(root, Mapping):
            return False
        known: set[str] = set()
        foreign = 0
        for key, value in root.entries:
            if key.text in self.others_keys:
                return False
            standing = self.table.resolve(_option(key).partition(".")[0], None, prefixes=False)
            if standing.option is not None:
                known.add(standing.option.name)
            elif not standing.candidates:
                foreign += 1
                if _has_structure(value) and not self.structured:
                    return False
        return self._recognized(known, foreign, document.file)

    def _recognized(self, known: set[str], foreign: int, file: str) -> bool:
        name = PurePosixPath(file).name.casefold()
        if any(fnmatchcase(name, pattern) for pattern in self.file_names):
            return len(known) > 0 and len(known) >= foreign
        telling = len(known & self.telling) >= self.least_telling
        enough = len(known) >= max(self.least_known, self.known_for_each_foreign * foreign)
        return telling and enough

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The options as written; a document that is no mapping holds none."""
        document = desk.document
        root = document.root
        if not isinstance(root, Mapping):
            return ()
        fields, problems = _fields(root)
        place = root.entries[0][0].place if root.entries else root.place
        why = f"the file holds {self.engine_title}'s options"
        engine = derived(node_of(self.engine_config, place), place, why)
        return (
            Draft(
                name=PurePosixPath(document.file).stem,
                format=self.name,
                place=place,
                fields={("engine", "name"): engine, **fields},
                places=_places(root, place),
                problems=tuple(problems),
            ),
        )


def _option(key: Scalar) -> str:
    """The option that a key names, whatever spelling it has."""
    return key.text.replace("-", "_")


def _has_structure(node: Node) -> bool:
    """Whether it is a mapping or a list of them: more than an option's value."""
    if isinstance(node, Scalar):
        return False
    return isinstance(node, Mapping) or any(_has_structure(item) for item in node.items)


def _fields(root: Mapping) -> tuple[dict[FieldPath, Value[Node]], list[Problem]]:
    """Each option below engine.args: maps by their leaves, lists as a whole."""
    fields: dict[FieldPath, Value[Node]] = {}
    spellings: dict[str, str] = {}
    problems: list[Problem] = []
    for key, node in root.entries:
        first = spellings.setdefault(_option(key), key.text)
        if first != key.text:
            message = f"{first} and {key.text} are one option"
            problems.append(("spec/conflict", message, key.place))
        for path, value in flatten(node, argument_path(key.text), word=key.text).items():
            lost = unrendered_in(value.options[0])
            if lost:
                why = unresolved_why(lost)
                fields[path] = Value((), value.origin._replace(why=why))
            else:
                fields[path] = value
    return fields, problems


def _places(root: Mapping, place: Place) -> dict[FieldPath, Place]:
    """Where each key stands; what is missing would be written at the top."""
    places: dict[FieldPath, Place] = {(): place, ARGS: place}
    for key, node in root.entries:
        path = argument_path(key.text)
        places[path] = key.place
        places.update({(*path, *inner): at for inner, at in places_of(node).items() if inner})
    return places
