"""Estimates for people: each in the unit that its owner gave it."""

from __future__ import annotations

from capcheck.measure import show_bytes, show_seconds, show_share
from capcheck.quantity import Band

_LARGE = (("B/s", 1e9, "GB/s"), ("FLOP/s", 1e12, "TFLOP/s"))


def amount(value: float, unit: str) -> str:
    """`23.5 GiB`, `52.0 ms`, `936 GB/s`, `39,482 tokens`, `4.8 requests`, `30 %`."""
    if unit == "B":
        return show_bytes(value)
    if unit == "s":
        return show_seconds(value)
    if unit == "share":
        return show_share(value)
    for name, size, word in _LARGE:
        if unit == name:
            return f"{value / size:,.{0 if abs(value) >= 1000 * size else 1}f} {word}"
    shown = f"{value:,.0f}" if abs(value) >= 1000 else f"{value:,.2f}".rstrip("0").rstrip(".")
    return shown if unit in ("1", "") else f"{shown} {unit}"


def around(band: Band, unit: str) -> str:
    """The band's ends; "" when the figure is exact."""
    return "" if band.is_exact else f"{amount(band.low, unit)} … {amount(band.high, unit)}"
