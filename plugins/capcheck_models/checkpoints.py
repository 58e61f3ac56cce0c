"""Quantized uploads and aliases, looked up as lines of the shipped files.

A lookup reads a file once and parses only the line it finds: `key` is the lower-case id and
comes first on every line.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from capcheck.quantization import Scheme

_DATA = Path(__file__).parent / "data"
CHECKPOINTS, ALIASES = "checkpoints.jsonl", "aliases.jsonl"


class Checkpoint(NamedTuple):
    """What is known of one quantized upload."""

    id: str
    base: str | None  # the catalogue's architecture; None: it is not there
    scheme: Scheme | None  # None: `why` says what keeps it unknown
    why: str
    seen: str  # config, document, total or recipe: only "config" is a fact about the upload
    source: str
    config: Mapping[str, Any]  # what was seen of its quantization_config
    differs: Mapping[str, Any]  # sizes in which its config.json differs from the base
    notes: tuple[str, ...]
    evidence: str


class Alias(NamedTuple):
    """Another upload with the architecture of a catalogue entry."""

    id: str
    base: str
    how: str  # "equal shapes and total", "pattern", "by hand" ...
    differs: Mapping[str, Any]
    notes: tuple[str, ...]


@lru_cache(maxsize=4)
def _text(name: str) -> str:
    return "\n" + (_DATA / name).read_text(encoding="utf-8")


def _escaped(key: str) -> str:
    return json.dumps(key, ensure_ascii=False)[1:-1]


def _record(name: str, key: str) -> Mapping[str, Any] | None:
    """The record of a lower-case id."""
    text = _text(name)
    start = text.find(f'\n{{"key": "{_escaped(key)}"')
    return None if start < 0 else _parsed(text, start + 1)


def _parsed(text: str, start: int) -> Mapping[str, Any]:
    end = text.find("\n", start)
    record: Mapping[str, Any] = json.loads(text[start : len(text) if end < 0 else end])
    return record


def _of_last_part(name: str, last: str) -> Iterator[Mapping[str, Any]]:
    """The records whose id ends in this lower-case part, whoever owns them."""
    text, wanted = _text(name), f'/{_escaped(last)}", "id"'
    at = text.find(wanted)
    while at >= 0:
        yield _parsed(text, text.rfind("\n", 0, at) + 1)
        at = text.find(wanted, at + 1)


def checkpoint(id: str) -> Checkpoint | None:
    """The quantized upload of that id, in any spelling of its letters' case."""
    record = _record(CHECKPOINTS, id.lower())
    return None if record is None else _checkpoint(record)


def checkpoints_named(last: str) -> tuple[Checkpoint, ...]:
    """The quantized uploads of that name, of any owner."""
    return tuple(_checkpoint(record) for record in _of_last_part(CHECKPOINTS, last.lower()))


def all_checkpoints() -> Iterator[Checkpoint]:
    """Every quantized upload, in the file's order."""
    for line in _text(CHECKPOINTS).splitlines():
        if line:
            yield _checkpoint(json.loads(line))


def known_ids() -> tuple[str, ...]:
    """Every quantized upload and alias, for names that are near one."""
    ids = re.compile(r'^\{"key": "[^"]*", "id": "([^"]+)"', re.MULTILINE)
    return (*ids.findall(_text(CHECKPOINTS)), *ids.findall(_text(ALIASES)))


@lru_cache(maxsize=1)
def alias_bases() -> frozenset[tuple[str, str]]:
    """Every alias with the catalogue's id of its architecture, for names that are near one."""
    pairs = re.compile(r'^\{"key": "[^"]*", "id": "([^"]+)", "base": "([^"]+)"', re.MULTILINE)
    return frozenset(pairs.findall(_text(ALIASES)))


def alias(id: str) -> Alias | None:
    """The alias of that id, in any spelling of its letters' case."""
    record = _record(ALIASES, id.lower())
    return None if record is None else _alias(record)


def aliases_named(last: str) -> tuple[Alias, ...]:
    """The aliases of that name, of any owner."""
    return tuple(_alias(record) for record in _of_last_part(ALIASES, last.lower()))


def scheme_of(record: Checkpoint) -> Scheme | None:
    """How the upload's weights are packed; `Scheme.seen` tells how that is known."""
    return record.scheme


def _checkpoint(record: Mapping[str, Any]) -> Checkpoint:
    told = record.get("scheme")
    return Checkpoint(
        id=record["id"],
        base=record["base"],
        scheme=None if told is None else scheme(told, record["seen"], record["source"]),
        why=record.get("why", ""),
        seen=record["seen"],
        source=record["source"],
        config=record.get("config", {}),
        differs=record.get("differs", {}),
        notes=tuple(record.get("notes", ())),
        evidence=record.get("evidence", ""),
    )


def _alias(record: Mapping[str, Any]) -> Alias:
    return Alias(
        id=record["id"],
        base=record["base"],
        how=record["how"],
        differs=record.get("differs", {}),
        notes=tuple(record.get("notes", ())),
    )


def scheme(fields: Mapping[str, Any], seen: Any, source: str = "") -> Scheme:
    """A scheme from its stored fields; lists become tuples, and parts schemes."""
    told: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in fields.items()
    }
    told["parts"] = tuple(scheme(part, seen, source) for part in fields.get("parts", ()))
    return Scheme(**told, seen=seen, source=source)
