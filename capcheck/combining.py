"""One verdict over all alternatives: what they share, or where they part."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from capcheck.case import Case
from capcheck.findings import Result
from capcheck.judge import WORST
from capcheck.quantity import Band, Verdict
from capcheck.values import Place

MOST_NAMED = 3
FOUND: tuple[Verdict, ...] = ("at risk", "fail")
SAYS: dict[Verdict, str] = {
    "pass": "passes", "at risk": "is at risk", "fail": "fails", "skip": "cannot be told",
}  # fmt: skip


class Judged(NamedTuple):
    """A result of one case; `case` tells which alternative it was."""

    case: Case
    result: Result


class _Alternative(NamedTuple):
    """One case's results of one rule."""

    case: Case
    verdict: Verdict  # the worst
    ones: tuple[Judged, ...]

    def at(self, place: Place | None) -> Verdict:
        """The verdict at one place of several; the place that is not marked is fine."""
        here = [one.result.verdict for one in self.ones if one.result.at == place]
        if here:
            return max(here, key=WORST.index)
        return "skip" if self.verdict == "skip" else "pass"


def combine(judged: Sequence[Judged]) -> list[Judged]:
    """The results of one rule on all alternatives of a deployment as one verdict.

    A common verdict stands. Where alternatives differ the finding is at risk and says which
    ones pass and which ones fail; a rule with several findings is compared place by place.
    """
    by_case: dict[int, list[Judged]] = {}
    for one in judged:
        by_case.setdefault(id(one.case), []).append(one)
    if len(by_case) <= 1:
        return list(judged)
    found = [
        _Alternative(
            ones[0].case,
            max((one.result.verdict for one in ones), key=WORST.index),
            tuple(ones),
        )
        for ones in by_case.values()
    ]
    verdicts = {one.verdict for one in found}
    if verdicts <= {"pass", "skip"}:
        return [_harmless(found)]
    if _is_one_question(found):
        return [_one_place(found)]
    return _by_place(found, certain=verdicts == {"fail"})


def _is_one_question(found: Sequence[_Alternative]) -> bool:
    """Whether each alternative answers one thing: a margin, whatever it marks, or one place."""
    if any(len(one.ones) > 1 for one in found):
        return False
    results = [one.ones[0].result for one in found if one.verdict in FOUND]
    return all(one.left is not None for one in results) or len({one.at for one in results}) == 1


def _harmless(found: Sequence[_Alternative]) -> Judged:
    """A pass, naming the alternatives that nothing can be said of; a skip when it is all."""
    shown = max(found, key=lambda one: WORST.index(one.verdict)).ones[0]
    lost = [one for one in found if one.verdict == "skip"]
    if not lost or shown.result.verdict == "skip":
        return shown
    reason = lost[0].ones[0].result.reason
    note = f"not judged {_labels(lost)}: {reason}"
    return shown._replace(result=shown.result._replace(reason=note))


def _one_place(found: Sequence[_Alternative]) -> Judged:
    """One finding in each alternative at most, wherever it stands."""
    verdicts = {one.verdict for one in found}
    worst = [one for one in found if one.verdict == max(verdicts, key=WORST.index)]
    shown = max(worst, key=_left).ones[0]
    if len(verdicts) > 1:
        return _softened(shown, _split(found))
    others = [
        one for one in worst if one.ones[0].result.words.message != shown.result.words.message
    ]
    if not others:
        return shown
    same = "; ".join(filter(None, (shown.result.reason, f"the same {_labels(others)}")))
    return shown._replace(result=shown.result._replace(reason=same))


def _left(one: _Alternative) -> float:
    """How close to passing: the least bad alternative's figures are shown."""
    return max((judged.result.left or Band(0, 0, 0)).high for judged in one.ones)


def _by_place(found: Sequence[_Alternative], *, certain: bool) -> list[Judged]:
    """Each place that any alternative marks, with what the others say of it.

    `certain`: every alternative fails somewhere, so that one finding stays a fail.
    """
    ones = [judged for one in found for judged in one.ones if judged.result.verdict in FOUND]
    combined = []
    for place in dict.fromkeys(one.result.at for one in ones):
        here = [one._replace(verdict=one.at(place)) for one in found]
        at_place = [one for one in ones if one.result.at == place]
        shown = max(at_place, key=lambda one: WORST.index(one.result.verdict))
        if len({one.verdict for one in here}) > 1:
            shown = _softened(shown, _split(here))
        combined.append(shown)
    if certain and all(one.result.verdict != "fail" for one in combined):
        first = found[0].ones[0]
        combined[0] = first._replace(
            result=first.result._replace(reason="the alternatives fail for different reasons")
        )
    return combined


def _softened(one: Judged, why: str) -> Judged:
    return one._replace(result=one.result._replace(verdict="at risk", reason=why))


def _labels(found: Iterable[_Alternative]) -> str:
    names = [one.case.label or "as written" for one in found]
    shown = ", ".join(names[:MOST_NAMED])
    more = len(names) - MOST_NAMED
    return f"{shown} and {more} more" if more > 0 else shown


def _split(found: Sequence[_Alternative]) -> str:
    """`passes on A; fails on B and C`."""
    parts = []
    for verdict, says in SAYS.items():
        those = [one for one in found if one.verdict == verdict]
        if those:
            parts.append(f"{says} {_labels(those)}")
    return "; ".join(parts)
