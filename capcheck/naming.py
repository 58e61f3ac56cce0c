"""How people write the name of a device: sizes, counts and remarks taken apart."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_SIZE = re.compile(r"(?<![A-Za-z0-9.])(\d{1,4}(?:\.\d+)?)[ _-]?g(?:i?b)?(?![A-Za-z0-9])", re.I)
_COUNT_FIRST = re.compile(r"(\d{1,4})\s*[x×]\s*(?=[A-Za-z])")
_COUNT_LAST = re.compile(r"(?:\s*:\s*|\s+[x×]\s*)(\d{1,4})$")
_REMARK = re.compile(r"\s*\(([^()]*)\)$")


class Reading(NamedTuple):
    """One way to read a name: the words left, and the memory size that was among them (GB)."""

    text: str
    size_gb: float | None = None


def without_count(text: str) -> tuple[str, int | None]:
    """`8x H100`, `H100:8` and `H100 x8` as H100 and 8; other text as it is."""
    first = _COUNT_FIRST.match(text)
    if first:
        return text[first.end() :].strip(), int(first[1])
    last = _COUNT_LAST.search(text)
    if last:
        return text[: last.start()].strip(), int(last[1])
    return text, None


def _without_size(text: str) -> Reading | None:
    """The text without its only memory size; None when it has none or several."""
    sizes = list(_SIZE.finditer(text))
    if len(sizes) != 1:
        return None
    size = sizes[0]
    left = f"{text[: size.start()]} {text[size.end() :]}".strip(" -_,")
    return Reading(left, float(size[1])) if left else None


def readings(text: str) -> Iterator[Reading]:
    """The ways to read a name, the most literal first.

    A remark in parentheses at the end may name the memory size; otherwise it is left out.
    """
    yield Reading(text)
    sized = _without_size(text)
    if sized is not None:
        yield sized
    remark = _REMARK.search(text)
    if remark is None or remark.start() == 0:
        return
    base = text[: remark.start()]
    inside = _SIZE.search(remark[1])
    if inside and _without_size(base) is None:
        yield Reading(base, float(inside[1]))
    yield from readings(base)
