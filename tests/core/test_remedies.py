"""Remedies: verified, cheapest first, nothing else made worse, bounded, the same every time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from core_fakes import GIB, FakeEngine, case_of, got, part, term

from capcheck.case import Case
from capcheck.checking import Standing, by_worst
from capcheck.engine import Change
from capcheck.findings import Fail, Margin, Pass, Rule, Skip, Words
from capcheck.judge import judge
from capcheck.knobs import COST, candidates, round_sizes
from capcheck.remedies import MOST_TRIES, Trials
from capcheck.terms import Terms

ALL_KNOBS = tuple(COST)


def rule_of(id: str, check: Any, knobs: Sequence[str] = ()) -> Rule:
    page: dict[str, Any] = dict.fromkeys(("title", "why", "fix", "fails", "passes"), "-")
    return Rule(id, check, knobs=tuple(knobs), **page)


def fits(case: Case, t: Terms) -> Margin:
    """One request of full length into what the weights leave: as kv-cache/one-request."""
    length = case.plan.max_request_tokens
    need = case.kv().request_bytes(length.get())
    return Margin(case.ledger(t).kv, need, "B", length, lambda *_: Words("too long"))


def full(case: Case, t: Terms) -> Margin:
    """All sequences at full length."""
    many = case.plan.max_sequences.get()
    need = many * case.kv().request_bytes(case.plan.max_request_tokens.get())
    at = case.plan.max_sequences
    return Margin(case.ledger(t).kv, need, "B", at, lambda *_: Words("too many"))


def devices(case: Case, t: Terms) -> Any:
    count = case.deployment.count("hardware", "count")
    assert count is not None
    return Pass() if case.plan.devices <= count.get() else Fail(count, "too few devices")


class Checks:
    """Some rules over cases, counted."""

    def __init__(self, *rules: Rule) -> None:
        self.rules = rules
        self.runs = 0

    def standings(self, case: Case) -> Mapping[str, Standing]:
        self.runs += 1
        return by_worst(one for raw in case.run(*self.rules) for one in judge(case, raw))


def found(
    case: Case | Sequence[Case], rule: Rule, *others: Rule, checks: Checks | None = None
) -> tuple[str, ...]:
    cases = [case] if isinstance(case, Case) else list(case)
    checks = checks or Checks(rule, *others)
    before = {id(one): checks.standings(one) for one in cases}
    return Trials(cases, before, checks.standings).remedies(rule)


def spec(length: int = 32768, sequences: int = 1, count: int = 1, more: str = "") -> str:
    return (
        f"engine: {{args: {{length: {length}, sequences: {sequences}}}}}\n"
        f"hardware: {{count: {count}}}\n{more}"
    )


ONE = rule_of("kv/one", fits, ALL_KNOBS)
FULL = rule_of("kv/full", full, ALL_KNOBS)


def test_each_help_line_is_true() -> None:
    """24 GiB x 0.9 - 8 = 13.6 GiB hold 13,926 tokens of a MiB."""
    assert found(case_of(spec()), ONE) == (
        "length: 12288 passes", "kv: fp8 with length: 24576 passes (needs an evaluation)",
        "tensor: 2 with count: 2 passes",
    )  # fmt: skip
    for text, verdict in ((spec(12288), "pass"), (spec(16384), "fail")):
        assert Checks(ONE).standings(case_of(text))["kv/one"].verdict == verdict


def test_a_lossy_change_alone_where_it_suffices() -> None:
    help = found(case_of(spec(24576)), ONE)
    assert "kv: fp8 passes (needs an evaluation)" in help


def test_two_of_configuration_one_lossy_one_of_devices_in_that_order() -> None:
    assert found(case_of(spec(8192, 16)), FULL) == (
        "sequences: 1 passes", "kv: fp8 with sequences: 3 passes (needs an evaluation)",
        "tensor: 8 with count: 8 passes",
    )  # fmt: skip
    assert found(case_of(spec(4096, 4)), FULL) == (
        "sequences: 3 passes", "length: 3072 passes", "kv: fp8 passes (needs an evaluation)",
        "tensor: 2 with count: 2 passes",
    )  # fmt: skip


def test_only_the_knobs_of_the_rule_are_turned() -> None:
    assert found(case_of(spec()), rule_of("kv/one", fits, ("tensor",))) == (
        "tensor: 2 with count: 2 passes",
    )
    assert found(case_of(spec()), rule_of("kv/one", fits)) == ()
    assert found(case_of(spec()), rule_of("kv/one", fits, ("colour",))) == ()


def test_nothing_that_does_not_pass_is_shown() -> None:
    rule = rule_of("kv/never", lambda case, t: Fail(case.plan.tensor, "never"), ALL_KNOBS)
    assert found(case_of(spec()), rule) == ()


def test_a_risk_that_remains_is_no_remedy() -> None:
    wide = term("fake.weights", 0.5, 1, 1.5)
    case = case_of(spec(16384), wide)
    (first, *_) = found(case, rule_of("kv/one", fits, ("max_request_tokens",)))
    assert first == "length: 8192 passes"  # 12,288 tokens fit at mid, not for sure


@pytest.mark.parametrize("after", ["fail", "skip"])
def test_no_other_check_gets_worse(after: str) -> None:
    def long(case: Case, t: Terms) -> Any:
        tokens = case.plan.max_request_tokens
        if tokens.get() >= 16384:
            return Pass()
        return Fail(tokens, "too short") if after == "fail" else Skip("too short to tell")

    other = rule_of("acme/long", long)
    help = found(case_of(spec()), ONE, other)
    assert not [line for line in help if line.startswith("length:")]
    assert "tensor: 2 with count: 2 passes" in help


def test_what_was_wrong_before_may_stay_wrong() -> None:
    other = rule_of("acme/wrong", lambda case, t: Fail(case.plan.tensor, "wrong anyway"))
    assert found(case_of(spec()), ONE, other) == found(case_of(spec()), ONE)


def test_one_more_finding_of_a_rule_is_worse() -> None:
    """A risk that was there for another reason does not hide the one that a change brings."""

    def odd(case: Case, t: Terms) -> Any:
        first = Fail(case.plan.tensor, "odd anyway")
        narrow = "fp8" in case.plan.kv_dtype.get()
        return (first, Fail(case.plan.kv_dtype, "odd, too")) if narrow else (first,)

    help = found(case_of(spec(24576)), ONE, rule_of("acme/odd", odd))
    assert not [line for line in help if "kv: fp8" in line]


def test_the_least_change_that_makes_something_worse_gives_way_to_the_next() -> None:
    def even(case: Case, t: Terms) -> Any:
        tokens = case.plan.max_request_tokens
        return Fail(tokens, "this length is odd") if tokens.get() == 12288 else Pass()

    (first, *_) = found(case_of(spec()), ONE, rule_of("acme/even", even))
    assert first == "length: 8192 passes"


def test_more_devices_are_tried_from_the_fewest_on() -> None:
    """Eight would be refused here; four are enough."""

    def few(case: Case, t: Terms) -> Any:
        return Pass() if case.plan.tensor.get() < 8 else Fail(case.plan.tensor, "no such node")

    help = found(
        case_of(spec(65536)), rule_of("kv/one", fits, ("tensor",)), rule_of("acme/few", few)
    )
    assert help == ("tensor: 4 with count: 4 passes",)


def test_devices_that_are_there_already_are_not_asked_for() -> None:
    assert found(case_of(spec(count=8)), rule_of("kv/one", fits, ("tensor",))) == (
        "tensor: 2 passes",
    )
    help = found(
        case_of(spec()), rule_of("kv/one", fits, ("tensor",)), rule_of("acme/devices", devices)
    )
    assert help == ("tensor: 2 with count: 2 passes",)


def test_declared_traffic_is_left_alone() -> None:
    long = "workload: {prompt_tokens: {p50: 10, p99: 15000}, output_tokens: 1000}\n"
    rule = rule_of("kv/one", fits, ("max_request_tokens",))
    assert found(case_of(spec(more=long)), rule) == ()
    short = "workload: {prompt_tokens: {p50: 10, p99: 9000}, output_tokens: 1000}\n"
    assert found(case_of(spec(more=short)), rule) == ("length: 12288 passes",)
    busy = "workload: {concurrency: 4}\n"
    rule = rule_of("kv/full", full, ("max_sequences",))
    assert found(case_of(spec(8192, 16, more=busy)), rule) == ()
    assert found(case_of(spec(2048, 16, more=busy)), rule) == ("sequences: 6 passes",)


def test_without_an_engine_length_and_sequences_are_the_planners() -> None:
    class Planner(FakeEngine):
        fallback = True

    more = "workload: {prompt_tokens: 8000, output_tokens: 192, concurrency: 16}\n"
    case = case_of(spec(8192, 16, more=more), engine=Planner())
    help = found(case, rule_of("kv/full", full, ("max_request_tokens", "max_sequences")))
    assert help == ("sequences: 1 passes", "length: 768 passes")


def test_pairs_only_when_nothing_else_passes() -> None:
    knobs = ("max_request_tokens", "max_sequences")
    case = case_of(spec(65536, 64), accelerator=part(gib=10))  # one GiB is left
    help = found(case, rule_of("kv/full", full, knobs))
    assert help == ("sequences: 1 with length: 1024 passes",)


def test_every_alternative_has_to_pass() -> None:
    small, large = (case_of(spec(), accelerator=part(gib=gib)) for gib in (16, 24))
    rule = rule_of("kv/one", fits, ("max_request_tokens",))
    assert found([large], rule) == ("length: 12288 passes",)
    assert found([large, small], rule) == ("length: 6144 passes",)


def test_a_change_without_words_is_none() -> None:
    class Silent(FakeEngine):
        def write(self, change: Change, deployment: Any) -> None:
            return None

    case = case_of(spec(), engine=Silent())
    assert found(case, rule_of("kv/one", fits, ("max_request_tokens", "tensor"))) == ()


def test_a_plugin_that_fails_on_a_trial_costs_only_the_trial() -> None:
    class Fragile(FakeEngine):
        def plan(self, site: Any) -> Any:
            plan = super().plan(site)
            if plan.tensor.get() == 2:
                raise RuntimeError("two")
            return plan

    case = case_of(spec(), engine=Fragile())
    assert found(case, rule_of("kv/one", fits, ("tensor",))) == ("tensor: 4 with count: 4 passes",)


def test_the_search_is_bounded_by_count() -> None:
    calls = 0

    def never(case: Case, t: Terms) -> Any:
        nonlocal calls
        calls += 1
        return Fail(case.plan.tensor, "never")

    cases = [case_of(spec(2**40, 2**30)) for _ in range(8)]
    assert found(cases, rule_of("kv/never", never, ALL_KNOBS)) == ()
    assert calls <= MOST_TRIES + 2 * len(cases)


def test_each_changed_case_is_made_and_checked_once() -> None:
    checks = Checks(ONE, FULL)
    case = case_of(spec(32768, 4))
    trials = Trials([case], {id(case): checks.standings(case)}, checks.standings)
    first = trials.remedies(ONE)
    runs = checks.runs
    assert trials.remedies(ONE) == first
    assert checks.runs == runs
    assert trials.tries == 0


def test_the_same_every_time() -> None:
    assert len({found(case_of(spec(8192, 16)), FULL) for _ in range(5)}) == 1


def test_what_if_changes_and_resolves_again() -> None:
    case = case_of(spec())
    changed = case.what_if(Change("max_request_tokens", 2048), Change("tensor", 2))
    assert changed is not None
    assert changed.plan.max_request_tokens.get() == 2048
    assert changed.plan.devices == 2
    assert got(changed.deployment.count("hardware", "count")) == 2
    assert case.plan.max_request_tokens.get() == 32768
    assert case.what_if(Change("graphs", False)) is None


def test_sizes_that_people_write() -> None:
    assert round_sizes(20, 3) == [16, 12, 8, 6, 4, 3]
    assert round_sizes(16, 1) == [12, 8, 6, 4, 3, 2, 1]
    assert round_sizes(1, 1) == []
    assert round_sizes(100, 200) == []


def test_candidates_begin_with_the_least_change() -> None:
    case = case_of(spec(6000, 3))
    assert candidates(case, "max_request_tokens") == [4096, 3072, 2048, 1536, 1024]
    assert candidates(case, "max_sequences") == [2, 1]
    assert candidates(case, "max_step_tokens") == []  # not known
    assert candidates(case, "kv_dtype") == ["fp8_e4m3"]
    assert candidates(case, "memory_fraction") == [0.92, 0.95]
    assert candidates(case, "graphs") == []
    assert candidates(case, "tensor") == [2, 4, 8]
    assert candidates(case, "devices") == [2, 4, 8, 16]
    assert candidates(case, "colour") == []


def test_one_gib_is_what_it_says() -> None:
    assert case_of(spec()).kv().request_bytes(1024) == GIB
