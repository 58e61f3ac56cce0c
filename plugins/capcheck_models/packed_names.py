"""What a model's name says of its packing, and the name that is left without it."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from capcheck.quantization import Scheme

from .checkpoints import scheme

_DATA = Path(__file__).parent / "data"
_MOST_SUFFIXES = 5  # of one name, one kind after the other
_IDLE_RULE, _SUFFIX_RULE, _OWNER_RULE = 0, 1, 2  # orders of patterns.jsonl
_FILE_SUFFIX = re.compile(
    r"(?i)(?:[-_.](?:i1-)?gguf|[-_.](?:i1-)?(?:ud-)?i?q\d(?:_\w{1,4}){0,2}|[-_.](?:\d(?:\.\d{1,2})?bpw|"
    r"exl[23]|mlx|hqq|eetq|bnb|nf4|int8|w8a8[-_]int8|quantized\.int8|marlin|imat(?:rix)?))+$"
)
_OF_OWNER = re.compile(r"^([A-Za-z0-9-]{2,40})[_.](.{3,})$")  # bartowski/Qwen_Qwen3-8B-GGUF
_PREFIX = re.compile(r"(?i)^huihui-")


@lru_cache(maxsize=8)
def _lines(file: str) -> tuple[Mapping[str, Any], ...]:
    lines = (_DATA / file).read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line)


@lru_cache(maxsize=8)
def rules(order: int) -> tuple[Mapping[str, Any], ...]:
    """The rules of patterns.jsonl of one order: 0 and 1 suffixes, 2 owners, 3 families."""
    return tuple(rule for rule in _lines("patterns.jsonl") if rule["order"] == order)


def suffix_doubts(name: str, left: str) -> tuple[str, ...]:
    """What an upload may have otherwise than the name that is left without its suffix."""
    if name == left:
        return ()
    rule = rules(_IDLE_RULE)[0]
    found = re.match(rule["match"], name)
    idle = found is not None and len(found[1]) <= len(left)
    return tuple((rule if idle else rules(_SUFFIX_RULE)[0])["may_differ"])


def without_suffix(name: str) -> tuple[str, ...]:
    """The name without what tells of its packing, one kind of suffix after the other.

    Words that change neither packing nor architecture, "abliterated", go last: a name that holds
    one may be listed.
    """
    found: list[str] = []
    left = name
    for _ in range(_MOST_SUFFIXES):
        shorter = _stripped(left, _SUFFIX_RULE, _FILE_SUFFIX.sub("", left))
        if shorter == left:
            shorter = _stripped(left, _IDLE_RULE, left)
        if shorter == left or shorter.endswith("/"):
            break
        left = shorter
        found.append(left)
    return tuple(found)


def _stripped(name: str, order: int, shorter: str) -> str:
    match = re.match(rules(order)[0]["match"], shorter)
    return (match[1] if match else shorter) or name


def renamed(name: str) -> Iterator[str]:
    """The same name under the owner's other names."""
    owner, slash, rest = name.partition("/")
    if not slash:
        return
    for rule in rules(_OWNER_RULE):
        if owner.lower() in (one.lower() for one in rule["owners"]):
            yield f"{rule['to']}/{rest}"


def named_inside(name: str, owners: Mapping[str, str]) -> Iterator[str]:
    """The name that a packer's upload carries inside its own: owner_name, owner.name, Huihui-."""
    owner, slash, last = name.rpartition("/")
    bare = _PREFIX.sub("", last)
    if bare != last:
        yield f"{owner}{slash}{bare}"
    found = _OF_OWNER.match(last)
    if found is not None and found[1].lower() in owners:
        yield f"{owners[found[1].lower()]}/{found[2]}"


def packing_words(name: str) -> tuple[str, Scheme | None]:
    """The precision that a name speaks of and its usual scheme: a guess, `seen` is "name".

    With the owner's own habit, where several of its uploads are known to follow it, "recipe".
    """
    low = name.lower()
    for row in _lines("suffixes.jsonl"):
        if row["hint"] in low and re.search(row["match"], name):
            habit = _habit(name, row["word"])
            if habit is not None:
                return row["word"], habit
            return row["word"], scheme(row["scheme"], "name", f"the name {name.rstrip(':')}")
    return "", None


def _habit(name: str, word: str) -> Scheme | None:
    owner = name.partition("/")[0].lower() if "/" in name else ""
    for row in _lines("habits.jsonl"):
        if row["owner"] == owner and row["word"] == word and re.search(row["match"], name):
            return scheme(row["scheme"], "recipe", row["source"])
    return None
