"""Percentiles from mixtures: worked examples, and what holds at any figures."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.lengths import Atom
from capcheck.physics.tails import (
    Decoding,
    Delay,
    FirstToken,
    decoding_beyond,
    first_token_beyond,
    fullness_spread,
    gamma_beyond,
    quantile,
    uniform_and_delay,
    widened,
)

NOBODY = Delay(0.0, 0.0)
ALL = (Atom(1.0, 100.0),)
seconds = st.floats(0.0, 20.0)
shares = st.floats(0.0, 1.0)


def first_at(parts: FirstToken, share: float) -> float:
    return quantile(lambda x: first_token_beyond(parts, x), share, 0.0, 1e3)


def tpot_at(parts: Decoding, share: float) -> float:
    return quantile(lambda x: decoding_beyond(parts, x), share, 0.0, 1e3)


def test_half_wait_two_seconds_on_average() -> None:
    """0.5 exp(-y / 2) = 0.01 at y = 2 ln 50 = 7.824."""
    parts = FirstToken((Atom(1.0, 0.3),), Delay(0.5, 2.0), 0.0)
    assert first_at(parts, 0.99) == pytest.approx(0.3 + 2.0 * math.log(50.0), rel=1e-3)
    assert first_at(parts, 0.4) == pytest.approx(0.3, rel=1e-3)  # they do not wait


def test_an_even_wait_is_read_off() -> None:
    parts = FirstToken((Atom(1.0, 0.2),), NOBODY, 4.0)
    assert first_at(parts, 0.99) == pytest.approx(0.2 + 0.99 * 4.0, rel=1e-3)
    assert first_at(parts, 0.5) == pytest.approx(0.2 + 0.5 * 4.0, rel=1e-3)


def test_an_opening_of_a_tenth_makes_the_last_hundredth() -> None:
    """A tenth wait evenly up to 5 s: one in a hundred of all is one in ten of them, above 4.5 s."""
    parts = FirstToken((Atom(1.0, 0.1),), NOBODY, 0.0, opening=0.1, opening_seconds=5.0)
    assert first_at(parts, 0.99) == pytest.approx(0.1 + 4.5, rel=1e-3)
    assert first_at(parts, 0.5) == pytest.approx(0.1, rel=1e-3)


def test_a_twentieth_of_the_prompts_are_long() -> None:
    parts = FirstToken((Atom(0.95, 0.1), Atom(0.05, 1.0)), NOBODY, 0.0)
    assert first_at(parts, 0.9) == pytest.approx(0.1, rel=1e-3)
    assert first_at(parts, 0.99) == pytest.approx(1.0, rel=1e-3)


@pytest.mark.parametrize(("wait", "evenly"), [(0.5, 2.0), (3.0, 2.0), (0.1, 0.5)])
def test_an_even_wait_and_a_delay_add_as_their_integral_says(wait: float, evenly: float) -> None:
    delay, count = Delay(0.3, 1.5), 20000
    total = 0.0
    for at in range(count):
        left = wait - evenly * (at + 0.5) / count
        total += 1.0 if left < 0 else delay.share * math.exp(-left / delay.mean)
    assert uniform_and_delay(wait, evenly, delay) == pytest.approx(total / count, rel=1e-3)


def test_two_delays_keep_their_mean() -> None:
    both = Delay(0.2, 3.0).plus(Delay(0.5, 1.0))
    assert both.share == pytest.approx(0.6)
    assert both.share * both.mean == pytest.approx(0.2 * 3.0 + 0.5 * 1.0)
    assert NOBODY.plus(NOBODY) == NOBODY


@pytest.mark.parametrize("value", [0.5, 1.0, 2.0, 4.6])
def test_the_cube_root_is_near_an_exponential(value: float) -> None:
    assert gamma_beyond(value, 1.0, 1.0) == pytest.approx(math.exp(-value), abs=0.012)


def test_a_request_of_a_hundred_tokens_meets_ten_prompts() -> None:
    """A Poisson number with mean 10 is at most 18 in 99 of 100: 18 x 10 ms over 100 tokens."""
    parts = Decoding(ALL, alone=0.005, met=0.1, prompt=0.01, variation=0.0)
    assert tpot_at(parts, 0.5) == pytest.approx(0.006, rel=0.02)
    assert tpot_at(parts, 0.99) == pytest.approx(0.0068, rel=0.02)


def test_short_outputs_average_over_fewer_steps() -> None:
    few = Decoding((Atom(1.0, 20.0),), alone=0.005, met=0.1, prompt=0.01, variation=0.0)
    many = few._replace(outputs=(Atom(1.0, 2000.0),))
    assert tpot_at(few, 0.99) > 1.2 * tpot_at(many, 0.99)


def test_a_fifth_decodes_while_the_opening_is_computed() -> None:
    """They meet up to 10 s of prompts in 100 tokens; 19 in 20 of them less than 9.5 s."""
    parts = Decoding(ALL, 0.005, 0.0, 0.0, 0.0, opening=0.2, opening_seconds=10.0)
    assert tpot_at(parts, 0.99) == pytest.approx(0.005 + 0.095, rel=1e-3)
    assert tpot_at(parts, 0.5) == pytest.approx(0.005, rel=1e-3)


def test_a_wave_spreads_evenly() -> None:
    parts = Decoding(ALL, 0.005, 0.0, 0.0, 0.0, wave=0.2)
    assert tpot_at(parts, 0.5) == pytest.approx(0.005 + 0.001, rel=1e-3)
    assert tpot_at(parts, 0.99) == pytest.approx(0.005 + 0.00198, rel=1e-3)


def test_how_full_a_batch_is() -> None:
    """Half the elasticity, 100 requests: 0.5 / sqrt(100 x 0.5), seen by who decodes shortly."""
    assert fullness_spread(0.5, 100.0, 1e-3) == pytest.approx(0.5 / math.sqrt(50.0), rel=1e-3)
    assert fullness_spread(0.5, 100.0, 2.0) < fullness_spread(0.5, 100.0, 0.5)
    assert fullness_spread(0.0, 100.0, 1.0) == fullness_spread(0.5, 0.0, 1.0) == 0.0


def test_a_normal_part_is_added_in_the_square() -> None:
    """2.326 deviations of 4 % are 9.3 % of the median, beside 7 % that were there."""
    assert widened(1.07, 1.0, 0.04, 0.99) == pytest.approx(
        1.0 + math.hypot(0.07, 0.09305), rel=1e-4
    )


@given(seconds, seconds, shares, seconds, seconds, shares, seconds)
def test_fewer_requests_are_beyond_more_seconds(
    at: float, more: float, share: float, mean: float, evenly: float, opening: float, whole: float
) -> None:
    parts = FirstToken(
        (Atom(0.5, 0.1), Atom(0.5, 2.0)), Delay(share, mean), evenly, 0.0, opening, whole
    )
    low, high = first_token_beyond(parts, at), first_token_beyond(parts, at + more)
    assert 0.0 <= high <= low + 1e-9 <= 1.0 + 2e-9


@given(seconds, seconds, st.floats(0, 2), st.floats(0, 3), shares, seconds, seconds)
def test_fewer_requests_decode_slower(
    at: float, more: float, met: float, prompt: float, opening: float, whole: float, wave: float
) -> None:
    parts = Decoding(
        (Atom(0.5, 3.0), Atom(0.5, 500.0)), 0.01, met, prompt, 0.5, opening, whole, wave
    )
    low, high = decoding_beyond(parts, at), decoding_beyond(parts, at + more)
    assert 0.0 <= high <= low + 1e-9 <= 1.0 + 2e-9
