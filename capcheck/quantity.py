"""Units in and out, bands, and what a margin's band says."""

from __future__ import annotations

from typing import Literal, NamedTuple

KIB, MIB, GIB = 2.0**10, 2.0**20, 2.0**30

Verdict = Literal["pass", "at risk", "fail", "skip"]
Severity = Literal["error", "warning"]


class Band(NamedTuple):
    """An estimate with its 90 % range, in the unit of whoever made it."""

    low: float
    mid: float
    high: float

    @classmethod
    def exact(cls, value: float) -> Band:
        """A figure without error."""
        return cls(value, value, value)

    @property
    def is_exact(self) -> bool:
        """Whether the band has no width."""
        return self.low == self.high


def verdict_of(left: Band) -> Verdict:
    """Fail when the whole band of (have - need) is negative, pass when none of it is."""
    if left.high < 0:
        return "fail"
    return "pass" if left.low >= 0 else "at risk"
