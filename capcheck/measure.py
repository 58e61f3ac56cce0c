"""Text to numbers with units, and numbers to text at the edges: SI units inside.

Every `parse_*` takes the text of a field and raises `NotAMeasure` for what it cannot read; every
`show_*` takes a plain number in the unit of its name and never raises.
"""

from __future__ import annotations

import re
from math import isfinite

from capcheck.quantity import GIB, KIB, MIB

TIB = 2.0**40

_NUMBER = r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?"
_LONGEST = 100  # characters; no measure is longer, and Python refuses very long integers

# vLLM reads lower-case suffixes as decimal, with fractions, and upper-case ones as binary.
_DECIMAL_COUNTS = {"k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_BINARY_COUNTS = {"K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}

_DECIMAL_PREFIXES = {"k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15}
_BINARY_PREFIXES = {"K": KIB, "M": MIB, "G": GIB, "T": TIB, "P": 2.0**50}
_BYTE_UNITS: dict[str, float] = {
    "": 1.0,
    "B": 1.0,
    "byte": 1.0,
    "bytes": 1.0,
    "KB": 1e3,
    **_DECIMAL_PREFIXES,
    **{name + "B": factor for name, factor in _DECIMAL_PREFIXES.items()},
    **{name.lower() + "b": factor for name, factor in _DECIMAL_PREFIXES.items()},
    **{name + "i": factor for name, factor in _BINARY_PREFIXES.items()},
    **{name + "iB": factor for name, factor in _BINARY_PREFIXES.items()},
    **{name.lower() + "ib": factor for name, factor in _BINARY_PREFIXES.items()},
}

_SECOND_UNITS: dict[str, float] = {
    **dict.fromkeys(("ns",), 1e-9),
    **dict.fromkeys(("us", "µs", "μs"), 1e-6),
    **dict.fromkeys(("ms",), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1.0),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60.0),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600.0),
    **dict.fromkeys(("d", "day", "days"), 86400.0),
}


class NotAMeasure(ValueError):
    """The text is not such a measure. `expected` says what is, to follow "is not" or "expected"."""

    def __init__(self, expected: str) -> None:
        super().__init__(expected)
        self.expected = expected


def _float(text: str, expected: str) -> float:
    """One finite number in the way of Python, YAML and JSON."""
    if len(text) > _LONGEST or not re.fullmatch(_NUMBER, text):
        raise NotAMeasure(expected)
    value = float(text.replace("_", ""))
    if not isfinite(value):
        raise NotAMeasure(expected)
    return value


def _split(text: str, expected: str) -> tuple[float, str]:
    """A number and the unit behind it, blanks between them dropped."""
    text = text.strip()
    found = re.match(_NUMBER, text) if len(text) <= _LONGEST else None
    if found is None:
        raise NotAMeasure(expected)
    return _float(found[0], expected), text[found.end() :].strip()


def parse_number(text: str) -> float:
    """A finite number: `0.9`, `1e9`, `70.6e9`, `1_000`."""
    return _float(text.strip(), "a number")


def parse_count(text: str) -> int:
    """A whole number: `32768`, `1_000`, `1e6`, `32k` (32,000) and `32K` (32,768).

    The suffixes are vLLM's: k m g t are decimal and may follow a fraction (cut off towards zero),
    K M G T are binary and may not.
    """
    expected = "a whole number such as 32768, 32k or 32K"
    text = text.strip()
    if len(text) > _LONGEST:
        raise NotAMeasure(expected)
    if re.fullmatch(r"[-+]?[0-9][0-9_]*", text):
        return int(text.replace("_", ""))
    found = re.fullmatch(r"([-+]?[0-9]+(?:\.[0-9]+)?)([kmgtKMGT])", text)
    if found is not None:
        number, suffix = found[1], found[2]
        if suffix in _DECIMAL_COUNTS:
            return int(float(number) * _DECIMAL_COUNTS[suffix])
        if "." not in number:
            return int(number) * _BINARY_COUNTS[suffix]
        decimal = f"{number}{suffix.lower()}"
        raise NotAMeasure(f"{expected} ({suffix} takes no fraction; {decimal} does)")
    value = _float(text, expected)
    if value != int(value):
        raise NotAMeasure(expected)
    return int(value)


def parse_bytes(text: str) -> float:
    """Bytes: `24GB` and `24G` are 24 x 10^9, `24GiB` and `24Gi` 24 x 2^30, a bare number bytes."""
    expected = "a size such as 24GB, 24GiB or 24Gi"
    number, unit = _split(text, expected)
    if number < 0 or unit not in _BYTE_UNITS:
        raise NotAMeasure(expected)
    return number * _BYTE_UNITS[unit]


def parse_seconds(text: str) -> float:
    """Seconds: `800ms`, `1.5s`, `85us`, `2m`, `2min`, `1m30s`; a bare number is seconds."""
    expected = "a time such as 800ms, 1.5s or 2min"
    rest = text.strip()
    if len(rest) > _LONGEST:
        raise NotAMeasure(expected)
    if re.fullmatch(_NUMBER, rest):
        seconds = _float(rest, expected)
    else:
        seconds = 0.0
        while rest:
            found = re.match(r"([0-9]+(?:\.[0-9]*)?|\.[0-9]+)\s*([a-zµμ]+)\s*", rest)
            if found is None or found[2] not in _SECOND_UNITS:
                raise NotAMeasure(expected)
            seconds += float(found[1]) * _SECOND_UNITS[found[2]]
            rest = rest[found.end() :]
    if seconds < 0 or not text.strip():
        raise NotAMeasure(expected)
    return seconds


def parse_rate(text: str) -> float:
    """Per second: `4/s`, `240/min`, `3/h`; a bare number is per second."""
    expected = "a rate such as 4/s, 240/min or 3/h"
    number, unit = _split(text, expected)
    if unit.startswith("/"):
        unit = unit[1:].strip()
    elif unit:
        raise NotAMeasure(expected)
    else:
        unit = "s"
    if number < 0 or unit not in _SECOND_UNITS:
        raise NotAMeasure(expected)
    return number / _SECOND_UNITS[unit]


def parse_share(text: str) -> float:
    """A share of one: `0.3` or `30%`, from 0 to 1."""
    expected = "a share between 0 and 1, such as 0.3 or 30%"
    number, unit = _split(text, expected)
    if unit not in ("", "%"):
        raise NotAMeasure(expected)
    share = number / 100 if unit else number
    if not 0 <= share <= 1:
        raise NotAMeasure(expected)
    return share


def _show(value: float, steps: tuple[tuple[float, float, str, int], ...]) -> str:
    """The first step whose limit the value stays under: (limit, size, unit, decimals)."""
    size, unit, decimals = next(
        (size, unit, decimals)
        for limit, size, unit, decimals in steps
        if not isfinite(limit) or round(abs(value) / size, decimals) * size < limit
    )
    return f"{value / size:,.{decimals}f} {unit}"


def show_bytes(value: float) -> str:
    """Binary units: `23.5 GiB`, `128 KiB`."""
    if not isfinite(value):
        return f"{value} B"
    shown = _show(
        value,
        (
            (KIB, 1.0, "B", 0),
            (MIB, KIB, "KiB", 1),
            (GIB, MIB, "MiB", 1),
            (TIB, GIB, "GiB", 1),
            (float("inf"), TIB, "TiB", 1),
        ),
    )
    return shown.replace(".0 KiB", " KiB")


def show_seconds(value: float) -> str:
    """`85 us`, `52.0 ms`, `1.2 s`, `10.0 min`, `3.0 h`."""
    if not isfinite(value) or value == 0:
        return f"{value:.0f} s"
    return _show(
        value,
        (
            (1e-3, 1e-6, "us", 0),
            (1.0, 1e-3, "ms", 1),
            (120.0, 1.0, "s", 1),
            (7200.0, 60.0, "min", 1),
            (float("inf"), 3600.0, "h", 1),
        ),
    )


def show_count(value: float) -> str:
    """Rounded to a whole number, in groups of three: `32,768`."""
    return f"{round(value):,}" if isfinite(value) else str(value)


def show_share(value: float) -> str:
    """Per cent, with a decimal where there is one: `30 %`, `97.5 %`."""
    return f"{value * 100:,.1f}".removesuffix(".0") + " %"


def show_rate(value: float) -> str:
    """Per second, or in the longest unit that keeps a figure before the point: `4.0/s`, `3.0/h`."""
    for size, unit in ((1.0, "s"), (60.0, "min"), (3600.0, "h")):
        if abs(value) * size >= 1:
            return f"{value * size:,.1f}/{unit}"
    return f"{value * 3600:,.2g}/h" if value else "0/s"
