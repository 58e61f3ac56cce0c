"""A draft as plain data, each field read as its schema wants it, and back from paths to places."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from capcheck import measure
from capcheck.deployment import Draft, FieldPath
from capcheck.schema_tree import Path, Schema, SchemaTree, first, types_of
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar, Sequence, as_boolean, as_integer, as_number, to_plain
from capcheck.values import Place, Value

MEASURES: Mapping[str, Callable[[str], float]] = {
    "bytes": measure.parse_bytes,
    "count": measure.parse_count,
    "number": measure.parse_number,
    "rate": measure.parse_rate,
    "seconds": measure.parse_seconds,
    "share": measure.parse_share,
}
MEASURE_WORDS: Mapping[str, str] = {
    "bytes": "a size",
    "count": "a whole number",
    "number": "a number",
    "rate": "a rate",
    "seconds": "a time",
    "share": "a share",
}


class Misread(NamedTuple):
    """A scalar that is not the measure its field holds."""

    path: Path
    node: Scalar
    expected: str


class Instance(NamedTuple):
    """What the schema validates, in SI units, and what could not be read for it."""

    plain: dict[str, Any]
    misread: tuple[Misread, ...]


class _Reader:
    def __init__(self, tree: SchemaTree) -> None:
        self.tree = tree
        self.misread: list[Misread] = []

    def read(self, node: Node, parts: list[Schema], path: Path) -> Any:
        if isinstance(node, Scalar):
            return self._scalar(node, parts, path)
        if isinstance(node, MappingNode):
            return {
                key.text: self.read(child, self.tree.child(parts, key.text), (*path, key.text))
                for key, child in node.entries
            }
        return [
            self.read(item, self.tree.child(parts, index), (*path, index))
            for index, item in enumerate(node.items)
        ]

    def _scalar(self, node: Scalar, parts: list[Schema], path: Path) -> Any:
        if node.type == "null":
            return None
        kind = first(parts, "x-measure")
        if kind is not None:
            return self._measure(node, kind, path)
        types = types_of(parts)
        if not types and any("enum" in part or "const" in part for part in parts):
            types = _types_of_choices(parts)
        return _as_type(node, types)

    def _measure(self, node: Scalar, kind: str, path: Path) -> Any:
        try:
            return MEASURES[kind](node.text)
        except measure.NotAMeasure as wrong:
            self.misread.append(Misread(path, node, wrong.expected))
            return node.text


def _types_of_choices(parts: list[Schema]) -> list[str]:
    choices = [one for part in parts for one in part.get("enum", [part.get("const")])]
    return ["string"] if any(isinstance(one, str) for one in choices) else []


def _as_type(node: Scalar, types: list[str]) -> Any:
    """The scalar as one of `types`; what is none of them stays as YAML has it."""
    numeric = "number" in types or "integer" in types
    if "string" in types and not (numeric and node.type in ("integer", "number")):
        return node.text
    found: Any = None
    if "boolean" in types:
        found = as_boolean(node)
    if found is None and numeric:
        found = as_integer(node)
        found = as_number(node) if found is None else found
    return to_plain(node) if found is None else found


def _readable(value: Value[Node]) -> Iterator[Node]:
    """The options whose text is what it says; an application's own tag may make it anything."""
    return (node for node in value.options if not node.tag)


def _put(plain: dict[str, Any], path: FieldPath, found: Any) -> None:
    """Set a leaf. A scalar where a mapping is wanted stays, so that validation names it."""
    at = plain
    for step in path[:-1]:
        below = at.setdefault(step, {})
        if not isinstance(below, dict):
            return
        at = below
    at[path[-1]] = found


def instance_of(draft: Draft, tree: SchemaTree) -> Instance:
    """The merged fields as plain data. Unknown values are left out; alternatives count once."""
    reader = _Reader(tree)
    plain: dict[str, Any] = {}
    for path, value in sorted(draft.fields.items(), key=lambda field: len(field[0])):
        parts = tree.at(path)
        found = [reader.read(node, parts, path) for node in _readable(value)]
        if path and found:
            _put(plain, path, found[0])
    return Instance(plain, tuple(dict.fromkeys(reader.misread)))


def _split(draft: Draft, path: Path) -> tuple[Node | None, Path]:
    """The field that holds `path`, and what is left to go inside it."""
    for depth in range(len(path), 0, -1):
        head = tuple(step for step in path[:depth] if isinstance(step, str))
        value = draft.fields.get(head)
        if len(head) == depth and value is not None and value.options:
            return value.options[0], path[depth:]
    return None, path


def node_at(draft: Draft, path: Path) -> Node | None:
    """The written node at a path of the instance; None for mappings that were flattened."""
    node, rest = _split(draft, path)
    for step in rest:
        if isinstance(node, MappingNode) and isinstance(step, str):
            node = node.get(step)
        elif isinstance(node, Sequence) and isinstance(step, int) and step < len(node.items):
            node = node.items[step]
        else:
            return None
    return node


def key_place(draft: Draft, path: Path) -> Place:
    """Where the key of a path is written; the nearest key around it when it is not."""
    if path and isinstance(path[-1], str):
        parent = node_at(draft, path[:-1])
        key = parent.key(path[-1]) if isinstance(parent, MappingNode) else None
        if key is not None:
            return key.place
    for depth in range(len(path), 0, -1):
        head = tuple(step for step in path[:depth] if isinstance(step, str))
        place = draft.places.get(head) if len(head) == depth else None
        if place is not None:
            return place
        node = node_at(draft, path[:depth])
        if node is not None:
            return node.place
    return draft.place


def value_place(draft: Draft, path: Path) -> Place:
    """Where the value of a path is written; the key's place for a flattened mapping."""
    node = node_at(draft, path)
    value = draft.fields.get(tuple(step for step in path if isinstance(step, str)))
    if value is not None and value.options and node is value.options[0]:
        return value.origin.place
    return node.place if node is not None else key_place(draft, path)
