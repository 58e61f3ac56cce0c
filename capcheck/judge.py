"""Answers into verdicts: bands, doubts, and one verdict over all alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capcheck.case import Case
from capcheck.case import Result as Raw
from capcheck.findings import Fail, Margin, Pass, Result, Rule, Skip, Words, place_of
from capcheck.quantity import Band, Verdict, verdict_of
from capcheck.terms import Terms
from capcheck.values import Origin, Unknown, Value

RANK: dict[Verdict, int] = {"skip": 0, "pass": 0, "at risk": 1, "fail": 2}


class Fault(Exception):
    """A rule raised, or did not answer: a fault of its plugin."""


class Judged(NamedTuple):
    """A result of one case; `case` tells which alternative it was."""

    case: Case
    result: Result


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


def judge(case: Case, raw: Raw) -> list[Result]:
    """One rule's results on one case. Raises Fault."""
    if raw.error is not None:
        if isinstance(raw.error, Unknown):
            lost = raw.error
            return [Result(raw.rule, "skip", reason=lost.reason, at=lost.value.origin.place)]
        raise Fault(f"{raw.rule.id}: {type(raw.error).__name__}: {raw.error}") from raw.error
    answer = raw.answer
    if isinstance(answer, Margin):
        return [_judge_margin(case, raw.rule, answer, raw.terms)]
    if isinstance(answer, Fail):
        return [_failed(case, raw.rule, answer)]
    if isinstance(answer, tuple) and not hasattr(answer, "_fields"):
        return [_failed(case, raw.rule, one) for one in answer] or [Result(raw.rule, "pass")]
    if isinstance(answer, Pass):
        return [Result(raw.rule, "pass", reason=answer.reason)]
    if isinstance(answer, Skip):
        at = place_of(answer.at) if answer.at is not None else None
        return [Result(raw.rule, "skip", reason=answer.reason, at=at)]
    raise Fault(f"{raw.rule.id}: answered {answer!r}, not a Margin, Pass, Fail or Skip")


def _failed(case: Case, rule: Rule, fail: Fail) -> Result:
    origin = _origin(fail.at)
    return Result(
        rule,
        "at risk" if fail.risk else "fail",
        Words(fail.message, fail.arithmetic, fail.help),
        place_of(fail.at),
        origin.via if origin else (),
        origin.word if origin else "",
        severity=fail.severity,
        assumed=_assumed(case),
    )


def _judge_margin(case: Case, rule: Rule, margin: Margin, terms: Terms) -> Result:
    def left(t: Terms) -> float:
        if t is terms:
            return margin.left
        answer = rule(case, t)
        if isinstance(answer, Margin):
            return answer.left
        return margin.left if isinstance(answer, Pass | Skip) else -abs(margin.need)

    from capcheck.terms import spread

    made = spread(left, terms)
    verdict = verdict_of(made.band)
    doubt = margin.doubt or case.doubt
    reason = ""
    if verdict == "fail" and doubt:
        verdict, reason = "at risk", doubt
    words = margin.words(verdict, made.band)
    origin = _origin(margin.at)
    return Result(
        rule, verdict, words, place_of(margin.at),
        origin.via if origin else (), origin.word if origin else "",
        reason=reason, left=made.band, unit=margin.unit, assumed=_assumed(case),
        moved_by=made.moved_by,
    )  # fmt: skip


def combine(rule: Rule, judged: Sequence[Judged]) -> list[Judged]:
    """One verdict over all alternatives; at risk, naming the split, where they differ."""
    if len({id(one.case) for one in judged}) <= 1:
        return list(judged)
    by_case: dict[int, list[Judged]] = {}
    for one in judged:
        by_case.setdefault(id(one.case), []).append(one)
    worst = {key: max(ones, key=lambda one: RANK[one.result.verdict]) for key, ones in by_case.items()}
    verdicts = {one.result.verdict for one in worst.values()}
    if verdicts <= {"pass"} or verdicts <= {"skip"}:
        return [next(iter(worst.values()))]
    if verdicts <= {"pass", "skip"}:
        return [one for one in worst.values() if one.result.verdict == "pass"][:1]
    if verdicts == {"fail"}:
        return _common(by_case)
    return [_split(rule, list(worst.values()))]


def _common(by_case: dict[int, list[Judged]]) -> list[Judged]:
    """Findings of the least bad alternative; those that not all share are at risk."""
    groups = list(by_case.values())
    shared = set.intersection(*({one.result.at for one in group} for group in groups))
    first = max(groups, key=lambda group: max((one.result.left or Band(0, 0, 0)).high for one in group))
    kept = [one for one in first if one.result.at in shared]
    if kept:
        seen = {one.result.at for one in kept}
        for group in groups:
            for one in group:
                if one.result.at not in seen:
                    seen.add(one.result.at)
                    kept.append(_softened(one, f"only {one.case.label}"))
        return kept
    return [_softened(first[0], "the alternatives fail for different reasons")]


def _softened(one: Judged, why: str) -> Judged:
    return one._replace(result=one.result._replace(verdict="at risk", reason=why))


def _labels(ones: Sequence[Judged], verdict: Verdict) -> str:
    names = [one.case.label or "as written" for one in ones if one.result.verdict == verdict]
    shown = ", ".join(names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _split(rule: Rule, ones: Sequence[Judged]) -> Judged:
    """At risk: passes here, fails there."""
    words = {"pass": "passes", "at risk": "is at risk", "fail": "fails", "skip": "cannot be told"}
    parts = [
        f"{words[verdict]} {_labels(ones, verdict)}"
        for verdict in ("pass", "at risk", "fail", "skip")
        if any(one.result.verdict == verdict for one in ones)
    ]
    shown = max(ones, key=lambda one: RANK[one.result.verdict])
    if len(parts) == 1:
        return shown
    return _softened(shown, "; ".join(parts))
