"""Fitted constants as data: selection of the most specific one, and bands from their spread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from capcheck.quantity import Band

Facts = Mapping[str, Any]
Version = tuple[int, ...]


class TermError(Exception):
    """A term is missing or malformed: a fault of the plugin that reads or ships it."""


class Term(NamedTuple):
    """One constant: 90 % of what was seen lies in low..high; `when` says where it holds."""

    name: str
    when: tuple[tuple[str, Any], ...]
    low: float
    mid: float
    high: float
    unit: str
    cases: int
    dated: str
    source: str
    group: str = ""  # terms of one group move together
    kind: Literal["factor", "add", "value"] = "value"
    owner: str = ""


def term_of(record: Mapping[str, Any], owner: str) -> Term:
    """One record of a terms file. Raises TermError naming what is wrong with it."""
    try:
        low, mid, high = (float(record[key]) for key in ("low", "mid", "high"))
        name = str(record["name"])
        when = tuple(sorted(dict(record.get("when", {})).items()))
        meta = (str(record["unit"]), int(record["cases"]), str(record["dated"]), str(record["source"]))
    except (KeyError, TypeError, ValueError) as wrong:
        raise TermError(f"{owner}: a term lacks or misstates {wrong}") from wrong
    if not low <= mid <= high:
        raise TermError(f"{owner}: {name}: low, mid and high are out of order")
    kind = record.get("kind", "value")
    return Term(name, when, low, mid, high, *meta, str(record.get("group", "")), kind, owner)


def _version(text: str) -> Version:
    return tuple(int(part) for part in text.split(".") if part.isdigit())


def _holds_one(condition: str, have: Any) -> bool:
    for sign in (">=", "<=", ">", "<"):
        if condition.startswith(sign):
            bound = condition[len(sign) :]
            if isinstance(have, tuple):
                left, right = have, _version(bound)
                width = max(len(left), len(right))
                left += (0,) * (width - len(left))
                right += (0,) * (width - len(right))
                return _compare(sign, left, right)
            return _compare(sign, float(have), float(bound))
    if isinstance(have, tuple):
        return have == _version(condition)
    return str(have) == condition


def _compare(sign: str, left: Any, right: Any) -> bool:
    if sign == ">=":
        return bool(left >= right)
    if sign == "<=":
        return bool(left <= right)
    return bool(left > right) if sign == ">" else bool(left < right)


def holds(when: Iterable[tuple[str, Any]], facts: Facts) -> bool:
    """Whether every condition is met; a fact that is not known meets none.

    A condition is a word, a list of words (any), a number, or bounds as in ">=0.20,<0.26".
    """
    for key, wanted in when:
        have = facts.get(key)
        if have is None:
            return False
        if isinstance(wanted, list):
            if not any(_holds_one(str(one), have) for one in wanted):
                return False
        elif isinstance(wanted, bool):
            if bool(have) is not wanted:
                return False
        elif not all(_holds_one(part.strip(), have) for part in str(wanted).split(",")):
            return False
    return True


class TermBook:
    """All terms of all plugins, by name."""

    def __init__(self, files: Iterable[tuple[Path, str]]) -> None:
        self._files = tuple(files)
        self._terms: dict[str, list[Term]] | None = None

    def _all(self) -> dict[str, list[Term]]:
        if self._terms is None:
            found: dict[str, list[Term]] = {}
            for path, owner in self._files:
                for line in path.read_text(encoding="utf-8").splitlines():
                    if line.strip():
                        term = term_of(json.loads(line), owner)
                        found.setdefault(term.name, []).append(term)
            self._terms = found
        return self._terms

    def __iter__(self) -> Iterator[Term]:
        for terms in self._all().values():
            yield from terms

    def select(self, name: str, facts: Facts) -> Term:
        """The most specific term that holds; later plugins win ties. Raises TermError."""
        fitting = [term for term in self._all().get(name, ()) if holds(term.when, facts)]
        if not fitting:
            raise TermError(f"no term {name!r} holds here")
        return max(enumerate(fitting), key=lambda pair: (len(pair[1].when), pair[0]))[1]


class Terms:
    """The constants of one case at one point of their bands; notes which were read."""

    __slots__ = ("_book", "_facts", "_moved", "_reads", "key")

    def __init__(self, book: TermBook, facts: Facts, moved: Mapping[str, float] | None = None) -> None:
        self._book = book
        self._facts = facts
        self._moved = moved or {}
        self._reads: dict[str, Term] = {}
        self.key = tuple(sorted(self._moved.items()))

    def read(self, name: str, **also: Any) -> float:
        """The constant in its unit. `also` adds facts that only the reader knows."""
        label = name if not also else f"{name} {sorted(also.items())}"
        term = self._reads.get(label)
        if term is None:
            term = self._book.select(name, {**self._facts, **also} if also else self._facts)
            self._reads[label] = term
        return self._moved.get(label, term.mid)

    def note(self, other: Terms) -> None:
        """What `other` read counts as read here: for results that are shared."""
        self._reads.update(other._reads)

    def moved(self, changes: Mapping[str, float]) -> Terms:
        return Terms(self._book, self._facts, changes)

    @property
    def reads(self) -> Mapping[str, Term]:
        return self._reads


class Spread(NamedTuple):
    """An estimate's band, and how far each term moved it (bigger of both ends, signed)."""

    band: Band
    moved_by: tuple[tuple[str, float], ...]


def spread(evaluate: Callable[[Terms], float], mid_terms: Terms) -> Spread:
    """Evaluate at mid and with each read term at its ends; deviations add in quadrature per side.

    Terms of one group are moved together: their deviations add linearly.
    """
    mid = evaluate(mid_terms)
    groups: dict[str, list[tuple[str, Term]]] = {}
    for label, term in list(mid_terms.reads.items()):
        if term.low != term.high:
            groups.setdefault(term.group or label, []).append((label, term))
    down = up = 0.0
    moved: list[tuple[str, float]] = []
    for name, members in groups.items():
        ends = [
            evaluate(mid_terms.moved({label: getattr(term, end) for label, term in members})) - mid
            for end in ("low", "high")
        ]
        lowest, highest = min(0.0, *ends), max(0.0, *ends)
        down += lowest**2
        up += highest**2
        if lowest or highest:
            moved.append((name, highest if highest >= -lowest else lowest))
    moved.sort(key=lambda pair: -abs(pair[1]))
    return Spread(Band(mid - down**0.5, mid, mid + up**0.5), tuple(moved))
