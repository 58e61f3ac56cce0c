"""The options as the user wrote them, each with its place and its standing in the release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capcheck import ARGS, Case, OptionTable, Place, Value
from capcheck.options import Standing, parse_release
from capcheck.source import Node, Scalar, to_plain

Version = tuple[int, ...]


class Written(NamedTuple):
    """One option. `value` is unknown when a variable in it could not be resolved."""

    name: str  # as in the draft: max_model_len
    word: str  # as written: --max-model-len
    key: Place  # of the name
    value: Value[Node] | None  # None for a mapping
    keys: tuple[tuple[str, Place], ...]  # names inside a JSON option
    standing: Standing
    bare: bool = False  # a word without dashes among those of a command line


def release_of(case: Case) -> Version | None:
    """The release when it is known; questions are then put to every release."""
    return case.release.version if case.release.known else None


def unsure(case: Case, table: OptionTable) -> str:
    """Why it is not certain what the release takes, in words; "" when it is."""
    release = case.release
    if release.foreign or not release.known:
        return release.why
    name = parse_release(release.text)
    if name is not None and name.development:
        return f"{release.text} is a development build"
    if table.releases and release.version > table.releases[-1]:
        return f"{release.text} is newer than the releases that were looked at"
    return ""


def _standing(case: Case, table: OptionTable, asked: str) -> Standing:
    """What the release makes of a name; when it is not known, what all that it may be make."""
    standing, among = table.resolve(asked, release_of(case)), case.release.among
    if standing.verdict != "unsure" or case.release.known or among is None:
        return standing
    first, end = among
    found = [table.resolve(asked, version) for version in table.releases if first <= version < end]
    return found[-1] if found and all(one.verdict == "known" for one in found) else standing


def release_words(case: Case) -> str:
    """vLLM 0.11.0, or any release that was looked at."""
    name = case.engine.name
    return f"{name} {case.release.text}" if case.release.known else f"any {name} release"


def written(case: Case, table: OptionTable) -> Iterator[Written]:
    """Every option of the deployment's arguments, once."""
    groups: dict[str, dict[tuple[str, ...], Value[Node]]] = {}
    for path, value in case.deployment.under(*ARGS).items():
        if path and value.origin.kind in ("written", "assumed"):
            groups.setdefault(path[0], {})[path[1:]] = value
    command_line = any(_is_word(part) for parts in groups.values() for part in parts.values())
    for name, parts in groups.items():
        first = next(iter(parts.values()))
        word = first.origin.word if () in parts else ""
        place = case.deployment.draft.places.get((*ARGS, name)) or first.origin.place
        keys = tuple(
            (path[0], case.deployment.draft.places.get((*ARGS, name, path[0])) or one.origin.place)
            for path, one in parts.items()
            if path
        )
        asked = word if word.startswith("-") else name
        yield Written(
            name, word or name, place, parts.get(()), tuple(dict(keys).items()),
            _standing(case, table, asked), command_line and _is_stray(first),
        )  # fmt: skip


def _is_word(value: Value[Node]) -> bool:
    """Whether it was given on a command line, as --name."""
    return value.origin.word.startswith("-")


def _is_stray(value: Value[Node]) -> bool:
    """Whether it stands among the words of a command line without being an option's name."""
    return not _is_word(value) and not value.origin.via  # a key of a file that was included


def argument(value: Value[Node]) -> object:
    """The value as `check_value` takes it: the text of an argument, else what YAML makes of it."""
    node = value.options[0]
    if isinstance(node, Scalar) and value.origin.word.startswith("-"):
        return node.text if node.type == "text" else to_plain(node)
    return to_plain(node)
