"""Drafts of deployments, how they merge, and typed access to the merged fields."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple, TypeVar

from capcheck import measure
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar, Sequence, as_boolean, as_text
from capcheck.values import Origin, Place, Value, alternatives, unknown, written

T = TypeVar("T")

FieldPath = tuple[str, ...]
ARGS: FieldPath = ("engine", "args")
ENV: FieldPath = ("engine", "env")


class LinkTo(NamedTuple):
    """Another file that a draft builds on."""

    kind: str  # "from", "engine config", "model config"
    target: str  # relative to the file that names it; may carry #Kind/name
    place: Place


class Overridden(NamedTuple):
    """A value that a higher layer replaced; `show` lists both."""

    path: FieldPath
    value: Value[Node]


class Draft(NamedTuple):
    """What one format read: capcheck/v1 keys with values, not yet validated.

    Bad input becomes `problems`: (id of a `spec/*` notice or of an own rule, message, place).
    """

    name: str
    format: str
    place: Place  # the deployment's header
    fields: Mapping[FieldPath, Value[Node]]
    places: Mapping[FieldPath, Place] = {}  # mappings and keys, for what is missing or unknown
    links: tuple[LinkTo, ...] = ()
    problems: tuple[tuple[str, str, Place], ...] = ()
    overridden: tuple[Overridden, ...] = ()
    root: Node | None = None  # of our own format: validated as written


def flatten(node: Node, at: FieldPath = (), *, word: str = "") -> dict[FieldPath, Value[Node]]:
    """Leaves of a mapping by their path; sequences stay whole; null is absent."""
    if isinstance(node, MappingNode):
        fields: dict[FieldPath, Value[Node]] = {}
        for key, child in node.entries:
            fields.update(flatten(child, (*at, key.text), word=key.text))
        return fields
    if isinstance(node, Scalar) and node.type == "null":
        return {}
    return {at: written(node, node.place, word)}


def places_of(node: Node, at: FieldPath = ()) -> dict[FieldPath, Place]:
    """Where each key of each mapping stands."""
    if not isinstance(node, MappingNode):
        return {}
    places: dict[FieldPath, Place] = {} if at else {(): node.place}
    for key, child in node.entries:
        path = (*at, key.text)
        places[path] = key.place
        places.update(places_of(child, path))
    return places


def _unit(path: FieldPath) -> FieldPath:
    """What a higher layer replaces as a whole: one engine option, else the leaf."""
    return path[:3] if path[:2] in (ARGS, ENV) else path


def merge(lower: Draft, higher: Draft) -> Draft:
    """`higher` over `lower`: what it says replaces, the rest stays; both stay listed."""
    replaced = {_unit(path) for path in higher.fields}
    above = {path[:depth] for path in higher.fields for depth in range(1, len(path))}
    kept: dict[FieldPath, Value[Node]] = {}
    lost: list[Overridden] = []
    for path, value in lower.fields.items():
        below = any(path[:depth] in higher.fields for depth in range(1, len(path)))
        if _unit(path) in replaced or below or path in above:
            lost.append(Overridden(path, value))
        else:
            kept[path] = value
    return higher._replace(
        fields={**kept, **higher.fields},
        places={**lower.places, **higher.places},
        links=(*lower.links, *higher.links),
        problems=(*lower.problems, *higher.problems),
        overridden=(*lower.overridden, *higher.overridden, *lost),
    )


def overruled(draft: Draft, file: Draft) -> Draft:
    """The draft with the engine's options of a file that wins over the command line."""
    options = {path: value for path, value in file.fields.items() if path[:2] == ARGS}
    layer = draft._replace(fields=options, places={}, links=(), problems=(), overridden=())
    return merge(draft, layer)


def through(draft: Draft, place: Place) -> Draft:
    """The same draft as seen through the place that included it."""
    fields = {
        path: Value(value.options, value.origin._replace(via=(place, *value.origin.via)))
        for path, value in draft.fields.items()
    }
    return draft._replace(fields=fields)


def assume(draft: Draft, path: FieldPath, node: Node, why: str) -> Draft:
    """Fill a field that is absent or unknown; what is known of it, or of a part of it, stays."""
    depth = len(path)
    have = [value for at, value in draft.fields.items() if at[:depth] == path]
    if any(value.options for value in have):
        return draft
    kept = {at: value for at, value in draft.fields.items() if at[:depth] != path}
    value = Value((node,), Origin("assumed", node.place, word=".".join(path), why=why))
    return draft._replace(fields={**kept, path: value})


def _text(node: Node) -> str:
    if isinstance(node, Scalar):
        return as_text(node)
    raise ValueError("a single value")


def _texts(node: Node) -> tuple[str, ...]:
    if isinstance(node, Sequence) and all(isinstance(item, Scalar) for item in node.items):
        return tuple(_text(item) for item in node.items)
    raise ValueError("a list of names")


def _flag(node: Node) -> bool:
    found = as_boolean(node) if isinstance(node, Scalar) else None
    if found is None and isinstance(node, Scalar):
        found = {"true": True, "false": False, "1": True, "0": False}.get(node.text.lower())
    if found is None:
        raise ValueError("true or false")
    return found


class Deployment:
    """One merged deployment. Accessors give None for an absent field, an unknown Value for one
    that cannot be read, and never raise."""

    __slots__ = ("draft", "fields", "format", "name", "place")

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.name = draft.name
        self.format = draft.format
        self.place = draft.place
        self.fields = draft.fields

    def read(self, path: FieldPath, parse: Callable[[Node], T]) -> Value[T] | None:
        """The field through `parse`, which raises ValueError(expected) for what it cannot read."""
        value = self.fields.get(path)
        if value is None:
            return self._beneath(path)
        try:
            options = tuple(parse(option) for option in value.options)
        except ValueError as wrong:
            return Value((), value.origin._replace(why=f"{path[-1]} is not {wrong}"))
        return Value(options, value.origin)

    def _beneath(self, path: FieldPath) -> Value[Any] | None:
        """Unknown where a mapping is expected above the field and something else stands there."""
        for depth in range(1, len(path)):
            above = self.fields.get(path[:depth])
            if above is not None:
                why = f"{'.'.join(path[:depth])} is not a mapping"
                return Value((), above.origin._replace(why=why))
        return None

    def _scalar(self, path: FieldPath, parse: Callable[[str], T]) -> Value[T] | None:
        return self.read(path, lambda node: parse(_text(node)))

    def text(self, *path: str) -> Value[str] | None:
        """A field as text. A sequence of texts is a choice of alternatives."""
        value = self.fields.get(path)
        if value is not None and value.known and isinstance(value.options[0], Sequence):
            items = value.options[0].items
            if items and all(isinstance(item, Scalar) for item in items):
                return alternatives([_text(item) for item in items], value.origin)
        return self._scalar(path, str)

    def texts(self, *path: str) -> Value[tuple[str, ...]] | None:
        """A sequence of texts, all of which count."""
        return self.read(path, _texts)

    def count(self, *path: str) -> Value[int] | None:
        """A whole number; `32k` and `32K` are understood."""
        return self._scalar(path, measure.parse_count)

    def size(self, *path: str) -> Value[float] | None:
        """Bytes: 24GB, 24GiB."""
        return self._scalar(path, measure.parse_bytes)

    def number(self, *path: str) -> Value[float] | None:
        """A finite number."""
        return self._scalar(path, measure.parse_number)

    def share(self, *path: str) -> Value[float] | None:
        """A fraction; `30%` is understood."""
        return self._scalar(path, measure.parse_share)

    def seconds(self, *path: str) -> Value[float] | None:
        """A time in seconds; `800ms` is understood."""
        return self._scalar(path, measure.parse_seconds)

    def rate(self, *path: str) -> Value[float] | None:
        """Requests per second."""
        return self._scalar(path, measure.parse_rate)

    def flag(self, *path: str) -> Value[bool] | None:
        """A switch."""
        return self.read(path, _flag)

    def under(self, *path: str) -> dict[FieldPath, Value[Node]]:
        """All fields below `path`, by what follows it."""
        depth = len(path)
        return {key[depth:]: value for key, value in self.fields.items() if key[:depth] == path}

    def has(self, *path: str) -> bool:
        """Whether anything is said at or below `path`."""
        return any(key[: len(path)] == path for key in self.fields)

    def place_for(self, *path: str) -> Place:
        """Where `path` is or would be written: the nearest mapping or key around it."""
        value = self.fields.get(path)
        if value is not None:
            return value.origin.place
        for depth in range(len(path), 0, -1):
            place = self.draft.places.get(path[:depth])
            if place is not None:
                return place
        return self.place

    def absent(self, *path: str, why: str) -> Value[Any]:
        """The unknown value of a field that nobody wrote and that has no default."""
        return unknown(self.place_for(*path), why)

    def with_fields(self, changes: Iterable[tuple[FieldPath, Value[Node]]]) -> Deployment:
        """A copy with some fields replaced: how `what_if` tries a change."""
        fields = dict(changes)
        layer = self.draft._replace(fields=fields, places={}, links=(), problems=(), overridden=())
        merged = merge(self.draft, layer)
        return Deployment(merged)
