"""The probability that live tokens outgrow the cache, against draws of them."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.lengths import constant, lognormal
from capcheck.physics.live import live, sum_quantile
from capcheck.physics.preemption import Room, preemption_probability

PROMPT, OUTPUT = lognormal(900.0, 0.5, 8000.0), lognormal(300.0, 0.8, 4000.0)
ONE = live(PROMPT, OUTPUT)


def drawn(count: int) -> list[float]:
    """Live tokens of requests in flight: an even share of a length-biased output."""
    dice = random.Random(7)
    found: list[float] = []
    while len(found) < count:
        output = min(dice.lognormvariate(math.log(300.0), 0.8), 4000.0)
        if dice.random() < output / 4000.0:
            prompt = min(dice.lognormvariate(math.log(900.0), 0.5), 8000.0)
            found.append(prompt + dice.random() * output)
    return found


TOKENS = drawn(20_000)


def poisson(dice: random.Random, mean: float) -> int:
    found, left = 0, dice.expovariate(1.0)
    while left < mean:
        found, left = found + 1, left + dice.expovariate(1.0)
    return found


@pytest.mark.parametrize("requests", [3, 10, 40])
@pytest.mark.parametrize("factor", [0.8, 1.0, 1.2])
@pytest.mark.parametrize("arriving", [False, True])
def test_against_draws(requests: int, factor: float, arriving: bool) -> None:
    dice, capacity = random.Random(1), requests * ONE.mean * factor
    over = 0
    for _ in range(3000):
        count = poisson(dice, requests) if arriving else requests
        over += sum(dice.choices(TOKENS, k=count)) > capacity
    found = preemption_probability(Room(ONE, capacity), requests, arriving=arriving)
    assert found == pytest.approx(over / 3000, abs=0.07)


def test_the_quantile_turned_round() -> None:
    capacity = sum_quantile(ONE, 40.0, 0.99)
    assert preemption_probability(Room(ONE, capacity), 40.0) == pytest.approx(0.01, rel=0.05)


def test_what_always_fits_and_what_never_does() -> None:
    assert preemption_probability(Room(ONE, math.inf), 1e6) == 0.0
    assert preemption_probability(Room(ONE, 2.0 * ONE.longest), 2.0) == 0.0
    assert preemption_probability(Room(ONE, 0.2 * 100 * ONE.mean), 100.0) == 1.0
    assert preemption_probability(Room(ONE, 1.0), 0.0) == 0.0


def test_alike_requests() -> None:
    one = live(constant(1000.0), constant(100.0))
    assert preemption_probability(Room(one, 2200.0), 2.0) == 0.0  # two whole ones
    # one is somewhere between 1000 and 1100 tokens: an even share exceeds 1080 for a fifth of time
    assert preemption_probability(Room(one, 1080.0), 1.0) == pytest.approx(0.2, abs=0.15)


@given(st.floats(0.5, 200), st.floats(0.3, 3), st.floats(1.0, 1.5), st.booleans())
def test_more_room_never_preempts_more(
    requests: float, factor: float, more: float, arriving: bool
) -> None:
    capacity = requests * ONE.mean * factor
    less, room = (
        preemption_probability(Room(ONE, tokens), requests, arriving=arriving)
        for tokens in (capacity, capacity * more)
    )
    assert 0 <= room <= less + 1e-3 <= 1 + 1e-3
