"""Answers into verdicts: bands and doubts of one rule on one case."""

from __future__ import annotations

from typing import Any, Literal

from capcheck.case import Case
from capcheck.case import Result as Raw
from capcheck.findings import Fail, Margin, Pass, Result, Rule, Skip, Words, place_of
from capcheck.guard import RAISED, describe
from capcheck.quantity import Verdict, verdict_of
from capcheck.terms import Spread, Terms, spread
from capcheck.values import NOWHERE, Origin, Place, Unknown, Value

RANK: dict[Verdict, int] = {"skip": 0, "pass": 0, "at risk": 1, "fail": 2}
# Whose sentences are made: a search for remedies needs none, `explain` those of passes, too.
Wording = Literal["none", "found", "all"]
WORST = ("skip", "pass", "at risk", "fail")


class Fault(Exception):
    """A rule raised, or answered nonsense: a fault of its plugin."""


def worst_of(verdicts: list[Verdict]) -> Verdict:
    """The verdict that counts of several; skip when there is none."""
    return max(verdicts, key=WORST.index, default="skip")


def _origin(where: object) -> Origin | None:
    return where.origin if isinstance(where, Value) else None


def _assumed(case: Case) -> tuple[str, ...]:
    return tuple(
        sorted(
            f"{'.'.join(path)}: {value.origin.why}"
            for path, value in case.deployment.fields.items()
            if value.origin.kind == "assumed"
        )
    )


def judge(case: Case, raw: Raw, wording: Wording = "found") -> list[Result]:
    """One rule's results on one case. Raises Fault."""
    rule = raw.rule
    if raw.error is not None:
        if isinstance(raw.error, Unknown):
            return [_lost(rule, raw.error)]
        raise Fault(f"{rule.id}: {describe(raw.error)}") from raw.error
    answer: Any = raw.answer
    if isinstance(answer, Margin):
        try:
            return [_judge_margin(case, rule, answer, raw.terms, wording)]
        except RAISED as error:
            raise Fault(f"{rule.id}: {describe(error)}") from error
    if isinstance(answer, Pass):
        return [Result(rule, "pass", reason=answer.reason)]
    if isinstance(answer, Skip):
        at = _sound_place(rule, answer.at) if answer.at is not None else None
        return [Result(rule, "skip", reason=answer.reason, at=at)]
    fails = (answer,) if isinstance(answer, Fail) else answer
    if not isinstance(fails, tuple) or not all(isinstance(one, Fail) for one in fails):
        what = f"{type(answer).__name__} {answer!r}"[:100]
        raise Fault(f"{rule.id}: answered {what}, not a Margin, Pass, Fail, Skip or tuple of Fail")
    return [_failed(case, rule, one) for one in fails] or [Result(rule, "pass")]


def _lost(rule: Rule, lost: Unknown) -> Result:
    """A skip at the place of the input that is missing."""
    place = lost.value.origin.place
    at = None if place == NOWHERE else place
    return Result(rule, "skip", reason=lost.reason, at=at, lack=lost.why)


def _sound_place(rule: Rule, where: object) -> Place:
    if isinstance(where, (Place, Value)):
        return place_of(where)
    raise Fault(f"{rule.id}: {type(where).__name__} is no place and no value")


def _failed(case: Case, rule: Rule, fail: Fail) -> Result:
    origin = _origin(fail.at)
    return Result(
        rule,
        "at risk" if fail.risk else "fail",
        Words(fail.message, fail.arithmetic, fail.help),
        _sound_place(rule, fail.at),
        origin.via if origin else (),
        origin.word if origin else "",
        severity=fail.severity,
        assumed=_assumed(case),
    )


def _banded(case: Case, rule: Rule, margin: Margin, terms: Terms) -> Spread:
    """The band of (have - need), from the rule's own answers at each term's ends.

    Where the rule does not compare at an end, it cannot fail there: left is not negative. Where
    it fails whatever the margin, left is negative.
    """

    def left(t: Terms) -> float:
        if t is terms:
            return margin.left
        try:
            answer = rule(case, t)
        except Unknown:
            return max(margin.left, 0.0)
        if isinstance(answer, Margin):
            return answer.left
        if isinstance(answer, (Pass, Skip)) or answer == ():
            return max(margin.left, 0.0)
        return min(margin.left, -abs(margin.need)) or -1.0

    return spread(left, terms)


def _judge_margin(case: Case, rule: Rule, margin: Margin, terms: Terms, wording: Wording) -> Result:
    made = _banded(case, rule, margin, terms)
    verdict = verdict_of(made.band)
    doubt = margin.doubt or case.doubt
    reason = ""
    if verdict == "fail" and doubt:
        verdict, reason = "at risk", doubt
    wanted = wording == "all" or (wording == "found" and verdict != "pass")
    said = margin.words(verdict, made.band) if wanted else Words("")
    if not isinstance(said, Words):
        raise TypeError(f"words gave {type(said).__name__}")
    origin = _origin(margin.at)
    return Result(
        rule, verdict, said, _sound_place(rule, margin.at),
        origin.via if origin else (), origin.word if origin else "",
        reason=reason, left=made.band, unit=margin.unit, assumed=_assumed(case),
        moved_by=made.moved_by,
    )  # fmt: skip
