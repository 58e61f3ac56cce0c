"""One record per name over all releases, out of what each release says."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from vllm_reader.registry import Reading

Record = dict[str, Any]


def _span(present: Sequence[bool], releases: Sequence[str]) -> Record:
    """Edges of the stretch in which a name exists; None stands for the end of the table."""
    start = present.index(True)
    end = len(present) - 1 - present[::-1].index(True)
    span: Record = {}
    if start:
        span |= {"before_first": releases[start - 1], "first": releases[start]}
    if end + 1 < len(releases):
        span |= {"last": releases[end], "gone": releases[end + 1]}
    missing = [releases[at] for at in range(start, end) if not present[at]]
    return span | ({"absent": missing} if missing else {})


def changes(values: Iterable[tuple[str, Any]]) -> list[tuple[str, Any]]:
    """The values that differ from the one before, each with the release that brought it."""
    changes: list[tuple[str, Any]] = []
    for release, value in values:
        if not changes or changes[-1][1] != value:
            changes.append((release, value))
    return changes


def options(readings: Mapping[str, Sequence[Reading]]) -> list[Record]:
    """The option table of releases given oldest first: records sorted by name."""
    releases = list(readings)
    by_name: dict[str, dict[str, Reading]] = {}
    for release, found in readings.items():
        for reading in found:
            by_name.setdefault(reading.name, {})[release] = reading
    return [_option(name, by_name[name], releases) for name in sorted(by_name)]


def _option(name: str, found: Mapping[str, Reading], releases: Sequence[str]) -> Record:
    newest = found[max(found, key=releases.index)]
    shapes = [(release, dict(reading.shape)) for release, reading in found.items()]
    choices = changes((release, shape.pop("choices", [])) for release, shape in shapes)
    record: Record = {"name": name, "group": newest.group}
    record |= _span([release in found for release in releases], releases)
    record["defaults"] = changes((release, reading.default) for release, reading in found.items())
    record["shapes"] = changes(shapes)
    if any(values for _, values in choices):
        record["choices"] = [[release, _short(values)] for release, values in choices]
    return record


def _short(values: Sequence[str]) -> list[str]:
    return sorted(
        values, key=lambda value: (not value.isdigit(), len(value) * value.isdigit(), value)
    )


def spans(found: Mapping[str, Iterable[str]]) -> dict[str, Record]:
    """Edges by name, of the names that each release (oldest first) has."""
    releases = list(found)
    sets = {release: set(names) for release, names in found.items()}
    return {
        name: _span([name in sets[release] for release in releases], releases)
        for name in sorted(set().union(*sets.values()))
    }


def write_line(record: Record) -> str:
    """One compact JSON line."""
    return json.dumps(record, ensure_ascii=False, separators=(", ", ": "))
