"""Walking nodes and looking places up: what several tests of reading need."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck.source import Mapping, Node, Scalar, Sequence, read_documents
from capcheck.values import Place


def node_at(text: str, *path: str | int, file: str = "f.yaml") -> Node:
    """The node of the first document at a path."""
    node = read_documents(text, file).roots[0]
    for step in path:
        if isinstance(node, Mapping) and isinstance(step, str):
            found = node.get(step)
            assert found is not None
            node = found
        elif isinstance(node, Sequence) and isinstance(step, int):
            node = node.items[step]
    return node


def scalar_at(text: str, *path: str | int, file: str = "f.yaml") -> Scalar:
    """The scalar of the first document at a path."""
    node = node_at(text, *path, file=file)
    assert isinstance(node, Scalar)
    return node


def scalars(node: Node) -> Iterator[Scalar]:
    """Every key and value in the file's order."""
    if isinstance(node, Scalar):
        yield node
    elif isinstance(node, Mapping):
        for key, child in node.entries:
            yield key
            yield from scalars(child)
    else:
        for item in node.items:
            yield from scalars(item)


def at(text: str, place: Place) -> str:
    """What stands at a place, lines counted as editors do."""
    lines = text.replace("\r\n", "\n").split("\n")[place.line - 1 : place.end_line]
    lines[-1] = lines[-1][: place.end_column - 1]
    lines[0] = lines[0][place.column - 1 :]
    return "\n".join(lines)
