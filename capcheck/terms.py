"""Fitted constants as data: selection of the most specific one, and bands from their spread."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from math import hypot, isfinite
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from capcheck.quantity import Band
from capcheck.term_facts import BadCondition, Facts, check_condition, holds
from capcheck.values import NOWHERE, Unknown, unknown

__all__ = [
    "Facts",
    "Spread",
    "Term",
    "TermBook",
    "TermError",
    "Terms",
    "holds",
    "spread",
    "term_of",
]

Kind = Literal["value", "factor", "add"]


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
    kind: Kind = "value"
    owner: str = ""
    sources: int = 0  # that the cases come from, where they were counted


class TermError(Exception):
    """A term is missing or malformed: a fault of the plugin that reads or ships it."""


def term_of(record: Mapping[str, Any], owner: str) -> Term:
    """One record of a terms file. Raises TermError naming what is wrong with it."""
    try:
        low, mid, high = (float(record[key]) for key in ("low", "mid", "high"))
        name = str(record["name"])
        when = tuple(sorted(dict(record.get("when", {})).items()))
        meta = (
            str(record["unit"]),
            int(record["cases"]),
            str(record["dated"]),
            str(record["source"]),
        )
        for _, condition in when:
            check_condition(condition)
    except BadCondition as wrong:
        raise TermError(f"{owner}: {name}: {wrong}") from wrong
    except (KeyError, TypeError, ValueError) as wrong:
        raise TermError(f"{owner}: a term lacks or misstates {wrong}") from wrong
    if not (low <= mid <= high and isfinite(low) and isfinite(high)):
        raise TermError(f"{owner}: {name}: low, mid and high are no finite numbers in order")
    kind = record.get("kind", "value")
    if kind not in get_args(Kind):
        raise TermError(f"{owner}: {name}: {kind!r} is no kind of term")
    group, sources = str(record.get("group", "")), int(record.get("sources", 0))
    return Term(name, when, low, mid, high, *meta, group, kind, owner, sources)


def _refuse(owner: str, message: str) -> None:
    raise TermError(f"{owner}: {message}")


class TermBook:
    """All terms of all plugins, by name.

    `report(owner, message)` is told of each line that is no term; the others are used. Without
    it such a line raises TermError.
    """

    def __init__(
        self,
        files: Iterable[tuple[Path, str]],
        report: Callable[[str, str], None] = _refuse,
    ) -> None:
        self._files = tuple(files)
        self._report = report
        self._terms: dict[str, list[Term]] | None = None

    def _lines(self, path: Path, owner: str) -> Iterator[Term]:
        try:
            text = path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as wrong:
            self._report(owner, f"terms: {path.name}: {wrong}")
            return
        for number, line in enumerate(text.splitlines(), 1):
            if not line.strip():
                continue
            try:
                yield term_of(json.loads(line), owner)
            except (TermError, ValueError, RecursionError) as wrong:
                self._report(owner, f"terms: {path.name}:{number}: {wrong}")

    def _all(self) -> dict[str, list[Term]]:
        if self._terms is None:
            found: dict[str, list[Term]] = {}
            for path, owner in self._files:
                for term in self._lines(path, owner):
                    found.setdefault(term.name, []).append(term)
            self._terms = found
        return self._terms

    def __iter__(self) -> Iterator[Term]:
        for terms in self._all().values():
            yield from terms

    def select(self, name: str, facts: Facts) -> Term:
        """The term with the most conditions of those that hold; later plugins win ties.

        Raises TermError for a name that nobody ships, Unknown where nothing was fitted for such
        a case.
        """
        named = self._all().get(name)
        if named is None:
            raise TermError(f"no plugin ships the term {name!r}")
        fitting = [term for term in named if holds(term.when, facts)]
        if not fitting:
            raise Unknown(unknown(NOWHERE, f"{name} was not fitted for such a case"))
        return max(enumerate(fitting), key=lambda pair: (len(pair[1].when), pair[0]))[1]


class Terms:
    """The constants of one case at one point of their bands; notes which were read."""

    __slots__ = ("_book", "_chosen", "_facts", "_moved", "_reads", "key")

    def __init__(
        self,
        book: TermBook,
        facts: Facts,
        moved: Mapping[str, float] | None = None,
        chosen: dict[str, Term] | None = None,
    ) -> None:
        self._book = book
        self._facts = facts
        self._moved = moved or {}
        self._chosen = {} if chosen is None else chosen  # what the facts select, by label
        self._reads: dict[str, Term] = {}
        self.key = tuple(sorted(self._moved.items()))

    def read(self, name: str, **also: Any) -> float:
        """The constant in its unit. `also` adds facts that only the reader knows.

        Raises TermError and Unknown as `TermBook.select`.
        """
        label = name
        if also:
            label = f"{name} ({', '.join(f'{key} {also[key]}' for key in sorted(also))})"
        term = self._reads.get(label)
        if term is None:
            term = self._chosen.get(label)
            if term is None:
                term = self._book.select(name, {**self._facts, **also} if also else self._facts)
                self._chosen[label] = term
            self._reads[label] = term
        return self._moved.get(label, term.mid)

    def note(self, other: Terms) -> None:
        """What `other` read counts as read here: for results that are shared."""
        self._reads.update(other._reads)

    def moved(self, changes: Mapping[str, float]) -> Terms:
        """The same constants with those of `changes`, by label, at other values."""
        return Terms(self._book, self._facts, changes, self._chosen)

    @property
    def reads(self) -> Mapping[str, Term]:
        """The terms that were read, by label: the name, with the facts that the reader added."""
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
        down = hypot(down, lowest)
        up = hypot(up, highest)
        if lowest or highest:
            moved.append((name, highest if highest >= -lowest else lowest))
    moved.sort(key=lambda pair: -abs(pair[1]))
    return Spread(Band(mid - down, mid, mid + up), tuple(moved))
