"""Estimates for people, each in its unit."""

from __future__ import annotations

import pytest

from capcheck.amounts import amount, around
from capcheck.quantity import Band


@pytest.mark.parametrize(
    ("value", "unit", "shown"),
    [
        (131072, "B", "128 KiB"), (25_250_000_000, "B", "23.5 GiB"), (0.052, "s", "52.0 ms"),
        (936e9, "B/s", "936.0 GB/s"),
        (2.35e12, "B/s", "2,350 GB/s"), (1.5e12, "FLOP/s", "1.5 TFLOP/s"), (0.3, "share", "30 %"),
        (39_482, "tokens", "39,482 tokens"), (4.8, "requests", "4.8 requests"), (7, "1", "7"),
        (1234.5, "1", "1,234"), (0.25, "", "0.25"),
    ],
)  # fmt: skip
def test_amounts(value: float, unit: str, shown: str) -> None:
    assert amount(value, unit) == shown


def test_bands() -> None:
    assert around(Band(1, 2, 3), "tokens") == "1 tokens … 3 tokens"
    assert around(Band.exact(2), "tokens") == ""
