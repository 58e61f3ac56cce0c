"""Where a fitted constant holds: conditions on the facts of a case."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterable, Mapping
from typing import Any

Facts = Mapping[str, Any]
Version = tuple[int, ...]

_SIGNS: Mapping[str, Callable[[Any, Any], bool]] = {
    ">=": operator.ge, "<=": operator.le, ">": operator.gt, "<": operator.lt,
}  # fmt: skip


class BadCondition(ValueError):
    """A condition cannot be read."""


def _signed(part: str) -> tuple[str, str]:
    """A bound's sign and what is behind it; no sign for a plain word."""
    for sign in _SIGNS:
        if part.startswith(sign):
            return sign, part[len(sign) :].strip()
    return "", part


def _parts(condition: Any) -> list[tuple[str, str]]:
    """A word as it is; bounds as in ">=0.20,<0.26" one by one."""
    text = str(condition).strip()
    if not text.startswith(("<", ">")):
        return [("", text)]
    return [_signed(part.strip()) for part in text.split(",")]


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _version(text: str) -> Version | None:
    parts = text.split(".")
    return tuple(int(part) for part in parts) if all(part.isdigit() for part in parts) else None


def check_condition(condition: Any) -> None:
    """Raises BadCondition unless it is a word, a number, a flag, bounds, or a list of these."""
    if isinstance(condition, list):
        for one in condition:
            if isinstance(one, (list, dict)):
                raise BadCondition(f"{one!r} is no condition")
            check_condition(one)
        return
    if condition is None or isinstance(condition, dict):
        raise BadCondition(f"{condition!r} is no condition")
    for sign, bound in _parts(condition):
        if sign and _number(bound) is None and _version(bound) is None:
            raise BadCondition(f"{condition!r}: {bound!r} is no bound")


def _padded(left: Version, right: Version) -> tuple[Version, Version]:
    width = max(len(left), len(right))
    return left + (0,) * (width - len(left)), right + (0,) * (width - len(right))


def _meets(sign: str, bound: str, have: Any) -> bool:
    """One fact against one word or bound; what is no number is within no bounds."""
    compare = _SIGNS[sign] if sign else operator.eq
    if isinstance(have, tuple):
        version = _version(bound)
        return version is not None and compare(*_padded(have, version))
    if isinstance(have, (int, float)) and not isinstance(have, bool):
        number = _number(bound)
        return number is not None and compare(float(have), number)
    return not sign and str(have) == bound


def _holds_one(condition: Any, have: Any) -> bool:
    if isinstance(condition, bool):
        return bool(have) is condition
    return all(_meets(sign, bound, have) for sign, bound in _parts(condition))


def holds(when: Iterable[tuple[str, Any]], facts: Facts) -> bool:
    """Whether every condition is met; a fact that is not known meets none.

    A condition is a word, a list of words (any of them), a number, true or false, or bounds as
    in ">=0.20,<0.26", which hold for releases (tuples of numbers) and for numbers.
    """
    for key, wanted in when:
        have = facts.get(key)
        if have is None:
            return False
        any_of = wanted if isinstance(wanted, list) else [wanted]
        if not any(_holds_one(one, have) for one in any_of):
            return False
    return True
