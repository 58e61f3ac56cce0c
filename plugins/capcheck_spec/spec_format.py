"""Reads capcheck/v1 documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import PurePosixPath

from capcheck import ARGS, Desk, Document, Draft, Format, LinkTo, Place, Value, flatten, places_of
from capcheck.deployment import FieldPath
from capcheck.launch import argument_path, unrendered_in, unresolved_why
from capcheck.source import Mapping, Node, Scalar
from capcheck_spec import header

HEADER = frozenset({"apiVersion", "kind", "name", "from"})
# The first is the nearest layer: an engine's configuration overrides a foreign file.
LINKS: tuple[tuple[FieldPath, str], ...] = (
    (("engine", "config"), "engine config"),
    (("from",), "from"),
    (("model", "config"), "model config"),
)

Problem = tuple[str, str, Place]


def _canonical(path: FieldPath) -> FieldPath:
    """The same field whatever spelling an engine option has."""
    if path[:2] != ARGS or len(path) < 3:
        return path
    return (*argument_path(path[2]), *path[3:])


def _checked(value: Value[Node]) -> Value[Node]:
    """A value with a template in it is not known before somebody renders it."""
    lost = unrendered_in(value.options[0])
    if not lost:
        return value
    return Value((), value.origin._replace(why=unresolved_why(lost)))


def _fields(root: Mapping) -> tuple[dict[FieldPath, Value[Node]], list[Problem]]:
    """The fields, and options that stand there in two spellings."""
    fields: dict[FieldPath, Value[Node]] = {}
    spellings: dict[FieldPath, str] = {}
    problems: dict[str, Problem] = {}
    for path, value in flatten(root).items():
        if path[0] in HEADER:
            continue
        field = _canonical(path)
        if field[:2] == ARGS and len(path) > 2:
            first = spellings.setdefault(field[:3], path[2])
            if first.replace("-", "_") == path[2].replace("-", "_") and first != path[2]:
                message = f"{first} and {path[2]} are one option"
                problems.setdefault(message, ("spec/conflict", message, value.place))
        fields[field] = _checked(value)
    return fields, list(problems.values())


def _written_links(root: Mapping) -> Iterator[tuple[str, FieldPath, Scalar]]:
    values = flatten(root)
    for path, kind in LINKS:
        value = values.get(path)
        node = value.options[0] if value is not None else None
        if isinstance(node, Scalar) and node.text:
            yield kind, path, node


def _links(root: Mapping) -> tuple[list[LinkTo], list[Problem]]:
    """The files that the deployment builds on; the schema refuses what is no text."""
    links: list[LinkTo] = []
    problems: list[Problem] = []
    for kind, path, node in _written_links(root):
        lost = unrendered_in(node)
        if lost:
            message = f"{'.'.join(path)}: {unresolved_why(lost)}"
            problems.append(("spec/unresolved", message, node.place))
        else:
            links.append(LinkTo(kind, node.text, node.place))
    return links, problems


def _name(root: Mapping, document: Document) -> str:
    name = root.get("name")
    if isinstance(name, Scalar) and name.text and name.type != "null":
        return name.text
    stem = PurePosixPath(document.file).stem
    return f"{stem}-{document.number + 1}" if document.number else stem


class SpecFormat(Format):
    """One deployment for each document; several documents are several deployments."""

    name = header.VERSION
    title = "capcheck's own deployment file"
    rank = 100

    def claims(self, document: Document) -> bool:
        """Whether the header is exactly ours."""
        return header.is_ours(document.root)

    def near_miss(self, document: Document) -> tuple[str, Node] | None:
        """What keeps a header that was meant to be ours from being it."""
        return header.near_miss(document.root)

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The document's deployment, as written."""
        document = desk.document
        root = document.root
        if not isinstance(root, Mapping):
            return ()
        fields, problems = _fields(root)
        links, unresolved = _links(root)
        head = root.key(header.VERSION_KEY)
        return (
            Draft(
                name=_name(root, document),
                format=self.name,
                place=head.place if head is not None else root.place,
                fields=fields,
                places={_canonical(path): place for path, place in places_of(root).items()},
                links=tuple(links),
                problems=(*problems, *unresolved),
                root=root,
            ),
        )
