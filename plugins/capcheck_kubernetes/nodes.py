"""Careful steps through YAML that may be anything."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Place, Value, unknown, written
from capcheck.launch import unrendered_in, unresolved_why
from capcheck.source import Mapping, Node, Scalar, Sequence, as_boolean, as_integer


def child(node: Node | None, *keys: str) -> Node | None:
    """The node below `keys`; None where a step is missing or no mapping."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node


def items(node: Node | None) -> tuple[Node, ...]:
    """The items of a sequence; nothing of anything else."""
    return node.items if isinstance(node, Sequence) else ()


def entries(node: Node | None) -> Iterator[tuple[str, Node, Place]]:
    """Keys without stray blanks, their nodes and the keys' places."""
    if isinstance(node, Mapping):
        for key, value in node.entries:
            yield key.text.strip(), value, key.place


def scalar(node: Node | None) -> Scalar | None:
    """A single value that says something."""
    if isinstance(node, Scalar) and node.type != "null" and not node.tag:
        return node
    return None


def text(node: Node | None) -> str | None:
    """The text of a single value; None of anything else."""
    one = scalar(node)
    return one.text if one is not None else None


def integer(node: Node | None) -> int | None:
    """A whole number, quoted or not."""
    one = scalar(node)
    return as_integer(one) if one is not None else None


def boolean(node: Node | None) -> bool | None:
    """True or false, quoted or not."""
    one = scalar(node)
    return as_boolean(one) if one is not None else None


def key_place(node: Node | None, key: str) -> Place | None:
    """Where a key stands."""
    found = node.key(key) if isinstance(node, Mapping) else None
    return found.place if found is not None else None


def count_value(node: Node, word: str) -> Value[Node]:
    """A positive whole number as a value; unknown for templates and anything else."""
    lost = unrendered_in(node)
    if lost:
        return unknown(node.place, unresolved_why(lost), word)
    number = integer(node)
    if number is None:
        return unknown(node.place, f"{word} is not a whole number", word)
    if number < 1:
        return unknown(node.place, f"{word} is {number}", word)
    plain = Scalar(str(number), "integer", "plain", node.place)
    return written(plain, node.place, word)
