"""Waits, against the closed forms they come from."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capcheck.physics.queueing import (
    NO_WAIT,
    Wait,
    budget_load,
    burst_wait,
    cohort_company,
    company,
    gated_wait,
    growing_wait,
    most_of_poisson,
    opening_queue,
    peakedness,
    residual_steps,
    slot_wait,
)

shares = st.floats(0, 1)
seconds = st.floats(0, 1e3)


def test_prompts_that_steps_take_up_together_wait_as_gated_vacations() -> None:
    # nobody is there: half of a prompt in progress; at a load of 1/2: (1/2 + 1/2) x 0.5 / (3/4)
    assert gated_wait(0.0, 1e-6, 1.0) == pytest.approx(5e-7)
    assert gated_wait(0.5, 0.5, 1.0) == pytest.approx(2.0 / 3.0)
    # none may join: half of it
    assert gated_wait(0.5, 0.5, 1.0, beside=0.0) == pytest.approx(1.0 / 3.0)


def test_gated_vacations_against_their_own_steps() -> None:
    # S' = D + the prompts that came in S, D = 1 and prompts of 1 at a rate of 0.4, by simulation
    dice, steps, step = random.Random(3), [], 1.0
    for _ in range(100_000):
        count, left = 0, dice.expovariate(0.4)
        while left < step:
            count, left = count + 1, left + dice.expovariate(0.4)
        step = 1.0 + count
        steps.append(step)
    biased = sum(one * one for one in steps) / sum(steps)
    waited = (0.5 + 0.4) * biased  # half of the step in progress, and the prompts beside
    exact = (0.5 + 0.4) / (1 - 0.4) + gated_wait(0.4, 0.4, 1.0)
    assert waited == pytest.approx(exact, rel=0.01)


def test_coming_back_between_steps() -> None:
    assert residual_steps(1.0, 0.0) == 1.0
    assert residual_steps(1.0, 1e-9) == 1.0  # the next step began just before
    # long on its way: its way, and half a step
    assert residual_steps(1.0, 100.0) == pytest.approx(100.5, rel=1e-4)


def test_a_budget_that_a_loop_uses() -> None:
    # one prompt a step and ten steps in between: alone a tenth is used, for long all of it
    assert budget_load(1.0, 10.0, 1.0, 0.5) == pytest.approx(0.1, rel=0.01)
    assert budget_load(1000.0, 10.0, 1.0, 0.5) == pytest.approx(1.0, rel=1e-3)
    used = budget_load(8.0, 10.0, 1.0, 0.5)
    queue = 0.5 * used / (1.0 - used)
    assert used * (10.0 + queue) == pytest.approx(8.0)  # Little's law
    assert budget_load(8.0, 10.0, 0.0, 0.5) == 0.0


@pytest.mark.parametrize(("mean", "count"), [(0.05, 4), (1.0, 8), (6.0, 2)])
def test_the_busiest_of_some(mean: float, count: int) -> None:
    dice = random.Random(1)

    def poisson() -> int:
        found, left = 0, dice.expovariate(1.0)
        while left < mean:
            found, left = found + 1, left + dice.expovariate(1.0)
        return found

    seen = sum(max(poisson() for _ in range(count)) for _ in range(20_000)) / 20_000
    assert most_of_poisson(mean, count) == pytest.approx(seen, rel=0.05)
    assert most_of_poisson(mean, 1) == mean


def test_requests_in_service_vary_as_arrivals_do() -> None:
    assert peakedness(1.0, 0.9) == 1.0
    assert peakedness(4.0, 0.0) == 4.0  # alike durations: a count of arrivals
    assert peakedness(4.0, 1.0) == 2.5  # exponential ones: 1 + 3 / 2
    assert peakedness(0.25, 0.0) == 0.25


def test_bursts_bring_company() -> None:
    assert company(5.0, 1.0) == 0.0
    assert company(1e6, 4.0) == pytest.approx(1.5)  # (ca^2 - 1) / 2, Cox
    assert company(0.1, 0.25) == -0.1  # nobody is closer than that


def test_rounds_after_a_burst_spread() -> None:
    # 64 requests, eight to a step: alike ones stay in eight steps
    assert cohort_company(64.0, 1 / 8, 200.0, 0.0, 9) == pytest.approx(63 / 8)
    later = [cohort_company(64.0, 1 / 8, 200.0, 0.0041, rounds) for rounds in (1, 9)]
    assert 63 / 200 < later[1] < later[0] < 63 / 8
    assert cohort_company(64.0, 1 / 8, 200.0, 0.0041, 0) == 0.0


def test_a_backlog_grows_by_the_excess_and_by_chance() -> None:
    # twice the capacity: 600 s after 600 s, half of it in the mean
    assert growing_wait(2.0, 1e-9, 2.0, 600.0) == pytest.approx(300.0, rel=1e-3)
    # no excess: the mean of sqrt(2 v t / pi) over the time
    assert growing_wait(1.0, 0.1, 2.0, 600.0) == pytest.approx(math.sqrt(240 / math.pi) * 2 / 3)


def test_one_slot_is_the_exponential_server() -> None:
    assert slot_wait(0.5, 1, 1.0).mean == pytest.approx(1.0)


def test_many_slots_hardly_wait() -> None:
    # Erlang C for 10 servers at a load of 0.5: 3.6 % wait
    wait = slot_wait(0.5, 10, 1.0)
    assert wait.mean == pytest.approx(0.00722, rel=0.01)
    assert wait.median == 0.0


def test_slots_that_are_held_for_less_when_few_are() -> None:
    # two slots held for 2 s, one for 1 s: births and deaths at rates 1 and 1, 1, 1 by hand
    rate, full, alone = 0.5, 1.0, 1.0  # a second; both held: 2 / 2 s, one: 1 / 1 s
    two = (rate / alone) * (rate / full)
    waiting = two / (1 - rate / full) / (1 + rate / alone + two / (1 - rate / full))
    wait = slot_wait(0.5, 2, 2.0, empty_seconds=0.0)
    assert wait.mean == pytest.approx(waiting * 1.0 / (1 - 0.5))
    assert slot_wait(0.5, 10, 1.0, 1.0) == slot_wait(0.5, 10, 1.0)


def test_slots_wait_longer_for_what_varies() -> None:
    even, usual, bursts = (
        slot_wait(0.8, 16, 1.0, variation=each, peak=peak).mean
        for each, peak in ((1.0, 1.0), (2.0, 1.0), (5.0, 2.5))
    )
    assert usual == pytest.approx(2 * even)
    assert bursts > 2.5 * usual


def test_a_burst_waits_half_of_it_in_the_mean() -> None:
    assert burst_wait(10, 1.0, 1.0) == Wait(5.0, 5.0)
    assert burst_wait(10, 1.0, 0.1) == Wait(0.5, 0.0)


def test_all_at_once_leave_evenly() -> None:
    # 100 requests, 20 slots: four fifths wait evenly up to the last
    assert opening_queue(80.0, 1.0, 0.2) == pytest.approx((32.0, 30.0))
    assert opening_queue(80.0, 0.0, 0.2) == Wait(80.0, 80.0)
    assert opening_queue(80.0, 1.0, 0.8).median == 0.0


def test_nobody_waits_for_nothing() -> None:
    assert slot_wait(0.0, 1, 1.0) == NO_WAIT
    assert burst_wait(0, 1.0, 1.0) == NO_WAIT
    assert Wait(1.0, 2.0).plus(Wait(3.0, 4.0)) == Wait(4.0, 6.0)


@given(st.floats(0, 2), seconds, st.floats(0, 9), seconds, shares, st.floats(0, 1e4))
@example(1.0, 5e-324, 1.0, 2.0, 0.0, 0.0)
def test_waits_are_finite_and_never_negative(
    load: float, each: float, variation: float, most: float, share: float, count: float
) -> None:
    for wait in (
        slot_wait(load, count, each),
        burst_wait(count, each, share),
        opening_queue(each, share, load),
    ):
        assert 0 <= wait.mean < math.inf
        assert 0 <= wait.median < math.inf
    used = budget_load(count, each, most, variation)
    assert 0 <= used < 1
    assert 0 <= growing_wait(load, each, variation, most) < math.inf
    assert 1 <= residual_steps(each, most) < math.inf or each < 1e-9


@given(st.floats(0.01, 0.98), st.floats(1, 500))
def test_a_busier_server_waits_longer(load: float, slots: float) -> None:
    assert slot_wait(load + 0.01, slots, 1.0).mean >= slot_wait(load, slots, 1.0).mean
    assert gated_wait(load + 0.01, 1.0, slots) >= gated_wait(load, 1.0, slots)
