"""What is wrong with the input itself."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capcheck.values import Place

MOST_SUGGESTED = 3


class Problem(NamedTuple):
    """One fault of the input, at its place. `rule` is the id of a notice: spec/*, capcheck/*."""

    rule: str
    message: str
    place: Place
    help: str = ""


def suggestion(near: Sequence[str]) -> str:
    """ "did you mean ...?" for near misses; "" without any."""
    return f"did you mean {' or '.join(near[:MOST_SUGGESTED])}?" if near else ""
