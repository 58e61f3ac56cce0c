"""YAML and JSON as nodes that keep their text and their place."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias, Union

from capcheck.values import Place

Style = Literal["plain", "single", "double", "literal", "folded"]
ScalarType = Literal["text", "integer", "number", "boolean", "null", "timestamp"]


class Scalar(NamedTuple):
    """One scalar. `text` is what the file says; `type` what YAML 1.1 makes of it."""

    text: str
    type: ScalarType
    style: Style
    place: Place


class Mapping(NamedTuple):
    """Keys in the file's order, each with its own place."""

    entries: tuple[tuple[Scalar, Node], ...]
    place: Place

    def get(self, key: str) -> Node | None:
        return next((node for name, node in self.entries if name.text == key), None)

    def key(self, key: str) -> Scalar | None:
        return next((name for name, _ in self.entries if name.text == key), None)


class Sequence(NamedTuple):
    """Items in the file's order."""

    items: tuple[Node, ...]
    place: Place


Node: TypeAlias = Union[Scalar, Mapping, Sequence]
