"""Lines and columns of a text, as editors count them."""

from __future__ import annotations

import re
from bisect import bisect_right
from functools import lru_cache

_BREAK = re.compile(r"\r\n|\n|\r")


@lru_cache(maxsize=4)
def line_starts(text: str) -> tuple[int, ...]:
    """Where each line starts; there is always a first one."""
    return (0, *(found.end() for found in _BREAK.finditer(text)))


def position(starts: tuple[int, ...], offset: int) -> tuple[int, int]:
    """Line and column, from 1, of an offset in code points."""
    line = bisect_right(starts, offset)
    return line, offset - starts[line - 1] + 1
