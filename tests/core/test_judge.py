"""Answers into verdicts: margins and their bands, doubts, skips, faults."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from core_fakes import HERE, case_of, term

from capcheck.case import Case
from capcheck.findings import Fail, Margin, Pass, Result, Rule, Skip, Words
from capcheck.judge import Fault, Wording, judge, worst_of
from capcheck.quantity import Band, Verdict
from capcheck.terms import Terms
from capcheck.values import Origin, Place, Unknown, Value, written

NOWHERE_AT_ALL: Any = "line 3"
SPREAD = term("a", 0.5, 1, 1.5)


def rule_of(check: Callable[[Case, Terms], Any], **more: Any) -> Rule:
    page: dict[str, Any] = dict.fromkeys(("title", "why", "fix", "fails", "passes"), "-")
    return Rule("acme/rule", check, **{**page, **more})


def judged(
    check: Callable[[Case, Terms], Any], *records: Any, wording: Wording = "all"
) -> list[Result]:
    case = case_of("model: {id: tiny}\n", *records, term("fake.weights", 1, 1, 1))
    return judge(case, case.run(rule_of(check))[0], wording)


def only(check: Callable[[Case, Terms], Any], *records: Any) -> Result:
    (result,) = judged(check, *records)
    return result


def say(verdict: Verdict, left: Band) -> Words:
    return Words(f"{verdict} with {left.low:g} to {left.high:g}", "sum", ("help",))


def margin(have: Any, need: float, **more: Any) -> Margin:
    return Margin(have, need, "B", more.pop("at", HERE), more.pop("words", say), **more)


@pytest.mark.parametrize(
    ("need", "verdict"), [(0.4, "pass"), (0.5, "pass"), (0.6, "at risk"), (1.5, "at risk"),
                          (1.6, "fail")],
)  # fmt: skip
def test_the_band_of_a_margin_decides(need: float, verdict: str) -> None:
    result = only(lambda case, t: margin(t.read("a"), need), SPREAD)
    assert result.verdict == verdict
    assert result.left == Band(0.5 - need, 1 - need, 1.5 - need)
    assert result.words.message.startswith(verdict)
    assert (result.words.arithmetic, result.words.help) == ("sum", ("help",))
    assert (result.at, result.unit) == (HERE, "B")
    ((name, moved),) = result.moved_by
    assert name == "a"
    assert moved == pytest.approx(0.5)


def test_words_are_made_once_and_only_when_asked_for() -> None:
    calls: list[Verdict] = []

    def words(verdict: Verdict, left: Band) -> Words:
        calls.append(verdict)
        return Words("said")

    def made(need: float, wording: Wording) -> Words:
        check = partial(_against, need, words)
        return judged(check, SPREAD, wording=wording)[0].words

    assert made(9, "none") == made(0, "none") == made(0, "found") == Words("")
    assert calls == []
    assert made(9, "found") == made(9, "all") == made(0, "all") == Words("said")
    assert calls == ["fail", "fail", "pass"]


def _against(need: float, words: Any, case: Case, t: Terms) -> Margin:
    return margin(t.read("a"), need, words=words)


def test_a_doubt_makes_an_error_a_risk_and_says_so() -> None:
    result = only(lambda case, t: margin(t.read("a"), 9, doubt="nobody measured"), SPREAD)
    assert (result.verdict, result.reason) == ("at risk", "nobody measured")
    passed = only(lambda case, t: margin(t.read("a"), 0, doubt="nobody measured"), SPREAD)
    assert (passed.verdict, passed.reason) == ("pass", "")


def test_the_doubt_of_the_case_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Case, "doubt", "the recipe is guessed")
    result = only(lambda case, t: margin(0, 1))
    assert (result.verdict, result.reason) == ("at risk", "the recipe is guessed")


def test_a_margin_that_is_marked_at_a_value_tells_its_name_and_its_includes() -> None:
    include = Place("a.yaml", 4, 1, 4, 9)
    at: Value[int] = Value((3,), Origin("written", HERE, (include,), "--length"))
    result = only(lambda case, t: margin(0, 1, at=at))
    assert (result.at, result.word, result.via) == (HERE, "--length", (include,))


@pytest.mark.parametrize("end", [Pass(), Skip("no matter"), ()])
def test_where_a_rule_finds_no_fault_at_an_end_it_does_not_fail_for_sure(end: Any) -> None:
    def check(case: Case, t: Terms) -> Any:
        return margin(1, 2) if t.read("a") <= 1 else end

    result = only(check, SPREAD)
    assert result.verdict == "at risk"
    assert result.left == Band(-1, -1, 0)


def test_an_input_that_is_lost_at_an_end_is_no_crash() -> None:
    def check(case: Case, t: Terms) -> Any:
        if t.read("a") > 1:
            raise Unknown(Value((), Origin("derived", HERE, why="beyond the table")))
        return margin(1, 2)

    assert only(check, SPREAD).verdict == "at risk"


@pytest.mark.parametrize("need", [2.0, 0.0])
def test_where_a_rule_fails_at_an_end_it_does_not_pass_for_sure(need: float) -> None:
    def check(case: Case, t: Terms) -> Any:
        return margin(3, need) if t.read("a") <= 1 else Fail(HERE, "whatever")

    result = only(check, SPREAD)
    assert result.left is not None
    assert result.left.low < 0
    assert result.verdict == "at risk"


# fails, passes, skips


def test_a_fail_is_sure_unless_it_is_a_risk() -> None:
    result = only(lambda case, t: Fail(HERE, "gone", "1 > 0", ("do",)))
    assert (result.verdict, result.words) == ("fail", Words("gone", "1 > 0", ("do",)))
    assert only(lambda case, t: Fail(HERE, "gone", risk=True)).verdict == "at risk"
    assert only(lambda case, t: Fail(HERE, "gone", severity="warning")).severity == "warning"


def test_several_fails_are_several_results() -> None:
    places = [HERE._replace(line=line) for line in (3, 1)]
    results = judged(lambda case, t: tuple(Fail(place, "gone") for place in places))
    assert [one.at for one in results] == places


def test_no_fail_of_several_is_a_pass() -> None:
    assert only(lambda case, t: ()).verdict == "pass"


def test_passes_and_skips_keep_their_reasons() -> None:
    assert only(lambda case, t: Pass("all of it")).reason == "all of it"
    result = only(lambda case, t: Skip("no traffic", HERE))
    assert (result.verdict, result.reason, result.at) == ("skip", "no traffic", HERE)


def test_unknown_is_a_skip_with_reason_and_place() -> None:
    lost: Value[int] = Value((), Origin("written", HERE, why="$N is not resolved"))
    result = only(lambda case, t: Pass(str(lost.get("count"))))
    assert (result.verdict, result.at) == ("skip", HERE)
    assert result.reason == "count: $N is not resolved"
    assert result.lack == "$N is not resolved"


def test_alternatives_that_nobody_split_are_a_skip_that_names_them() -> None:
    either = Value(("fp8", "bf16"), Origin("written", HERE))
    result = only(lambda case, t: Pass(either.get("dtype")))
    assert result.reason == "dtype: one of fp8, bf16"


def test_nothing_fitted_is_a_skip_without_a_place() -> None:
    result = only(
        lambda case, t: margin(t.read("b"), 1), term("b", 1, 1, 1, when={"vendor": "other"})
    )
    assert (result.verdict, result.at) == ("skip", None)
    assert result.reason == "b was not fitted for such a case"


def test_assumptions_in_use_are_named() -> None:
    from core_fakes import draft_of

    from capcheck.deployment import Deployment, assume
    from capcheck.source import Scalar

    case = case_of()
    node = Scalar("acme/card", "text", "plain", HERE)
    draft = assume(draft_of("name: d\n"), ("hardware", "accelerator"), node, "--assume x=y")
    case.deployment = Deployment(draft)
    (result,) = judge(case, case.run(rule_of(lambda case, t: Fail(HERE, "gone")))[0])
    assert result.assumed == ("hardware.accelerator: --assume x=y",)


# faults


def boom(*_: Any) -> Any:
    raise ZeroDivisionError("by hand")


@pytest.mark.parametrize(
    ("check", "message"),
    [
        (boom, r"acme/rule: ZeroDivisionError: by hand at test_judge\.py:\d+ in boom"),
        (lambda case, t: None, "answered NoneType None, not a Margin"),
        (lambda case, t: "fine", "answered str 'fine'"),
        (lambda case, t: [Fail(HERE, "x")], "answered list"),
        (lambda case, t: (Fail(HERE, "x"), "y"), "answered tuple"),
        (lambda case, t: (Pass(),), "answered tuple"),
        (lambda case, t: Fail(NOWHERE_AT_ALL, "x"), "str is no place"),
        (lambda case, t: Skip("x", NOWHERE_AT_ALL), "str is no place"),
        (lambda case, t: margin(1, 2, words=boom), "ZeroDivisionError: by hand"),
        (lambda case, t: margin(1, 2, words=lambda *_: "no"), "words gave str"),
        (lambda case, t: margin(1, 2, at="here"), "str is no place"),
        (lambda case, t: margin("1", 2), "TypeError"),
        (lambda case, t: margin(t.read("nobody's"), 2), "no plugin ships the term"),
    ],
)
def test_nonsense_is_a_fault_that_names_the_rule(check: Any, message: str) -> None:
    with pytest.raises(Fault, match=message) as fault:
        judged(check)
    assert str(fault.value).startswith("acme/rule: ")


def test_a_rule_that_exits_is_a_fault() -> None:
    def check(case: Case, t: Terms) -> Any:
        raise SystemExit(0)

    with pytest.raises(Fault, match="SystemExit: 0"):
        judged(check)


def test_a_rule_that_fails_at_an_end_only_is_a_fault() -> None:
    def check(case: Case, t: Terms) -> Any:
        return margin(1 / (1.5 - t.read("a")), 1)

    with pytest.raises(Fault, match="ZeroDivisionError"):
        judged(check, SPREAD)


def test_the_worst_of_verdicts() -> None:
    assert worst_of([]) == "skip"
    assert worst_of(["pass", "skip"]) == "pass"
    assert worst_of(["pass", "fail", "at risk"]) == "fail"


def test_known_values_and_places_are_both_marked() -> None:
    value = written(3, HERE, "n")
    assert only(lambda case, t: Fail(value, "x")).word == "n"
    assert only(lambda case, t: Fail(HERE, "x")).word == ""
