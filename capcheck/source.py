"""YAML and JSON as nodes that keep their text and their place.

`read_documents` and `read_file` never raise on what a file holds: what cannot be read becomes a
`Problem`, and every other document of the file is still given. Reading is safe on hostile input:
nothing is executed, and size, depth and alias expansion are capped by `Limits`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeAlias, Union

from capcheck.values import Place

Style = Literal["plain", "single", "double", "literal", "folded"]
ScalarType = Literal["text", "integer", "number", "boolean", "null", "timestamp"]


class Scalar(NamedTuple):
    """One scalar. `text` is what the file says; `type` what YAML 1.1 makes of it."""

    text: str
    type: ScalarType
    style: Style
    place: Place
    tag: str = ""  # an application's own tag, as !reset: what it makes of the text is not known


class Mapping(NamedTuple):
    """Keys in the file's order, each with its own place."""

    entries: tuple[tuple[Scalar, Node], ...]
    place: Place
    tag: str = ""

    def get(self, key: str) -> Node | None:
        """The value of a key."""
        return next((node for name, node in self.entries if name.text == key), None)

    def key(self, key: str) -> Scalar | None:
        """The key itself, for its place."""
        return next((name for name, _ in self.entries if name.text == key), None)


class Sequence(NamedTuple):
    """Items in the file's order."""

    items: tuple[Node, ...]
    place: Place
    tag: str = ""


Node: TypeAlias = Union[Scalar, Mapping, Sequence]

# What a Problem's rule can be, with what is wrong then.
PROBLEM_RULES: dict[str, str] = {
    "spec/unreadable": "the file cannot be read",
    "spec/encoding": "the file is not text in UTF-8 or UTF-16",
    "spec/too-large": "the file is larger, deeper or has more values than is read",
    "spec/yaml": "the text is not valid YAML",
    "spec/json": "the text is not valid JSON",
    "spec/template": "the text is a template that is not rendered",
    "spec/duplicate-key": "a key stands twice in one mapping",
    "spec/alias": "an alias cannot be resolved, or expands to too much",
}


class Limits(NamedTuple):
    """What is read at most."""

    bytes: int = 20_000_000  # of a file
    nodes: int = 100_000  # of one document, aliases expanded
    all_nodes: int = 500_000  # written in all documents of a file
    depth: int = 100  # of one document, aliases expanded
    problems: int = 100  # of a file; reading stops there


LIMITS = Limits()


class Problem(NamedTuple):
    """Why something in a file is not given, or not given as it is written."""

    rule: str  # one of PROBLEM_RULES
    message: str
    place: Place
    help: str = ""


class Documents(NamedTuple):
    """The documents of one file that hold anything, and what was wrong with the others.

    Of a key that stands twice the last value is kept, as YAML and JSON loaders do. Merge keys
    (`<<`) are applied and aliases resolved: such nodes keep the place where they are written.
    `text` is the decoded text that the places count in, without a byte order mark.
    """

    roots: tuple[Node, ...]
    problems: tuple[Problem, ...] = ()
    text: str = ""


def read_documents(text: str, file: str, *, limits: Limits = LIMITS) -> Documents:
    """The documents in `text`; `file` names it in places, and `.json` makes it JSON.

    JSON that YAML refuses (tabs, surrogate pairs) is read as JSON wherever it stands; a `.json`
    file that is only YAML is read but keeps its `spec/json` problem.
    """
    from capcheck.yaml_reader import read_yaml

    text = text.removeprefix("\ufeff")
    if file.lower().endswith(".json"):
        from capcheck.json_reader import read_json

        as_json = read_json(text, file, limits)
        if as_json.roots or not as_json.problems:
            return as_json
        as_yaml = read_yaml(text, file, limits)
        if any(problem.rule == "spec/template" for problem in as_yaml.problems):
            return as_yaml
        return Documents(as_yaml.roots, as_json.problems, text)
    as_yaml = read_yaml(text, file, limits)
    if not as_yaml.roots and as_yaml.problems and text.lstrip()[:1] in ("{", "["):
        from capcheck.json_reader import read_json

        as_json = read_json(text, file, limits)
        if as_json.roots:
            return as_json
    return as_yaml


def read_file(path: Path, shown_as: str, *, limits: Limits = LIMITS) -> Documents:
    """The documents of a file; `shown_as` is its name in places, relative to the root."""
    from capcheck.decoding import Undecodable, read_text

    try:
        text = read_text(path, limits.bytes)
    except Undecodable as wrong:
        place = Place(shown_as, wrong.line, wrong.column, wrong.line, wrong.column)
        return Documents((), (Problem(wrong.rule, wrong.message, place, wrong.help),))
    return read_documents(text, shown_as, limits=limits)


def line_of(text: str, line: int) -> str:
    """The line of that number (from 1) without its end; empty when there is none."""
    from capcheck.lines import line_starts

    starts = line_starts(text)
    if not 1 <= line <= len(starts):
        return ""
    end = starts[line] if line < len(starts) else len(text)
    return text[starts[line - 1] : end].rstrip("\r\n")


def as_text(scalar: Scalar) -> str:
    """What the file says, whatever YAML makes of it: `0.10` stays `0.10`."""
    return scalar.text


def as_number(scalar: Scalar) -> float | None:
    """The finite number, quoted or not; None when it is none."""
    from capcheck.scalars import number_of

    return None if scalar.tag else number_of(scalar.text, plain=scalar.style == "plain")


def as_integer(scalar: Scalar) -> int | None:
    """The whole number, quoted or not; `1e9` and `2.0` are whole. None when it is none."""
    from capcheck.scalars import integer_of

    return None if scalar.tag else integer_of(scalar.text, plain=scalar.style == "plain")


def as_boolean(scalar: Scalar) -> bool | None:
    """True or False for YAML 1.1's words (yes, on, true, …), quoted or not; else None."""
    from capcheck.scalars import boolean_of

    return None if scalar.tag else boolean_of(scalar.text)


def _plain_scalar(scalar: Scalar) -> Any:
    if scalar.type == "null":
        return None
    found: float | bool | None = None
    if scalar.type == "integer":
        found = as_integer(scalar)
    elif scalar.type == "number":
        found = as_number(scalar)
    elif scalar.type == "boolean":
        found = as_boolean(scalar)
    return scalar.text if found is None else found


def to_plain(node: Node) -> Any:
    """Plain data as JSON has it: timestamps, NaN and endless numbers are text, keys are text."""
    if isinstance(node, Scalar):
        return _plain_scalar(node)
    if isinstance(node, Mapping):
        return {key.text: to_plain(child) for key, child in node.entries}
    return [to_plain(item) for item in node.items]
