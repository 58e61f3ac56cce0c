"""Declared lengths as distributions: what was declared comes back, and moments are exact."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.lengths import (
    Lengths,
    LengthsError,
    constant,
    fit,
    lognormal,
    normal_score,
    normal_share,
)

CHAT = {"p50": 800.0, "p95": 6000.0, "max": 30000.0}


def spread_out(lengths: Lengths, count: int = 20_000) -> list[float]:
    """Lengths at the middles of equal shares: a sample without noise."""
    return [lengths.quantile((index + 0.5) / count) for index in range(count)]


def test_declared_percentiles_come_back() -> None:
    chat = fit(CHAT, 1.0)
    assert chat.quantile(0.5) == pytest.approx(800)
    assert chat.quantile(0.95) == pytest.approx(6000)
    assert chat.quantile(1.0) == 30000
    assert chat.share_below(800) == pytest.approx(0.5)
    assert chat.share_below(30000) == 1.0


def test_two_percentiles_are_a_lognormal() -> None:
    sigma = math.log(6000 / 800) / normal_score(0.95)
    chat = fit({"p50": 800.0, "p95": 6000.0}, 1.0)
    assert chat.mean == pytest.approx(800 * math.exp(sigma**2 / 2))
    assert chat.variation == pytest.approx(math.exp(sigma**2) - 1)
    assert chat.quantile(0.2) == pytest.approx(800 * math.exp(sigma * normal_score(0.2)))


def test_many_percentiles_are_joined() -> None:
    declared = {"p50": 100.0, "p90": 400.0, "p95": 450.0, "p99": 2000.0, "p999": 9000.0}
    joined = fit(declared, 1.0)
    shares = (0.5, 0.9, 0.95, 0.99, 0.999)
    assert [joined.quantile(share) for share in shares] == pytest.approx(list(declared.values()))


def test_moments_agree_with_samples() -> None:
    chat = fit({"p50": 100.0, "p90": 300.0, "p99": 4000.0, "max": 8000.0}, 1.0)
    drawn = spread_out(chat)
    assert chat.mean == pytest.approx(sum(drawn) / len(drawn), rel=0.001)
    assert chat.moment(2) == pytest.approx(sum(x * x for x in drawn) / len(drawn), rel=0.002)
    assert max(drawn) <= 8000


def test_a_mean_beside_percentiles_settles_the_tail() -> None:
    heavy = fit({"p50": 100.0, "p90": 300.0, "mean": 250.0}, 1.0)
    assert heavy.mean == pytest.approx(250)
    assert heavy.quantile(0.9) == pytest.approx(300)
    assert heavy.quantile(0.99) > fit({"p50": 100.0, "p90": 300.0}, 1.0).quantile(0.99)


def test_a_mean_and_a_median_tell_the_spread() -> None:
    told = fit({"p50": 100.0, "mean": 165.0}, 3.0)
    assert told.mean == pytest.approx(165)
    assert told.quantile(0.5) == pytest.approx(100)


def test_one_figure_takes_the_assumed_spread() -> None:
    assert fit({"mean": 500.0}, 0.9).mean == pytest.approx(500)
    assert fit({"p50": 500.0}, 0.9).quantile(0.5) == pytest.approx(500)
    assert fit({"p95": 500.0}, 0.9).quantile(0.95) == pytest.approx(500)
    capped = fit({"mean": 500.0, "max": 800.0}, 0.9)
    assert capped.mean == pytest.approx(500)
    assert capped.quantile(0.999) == 800
    assert fit({"mean": 800.0, "max": 800.0}, 0.9) == constant(800.0)


def test_a_constant_never_varies() -> None:
    same = constant(1024.0)
    assert same.mean == pytest.approx(1024)
    assert same.variance == pytest.approx(0.0, abs=1e-3)
    assert same.quantile(0.01) == same.quantile(0.99) == pytest.approx(1024)
    assert same.share_below(1023.9) == 0.0
    assert len(same.atoms(30)) == 1


@pytest.mark.parametrize(
    ("declared", "message"),
    [
        ({"max": 100.0}, "needed"),
        ({}, "needed"),
        ({"p50": 200.0, "p95": 100.0}, "longer"),
        ({"p50": 200.0, "max": 100.0}, "maximum"),
        ({"mean": 200.0, "max": 100.0}, "above the maximum"),
        ({"p50": 0.0}, "positive"),
    ],
)
def test_contradictions_are_errors(declared: dict[str, float], message: str) -> None:
    with pytest.raises(LengthsError, match=message):
        fit(declared, 1.0)


def test_a_length_is_positive() -> None:
    with pytest.raises(LengthsError):
        constant(0.0)


def test_normal_score_inverts_the_share() -> None:
    assert normal_score(0.975) == pytest.approx(1.959964, abs=1e-6)
    assert normal_score(0.5) == pytest.approx(0.0, abs=1e-9)
    assert (normal_score(0.0), normal_score(1.0)) == (-8.0, 8.0)
    assert normal_share(normal_score(1e-6)) == pytest.approx(1e-6)


figures = st.floats(1, 1e5)


@given(figures, st.floats(1, 20), st.floats(1, 20), st.floats(0.01, 0.99))
def test_atoms_keep_the_mean_and_quantiles_rise(
    median: float, spread: float, room: float, share: float
) -> None:
    declared = {"p50": median, "p95": median * spread, "max": median * spread * room}
    lengths = fit(declared, 1.0)
    atoms = lengths.atoms(36)
    assert sum(atom.share for atom in atoms) == pytest.approx(1.0)
    assert sum(atom.share * atom.tokens for atom in atoms) == pytest.approx(lengths.mean, rel=1e-6)
    assert lengths.quantile(share) <= lengths.quantile(share + 0.009) * (1 + 1e-9)
    assert 0 < lengths.mean <= declared["max"] * (1 + 1e-9)
    assert 0 <= lengths.variance < math.inf


@given(figures, st.floats(0.1, 2), st.floats(0.1, 10))
def test_scaling_scales(median: float, sigma: float, factor: float) -> None:
    lengths = lognormal(median, sigma)
    assert lengths.scaled(factor).mean == pytest.approx(lengths.mean * factor, rel=1e-6)


def test_a_minimum_and_a_maximum_bound_the_spread_of_one_figure() -> None:
    """Nine in ten lie between them: 0.8 to 1.0 of 1,000 tokens are narrower than chat."""
    drawn = fit({"min": 800, "mean": 900, "max": 1000}, 1.0)
    assert drawn.mean == pytest.approx(900, rel=1e-3)
    assert drawn.share_below(800) < 0.06
    assert drawn.variation < 0.006
    chat = fit({"mean": 900, "max": 100_000}, 1.0)
    assert chat.variation > 1.0


def test_a_mean_far_from_the_percentiles_is_no_distribution() -> None:
    with pytest.raises(LengthsError, match="mean"):
        fit({"mean": 500, "p50": 1000, "p95": 1100}, 1.0)
    assert fit({"mean": 1100, "p50": 1000, "p95": 1800}, 1.0).mean == pytest.approx(1100, rel=0.1)


def test_a_tail_above_the_last_percentile_is_no_steeper_than_chat() -> None:
    """p95 and p99 far apart: what lies above is not extrapolated to thousands of times."""
    wild = fit({"p50": 1000, "p95": 1100, "p99": 30_000}, 1.0)
    assert wild.mean < 3_000
    assert wild.quantile(0.999) < 100_000


def test_lengths_are_cut_at_what_the_engine_takes() -> None:
    chat = fit({"p50": 800, "p99": 120_000}, 1.0)
    assert chat.cut(8192).quantile(0.9999) == 8192
    assert chat.cut(8192).mean < chat.mean
    assert constant(9000.0).cut(8192) == constant(9000.0)
