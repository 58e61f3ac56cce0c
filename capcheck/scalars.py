"""What YAML 1.1 makes of a scalar's text, with the repairs that deployment files need.

Repairs: a number may have an exponent without sign or point (`1e9`, `70.6e9`; YAML 1.1 takes both
for text) and a leading sign before the point (`-.5`); `08` can be read as a whole number.
"""

from __future__ import annotations

import re
from math import isfinite

from capcheck.source import ScalarType

WORDS: dict[str, ScalarType] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), "null"),
    **dict.fromkeys(("yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"), "boolean"),
    **dict.fromkeys(("no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"), "boolean"),
}
_NO = frozenset({"no", "off", "false"})

_INTEGER = re.compile(r"[-+]?(?:0b[01_]+|0x[0-9a-fA-F_]+|0[0-7_]+|0|[1-9][0-9_]*(?::[0-5]?[0-9])*)")
_DECIMAL = re.compile(
    r"[-+]?(?:[0-9][0-9_]*(?:\.[0-9_]*)?|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?",
)
_SIXTIES = re.compile(r"[-+]?[0-9][0-9_]*(?::[0-5]?[0-9])+\.[0-9_]*")
_ENDLESS = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
_TIMESTAMP = re.compile(
    r"[0-9]{4}-[0-9]{2}-[0-9]{2}"
    r"|[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt]|[ \t]+)[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]*)?"
    r"(?:[ \t]*(?:Z|[-+][0-9]{1,2}(?::[0-9]{2})?))?"
)
_LONGEST = 400  # characters; a longer number does not fit a float
_FIRST = frozenset("0123456789+-.")


def type_of_plain(text: str) -> ScalarType:
    """The type of a scalar without quotes."""
    if text[:1] not in _FIRST:
        return WORDS.get(text, "text")
    if len(text) > _LONGEST:
        return "text"
    if _INTEGER.fullmatch(text):
        return "integer"
    if _DECIMAL.fullmatch(text):
        # 08 and 09 are no octal numbers, and without a point no decimal ones either.
        return "number" if any(mark in text for mark in ".eE") else "text"
    if _SIXTIES.fullmatch(text) or _ENDLESS.fullmatch(text):
        return "number"
    return "timestamp" if _TIMESTAMP.fullmatch(text) else "text"


def boolean_of(text: str) -> bool | None:
    """True or False for the words that YAML 1.1 takes for them."""
    return text.lower() not in _NO if WORDS.get(text) == "boolean" else None


def _minutes(digits: str) -> int:
    """`12:30` in base 60."""
    value = 0
    for part in digits.split(":"):
        value = value * 60 + int(part)
    return value


def integer_of(text: str, *, plain: bool) -> int | None:
    """The whole number that the text says; None when it says none, or one beyond a float.

    `plain` text is read as YAML 1.1 does (`017` is 15, `0x10` is 16, `12:30` is 750); quoted text
    as programs do that receive it as text (`017` is 17).
    """
    text = text.strip().replace("_", "") if len(text) <= _LONGEST else ""
    if plain and _INTEGER.fullmatch(text):
        digits = text.lstrip("+-")
        sign = -1 if text.startswith("-") else 1
        if ":" in digits:
            return _within(sign * _minutes(digits))
        base = 2 if digits[:2] == "0b" else 16 if digits[:2] == "0x" else 8
        if digits[:1] == "0" and digits != "0":
            return _within(sign * int(digits[2:] if base != 8 else digits, base))
    if not _DECIMAL.fullmatch(text):
        return None
    if not any(mark in text for mark in ".eE"):
        return _within(int(text))
    value = float(text)
    return int(value) if isfinite(value) and value == int(value) else None


def _within(value: int) -> int | None:
    return value if abs(value) < 10**308 else None


def number_of(text: str, *, plain: bool) -> float | None:
    """The finite number that the text says, whole or not; see `integer_of`."""
    whole = integer_of(text, plain=plain)
    if whole is not None:
        return float(whole)
    text = text.strip().replace("_", "") if len(text) <= _LONGEST else ""
    if _DECIMAL.fullmatch(text):
        value = float(text)
        return value if isfinite(value) else None
    if plain and _SIXTIES.fullmatch(text):
        before, _, seconds = text.lstrip("+-").rpartition(":")
        minutes = _within(_minutes(before))
        if minutes is not None:
            value = minutes * 60 + float(seconds)
            return -value if text.startswith("-") else value
    return None
