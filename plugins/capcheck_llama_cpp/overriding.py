"""`override-tensor`: patterns of tensors' names, and the devices that they are sent to.

Patterns are regular expressions of strangers. Only tame ones are tried: short, with few
repetitions, none of which stands inside another.
"""

from __future__ import annotations

import re
import warnings
from typing import NamedTuple

MOST_PATTERNS = 256
LONGEST = 300
MOST_REPEATS = 3  # each multiplies the time by the length of a name, which is below 50
_REPEATED_GROUP = re.compile(r"\)(?:[*+]|\{)")
_REPEAT = re.compile(r"(?<!\\)(?:[*+]|\{\d*,\d*\})")
_DEVICE = re.compile(r"(?i)(?:cuda|rocm|hip|vulkan|sycl|musa|cann|metal|mtl)(?P<number>\d{0,3})")


class Override(NamedTuple):
    """Tensors that a pattern finds, and where they go: a device's number, or None: the host."""

    pattern: re.Pattern[str]
    device: int | None


def _tame(pattern: str) -> re.Pattern[str] | None:
    if not pattern or len(pattern) > LONGEST or re.search(r"\\[1-9]|\(\?(?!:)", pattern):
        return None
    if re.search(r"[\s;]", pattern):  # no tensor's name has any: it is a remark, or one mistake
        return None
    if _REPEATED_GROUP.search(pattern) or len(_REPEAT.findall(pattern)) > MOST_REPEATS:
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(pattern)
    except (re.error, OverflowError, RecursionError):
        return None


def _split(text: str) -> list[str]:
    """The list at its commas, without those inside braces or brackets."""
    parts, depth, start = [], 0, 0
    for at, char in enumerate(text):
        if char in "{[(":
            depth += 1
        elif char in "}])":
            depth -= 1
        elif char == "," and depth <= 0:
            parts.append(text[start:at])
            start = at + 1
    return [part for part in (*parts, text[start:]) if part.strip()]


def overrides(text: str) -> tuple[Override, ...] | None:
    """The overrides of one list, the first of which that finds a tensor decides; None when one of
    them cannot be told."""
    found = []
    parts = _split(text) if len(text) <= MOST_PATTERNS * LONGEST else []
    if not parts or len(parts) > MOST_PATTERNS:
        return None
    for part in parts:
        pattern, _, place = part.strip().rpartition("=")
        compiled, device = _tame(pattern), _device(place.strip())
        if compiled is None or device is False:
            return None
        found.append(Override(compiled, None if device is None else int(device)))
    return tuple(found)


def _device(place: str) -> int | bool | None:
    """A device's number, None for the host; False for no such place."""
    if place.upper() in ("CPU", "CUDA_HOST", "CPU_REPACK"):
        return None
    found = _DEVICE.fullmatch(place)
    return int(found["number"] or 0) if found else False


def placed(name: str, rules: tuple[Override, ...], otherwise: int | None) -> int | None:
    """Where a tensor goes."""
    for rule in rules:
        if rule.pattern.search(name):
            return rule.device
    return otherwise
