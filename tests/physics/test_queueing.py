"""Waits, against the closed forms they come from."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from capcheck.physics.queueing import (
    NO_WAIT,
    Wait,
    burst_wait,
    opening_queue,
    prompt_wait,
    slot_wait,
)

shares = st.floats(0, 1)
seconds = st.floats(0, 1e3)


def test_one_prompt_server_is_pollaczek_khinchine() -> None:
    # constant service: u / (1 - u) / 2; exponential service: u / (1 - u)
    assert prompt_wait(0.5, 1.0, 0.0, math.inf).mean == pytest.approx(0.5)
    assert prompt_wait(0.5, 1.0, 1.0, math.inf).mean == pytest.approx(1.0)


def test_prompt_wait_is_bounded_by_those_ahead() -> None:
    assert prompt_wait(1.0, 1.0, 0.0, 7.0).mean == pytest.approx(7.0)
    assert prompt_wait(5.0, 1.0, 0.0, 7.0).mean == pytest.approx(7.0)


def test_one_slot_is_the_exponential_server() -> None:
    assert slot_wait(0.5, 1, 1.0).mean == pytest.approx(1.0)


def test_many_slots_hardly_wait() -> None:
    # Erlang C for 10 servers at a load of 0.5: 3.6 % wait
    wait = slot_wait(0.5, 10, 1.0)
    assert wait.mean == pytest.approx(0.00722, rel=0.01)
    assert wait.median == 0.0


def test_a_burst_waits_half_of_it_in_the_mean() -> None:
    assert burst_wait(10, 1.0, 1.0) == Wait(5.0, 5.0)
    assert burst_wait(10, 1.0, 0.1) == Wait(0.5, 0.0)


def test_all_at_once_leave_evenly() -> None:
    # 100 requests, 20 slots: four fifths wait evenly up to the last
    assert opening_queue(80.0, 1.0, 0.2) == pytest.approx((32.0, 30.0))
    assert opening_queue(80.0, 0.0, 0.2) == Wait(80.0, 80.0)
    assert opening_queue(80.0, 1.0, 0.8).median == 0.0


def test_nobody_waits_for_nothing() -> None:
    assert prompt_wait(0.0, 1.0, 0.0, 1.0) == NO_WAIT
    assert slot_wait(0.0, 1, 1.0) == NO_WAIT
    assert burst_wait(0, 1.0, 1.0) == NO_WAIT
    assert Wait(1.0, 2.0).plus(Wait(3.0, 4.0)) == Wait(4.0, 6.0)


@given(st.floats(0, 2), seconds, st.floats(0, 9), seconds, shares, st.floats(0, 1e4))
@example(1.0, 5e-324, 1.0, 2.0, 0.0, 0.0)
def test_waits_are_finite_and_never_negative(
    load: float, each: float, variation: float, most: float, share: float, count: float
) -> None:
    for wait in (
        prompt_wait(load, each, variation, most),
        slot_wait(load, count, each),
        burst_wait(count, each, share),
        opening_queue(each, share, load),
    ):
        assert 0 <= wait.mean < math.inf
        assert 0 <= wait.median < math.inf


@given(st.floats(0.01, 0.98), st.floats(1, 500))
def test_a_busier_server_waits_longer(load: float, slots: float) -> None:
    assert slot_wait(load + 0.01, slots, 1.0).mean >= slot_wait(load, slots, 1.0).mean
    assert prompt_wait(load + 0.01, 1.0, 0.5, slots).mean >= prompt_wait(load, 1.0, 0.5, slots).mean
