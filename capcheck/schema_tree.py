"""Walks a JSON Schema by path: what is allowed where, and what a misspelt name may mean.

Custom keywords: `x-measure` names the unit family of a leaf, `x-hint` says how to write a field,
`x-also-called` lists other words that people use for it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import islice
from typing import Any, NamedTuple

Schema = Mapping[str, Any]
Path = tuple[str | int, ...]

_DEEPEST = 40  # steps through references; a schema that goes further refers to itself
_MOST_KNOWN = 2_000
_COMBINATORS = ("allOf", "anyOf", "oneOf")
_CONDITIONAL = ("then", "else")


class Known(NamedTuple):
    """A field that the schema names, and the other words for it."""

    path: tuple[str, ...]
    also: tuple[str, ...]


def dotted(path: Iterable[str | int]) -> str:
    """`("hardware", "accelerator", 1)` as hardware.accelerator[1]."""
    text = ""
    for step in path:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _plain_name(name: str) -> str:
    return re.sub(r"[\s_.-]", "", name).lower()


def _strings(found: Any) -> tuple[str, ...]:
    return (found,) if isinstance(found, str) else tuple(found or ())


class SchemaTree:
    """One schema, walked by path. References must be local (`#/...`)."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema

    def _target(self, reference: str) -> Any:
        found: Any = self.schema
        for step in reference.removeprefix("#").split("/")[1:]:
            step = step.replace("~1", "/").replace("~0", "~")
            found = found[int(step)] if isinstance(found, list) else found[step]
        return found

    def parts(self, schema: Any, depth: int = 0) -> Iterator[Schema]:
        """The schema itself and what it combines, references followed."""
        if not isinstance(schema, Mapping) or depth > _DEEPEST:
            return
        if "$ref" in schema:
            yield from self.parts(self._target(schema["$ref"]), depth + 1)
            return
        yield schema
        for word in _COMBINATORS:
            for one in schema.get(word, ()):
                yield from self.parts(one, depth + 1)
        for word in _CONDITIONAL:
            yield from self.parts(schema.get(word), depth + 1)

    def _below(self, part: Schema, step: str | int) -> list[Any]:
        """What one part says of a key or index; empty when it says nothing of it."""
        if isinstance(step, int):
            items = part.get("items")
            if isinstance(items, list):
                return items[step : step + 1]
            return [items] if isinstance(items, Mapping) else []
        found = [part["properties"][step]] if step in part.get("properties", {}) else []
        for pattern, schema in part.get("patternProperties", {}).items():
            if re.search(pattern, step):
                found.append(schema)
        if not found and isinstance(part.get("additionalProperties"), Mapping):
            found.append(part["additionalProperties"])
        return found

    def child(self, parts: Iterable[Schema], step: str | int) -> list[Schema]:
        """The parts of a key or index below; none when it is not allowed, `{}` when open."""
        parts = list(parts)
        found = [one for part in parts for one in self._below(part, step)]
        if found:
            return [part for one in found for part in self.parts(one)] or [{}]
        closed = any(part.get("additionalProperties") is False for part in parts)
        return [] if closed and isinstance(step, str) else [{}]

    def at(self, path: Path) -> list[Schema]:
        """The parts that apply at a path; none when something on the way is not allowed."""
        parts = list(self.parts(self.schema))
        for step in path:
            parts = self.child(parts, step)
            if not parts:
                return []
        return parts

    def names(self, path: Path) -> list[str]:
        """The keys that are named at a path, in the schema's order."""
        found = [name for part in self.at(path) for name in part.get("properties", {})]
        return list(dict.fromkeys(found))

    def known(self) -> list[Known]:
        """Every named field, mappings too; the first ones of a schema that refers to itself."""
        return list(islice(self._known((), self.schema, 0), _MOST_KNOWN))

    def _known(self, path: tuple[str, ...], schema: Any, depth: int) -> Iterator[Known]:
        if depth > _DEEPEST // 4:
            return
        for part in self.parts(schema):
            for name, below in part.get("properties", {}).items():
                also = _strings(first(self.parts(below), "x-also-called"))
                yield Known((*path, name), also)
                yield from self._known((*path, name), below, depth + 1)

    def suggest(self, path: Path, key: str) -> list[str]:
        """What `key` below `path` may have been meant for: siblings as names, others dotted."""
        plain = _plain_name(key)
        fields = self.known()
        siblings = [one for one in fields if one.path[:-1] == path]
        elsewhere = [one for one in fields if one.path[:-1] != path]
        for group in (siblings, elsewhere):
            same = [one for one in group if _plain_name(one.path[-1]) == plain]
            if not same:
                same = [one for one in group if plain in map(_plain_name, one.also)]
            if same:
                return _labels(same, path)
        for group, likeness in ((siblings, 0.7), (elsewhere, 0.8)):
            near = _closest(plain, [_plain_name(one.path[-1]) for one in group], likeness)
            if near:
                return _labels([one for one in group if _plain_name(one.path[-1]) == near], path)
        return []


def _labels(fields: Iterable[Known], path: Path) -> list[str]:
    found = [one.path[-1] if one.path[:-1] == path else dotted(one.path) for one in fields]
    return list(dict.fromkeys(found))[:3]


def _closest(word: str, words: list[str], likeness: float) -> str:
    from difflib import get_close_matches

    found = get_close_matches(word, words, 1, likeness)
    return found[0] if found else ""


def closest(word: str, words: Iterable[str], likeness: float = 0.6) -> str:
    """The one of `words` that is most like `word`, whatever the case; "" when none is."""
    by_plain = {_plain_name(one): one for one in words}
    found = _closest(_plain_name(word), list(by_plain), likeness)
    return by_plain[found] if found else ""


def first(parts: Iterable[Schema], keyword: str) -> Any:
    """The first value of a keyword among parts; None when none has it."""
    return next((part[keyword] for part in parts if keyword in part), None)


def types_of(parts: Iterable[Schema]) -> list[str]:
    """The JSON types that parts name, in their order."""
    found = [name for part in parts for name in _strings(part.get("type"))]
    return list(dict.fromkeys(found))
