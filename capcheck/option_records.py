"""Option tables as files: JSON lines, the first of which lists the inspected releases.

    {"releases": [["0.8.2", "2025-03-25"], ...]}
    {"name": "speculative_config", "group": "engine", "before_first": "0.8.1", "first": "0.8.2",
     "defaults": [["0.8.2", null]], "shapes": [["0.8.2", {"type": "json"}]]}

An edge that is not given lies outside of what was inspected. `defaults`, `shapes` and `choices`
hold for releases from the named one on.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from capcheck.option_types import Bounds, Option, Shape
from capcheck.versions import Version, parse_version

if TYPE_CHECKING:
    from pathlib import Path

Record = dict[str, Any]


def read_records(file: Path) -> tuple[Record, list[Record]]:
    """The head and the records of a table; empty ones if there is no such file."""
    if not file.is_file():
        return {}, []
    import json

    lines = file.read_text("utf-8").splitlines()
    head, *records = json.loads(f"[{','.join(filter(None, lines))}]")
    return (head, records) if "releases" in head else ({}, [head, *records])


@cache
def version_of(text: str) -> Version:
    """The version that a record names. Raises ValueError for anything else."""
    if text[:1] == "b" and text[1:].isdigit():
        return (int(text[1:]),)  # a build: engines that count them have nothing else
    parts = text.split(".")
    if len(parts) > 2 and all(part.isdigit() for part in parts):
        return tuple(int(part) for part in parts)  # most are, and a table names them often
    version = parse_version(text)
    if version is None:
        raise ValueError(f"not a release: {text}")
    return version


def edge(record: Record, key: str) -> Version | None:
    """One of the four edges of a record."""
    return version_of(record[key]) if key in record else None


def present_in(record: Record, version: Version | None, oldest: Version) -> bool | None:
    """Whether a release has what the record describes; None when that cannot be told.

    `oldest` is the first inspected release: what older ones have cannot be told.
    """
    before, first = edge(record, "before_first"), edge(record, "first")
    last, gone = edge(record, "last"), edge(record, "gone")
    absent = [version_of(text) for text in record.get("absent", ())]
    if version is None:
        return None if first or gone or absent else True
    if version in absent or (before and version <= before) or (gone and version >= gone):
        return False
    between = (first and version < first) or (last and version > last)
    return None if between or version < oldest else True


def at_release(history: Sequence[Sequence[Any]], version: Version | None) -> Any:
    """The entry of a history that holds in a release, without one the newest.

    A release older than all has the oldest entry. None for an empty history.
    """
    found = None
    for entry in history:
        start = entry[0] if isinstance(entry[0], tuple) else version_of(entry[0])
        if version is None or start <= version or found is None:
            found = entry
    return found[1] if found else None


def long_names(name: str, shape: Record) -> list[tuple[str, bool]]:
    """The long names that an option with that shape answers to, and whether they negate it."""
    longs = [name, *shape.get("aliases", ())]
    names = [(long, False) for long in longs]
    if shape.get("negatable"):
        names += [(f"no_{long}", True) for long in longs]
    if "inverse" in shape:
        names.append((shape["inverse"], True))
    return names


def shape_from(record: Record) -> Shape:
    """One entry of `shapes`."""
    limits = record.get("bounds", {})
    low, high = limits.get("ge", limits.get("gt")), limits.get("le", limits.get("lt"))
    return Shape(
        type=record["type"],
        item=record.get("item", "text"),
        bounds=Bounds(low, high, "gt" in limits, "lt" in limits),
        words=tuple(record.get("words", ())),
        folded=record.get("folded", False),
        open=record.get("open", False),
        loose=record.get("loose", False),
        pairs=record.get("pairs", False),
        negatable=record.get("negatable", False),
        inverse=record.get("inverse", ""),
        optional_value=record.get("optional_value", False),
        repeated=record.get("repeated", False),
        shorts=tuple(record.get("shorts", ())),
        aliases=tuple(record.get("aliases", ())),
    )


def option_from(record: Record, replaced_by: str = "") -> Option:
    """One record of a table. Raises KeyError or ValueError when it is not one."""
    shapes = tuple((version_of(text), shape_from(shape)) for text, shape in record["shapes"])
    newest = shapes[-1][1]
    return Option(
        name=record["name"],
        type=newest.type,
        first=edge(record, "first"),
        before_first=edge(record, "before_first"),
        gone=edge(record, "gone"),
        last=edge(record, "last"),
        defaults=tuple((version_of(text), value) for text, value in record["defaults"]),
        choices=tuple((version_of(text), tuple(all)) for text, all in record.get("choices", ())),
        shorts=tuple(dict.fromkeys(short for _, shape in shapes for short in shape.shorts)),
        aliases=tuple(dict.fromkeys(alias for _, shape in shapes for alias in shape.aliases)),
        negatable=any(shape.negatable for _, shape in shapes),
        minimum=newest.bounds.minimum,
        maximum=newest.bounds.maximum,
        human=any(shape.type == "tokens" for _, shape in shapes),
        replaced_by=replaced_by,
        group=record["group"],
        shapes=shapes,
        positional=any("positional" in shape for _, shape in record["shapes"]),
        absent=tuple(version_of(text) for text in record.get("absent", ())),
    )
