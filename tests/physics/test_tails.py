"""Factors of percentiles over the median."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.tails import combined, loaded

factors = st.floats(0.5, 50)


def test_independent_spreads_add_in_the_square() -> None:
    assert combined(math.exp(0.3), math.exp(0.4)) == pytest.approx(math.exp(0.5))
    assert combined(1.6, 1.0) == pytest.approx(1.6)
    assert combined() == 1.0
    assert combined(0.8) == 1.0


def test_tails_rise_beyond_the_knee() -> None:
    assert loaded(0.5, 1.5, 6.0, 0.8) == 1.5
    assert loaded(0.8, 1.5, 6.0, 0.8) == 1.5
    assert loaded(0.9, 1.5, 6.0, 0.8) == pytest.approx(3.0)  # half way in the logarithm
    assert loaded(1.0, 1.5, 6.0, 0.8) == loaded(3.0, 1.5, 6.0, 0.8) == 6.0
    with pytest.raises(ValueError, match="positive"):
        loaded(0.5, 0.0, 1.0, 0.8)


@given(factors, factors)
def test_combined_lies_between_the_larger_and_the_product(one: float, other: float) -> None:
    both = combined(one, other)
    assert max(one, other, 1.0) * (1 - 1e-12) <= both
    assert both <= max(one, 1.0) * max(other, 1.0) * (1 + 1e-12)


@given(st.floats(0, 2), st.floats(0, 0.5), st.floats(1, 3), st.floats(0, 9), st.floats(0, 1.2))
def test_a_higher_load_never_shortens_the_tail(
    load: float, more: float, light: float, extra: float, knee: float
) -> None:
    heavy = light + extra
    assert loaded(load + more, light, heavy, knee) >= loaded(load, light, heavy, knee) * (1 - 1e-12)
