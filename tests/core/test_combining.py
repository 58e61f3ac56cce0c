"""One verdict over all alternatives."""

from __future__ import annotations

from typing import Any

import pytest
from core_fakes import HERE, case_of
from test_judge import rule_of

from capcheck.case import Case
from capcheck.combining import Judged, combine
from capcheck.findings import Pass, Result, Words
from capcheck.judge import WORST
from capcheck.quantity import Band, Verdict
from capcheck.values import Place

RULE = rule_of(lambda case, t: Pass())
A, B, C = (case_of(label=f"on {name}") for name in "abc")


def result(case: Case, verdict: Verdict, line: int = 1, **more: Any) -> Judged:
    at = None if verdict in ("pass", "skip") else HERE._replace(line=line)
    return Judged(case, Result(RULE, verdict, Words(f"{verdict} {case.label}"), at, **more))


def test_one_case_is_left_alone() -> None:
    ones = [result(A, "fail", 1), result(A, "at risk", 2)]
    assert combine(ones) == ones


@pytest.mark.parametrize("verdict", ["pass", "skip", "at risk", "fail"])
def test_a_common_verdict_stands(verdict: Verdict) -> None:
    (one,) = combine([result(A, verdict), result(B, verdict), result(C, verdict)])
    assert one.result.verdict == verdict
    told = verdict in ("at risk", "fail")  # each in its own words here, of which one is shown
    assert one.result.reason == ("the same on b, on c" if told else "")


@pytest.mark.parametrize(
    ("verdicts", "reason"),
    [
        (("pass", "fail", "pass"), "passes on a, on c; fails on b"),
        (("pass", "at risk", "fail"), "passes on a; is at risk on b; fails on c"),
        (("fail", "skip", "fail"), "fails on a, on c; cannot be told on b"),
        (("at risk", "at risk", "fail"), "is at risk on a, on b; fails on c"),
        (("at risk", "pass", "pass"), "passes on b, on c; is at risk on a"),
    ],
)
def test_where_alternatives_part_it_is_at_risk(verdicts: tuple[Verdict, ...], reason: str) -> None:
    judged = [result(case, one) for case, one in zip((A, B, C), verdicts, strict=True)]
    (one,) = combine(judged)
    assert (one.result.verdict, one.result.reason) == ("at risk", reason)
    assert one.result.words.message.startswith(max(verdicts, key=WORST.index))
    assert one.result.at == HERE


def test_what_is_shown_of_fails_is_the_least_bad_one() -> None:
    bad = result(A, "fail", left=Band(-9, -8, -7))
    less = result(B, "fail", left=Band(-5, -4, -3))
    assert combine([bad, less])[0].case is B
    (one,) = combine([bad, less, result(C, "pass")])
    assert one.case is B


def test_a_pass_names_what_could_not_be_judged() -> None:
    (one,) = combine([result(A, "skip", reason="no bandwidth"), result(B, "pass")])
    assert one.result.verdict == "pass"
    assert one.result.reason == "not judged on a: no bandwidth"


def test_a_fail_wherever_it_stands_is_a_fail() -> None:
    """A margin may mark another option on each alternative: it fails on all of them."""
    left = Band(-3, -2, -1)
    (one,) = combine([result(A, "fail", 1, left=left), result(B, "fail", 2, left=left)])
    assert (one.result.verdict, one.result.reason) == ("fail", "the same on b")


def test_single_findings_at_different_places_are_all_kept() -> None:
    found = combine([result(A, "fail", 1), result(B, "fail", 2), result(C, "pass")])
    assert at(found, 1).reason == "passes on b, on c; fails on a"
    assert at(found, 2).reason == "passes on a, on c; fails on b"


def at(found: list[Judged], line: int) -> Result:
    (one,) = [one.result for one in found if one.result.at == HERE._replace(line=line)]
    return one


def test_several_findings_are_compared_place_by_place() -> None:
    found = combine([
        result(A, "fail", 1), result(A, "fail", 2), result(B, "fail", 1), result(B, "fail", 3),
    ])  # fmt: skip
    assert at(found, 1).verdict == "fail"
    assert at(found, 1).reason == ""
    assert (at(found, 2).verdict, at(found, 2).reason) == ("at risk", "passes on b; fails on a")
    assert (at(found, 3).verdict, at(found, 3).reason) == ("at risk", "passes on a; fails on b")


def test_several_findings_where_another_alternative_is_fine() -> None:
    found = combine([result(A, "fail", 1), result(A, "at risk", 2), result(B, "pass")])
    assert at(found, 1).reason == "passes on b; fails on a"
    assert at(found, 2).reason == "passes on b; is at risk on a"
    assert {one.result.verdict for one in found} == {"at risk"}


def test_several_findings_where_another_alternative_cannot_be_told() -> None:
    found = combine([result(A, "fail", 1), result(A, "fail", 2), result(B, "skip")])
    assert at(found, 1).reason == "fails on a; cannot be told on b"


def test_alternatives_that_all_fail_but_nowhere_alike_still_fail() -> None:
    found = combine([
        result(A, "fail", 1), result(A, "fail", 2), result(B, "fail", 3), result(B, "fail", 4),
    ])  # fmt: skip
    verdicts = [one.result.verdict for one in found]
    assert verdicts.count("fail") == 1
    assert "different reasons" in found[0].result.reason


def test_many_alternatives_are_counted() -> None:
    cases = [case_of(label=f"on n{number}") for number in range(6)]
    judged = [result(case, "fail") for case in cases[:5]] + [result(cases[5], "pass")]
    (one,) = combine(judged)
    assert one.result.reason == "passes on n5; fails on n0, on n1, on n2 and 2 more"


def test_a_case_without_a_label_is_as_written() -> None:
    plain = case_of()
    (one,) = combine([result(plain, "fail"), result(A, "pass")])
    assert one.result.reason == "passes on a; fails as written"


def test_places_may_be_missing() -> None:
    odd = Judged(A, Result(RULE, "fail", Words("x"), None))
    assert combine([odd, result(B, "pass")])[0].result.verdict == "at risk"
    assert isinstance(HERE, Place)
