"""Live tokens against a simulation of requests in flight."""

from __future__ import annotations

import math
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from capcheck.physics.lengths import Lengths, constant, fit
from capcheck.physics.live import live, mean_context, room_factor, sum_quantile

PROMPT = fit({"p50": 800.0, "p95": 6000.0, "max": 30000.0}, 1.0)
OUTPUT = fit({"p50": 250.0, "p95": 900.0, "max": 4096.0}, 1.0)


def evenly(lengths: Lengths, count: int = 20_000) -> list[float]:
    return [lengths.quantile((index + 0.5) / count) for index in range(count)]


def in_flight(*, reserved: bool) -> list[float]:
    """Requests as a random look finds them: longer outputs are found more often."""
    draw = random.Random(11)
    prompts, outputs = evenly(PROMPT), evenly(OUTPUT)
    draw.shuffle(prompts)
    found = draw.choices(outputs, weights=outputs, k=len(prompts))
    shares = [1.0 if reserved else draw.random() for _ in prompts]
    return [
        prompt + share * output
        for prompt, share, output in zip(prompts, shares, found, strict=True)
    ]


@pytest.fixture(scope="module")
def seen() -> list[float]:
    return in_flight(reserved=False)


def simulated(seen: list[float], requests: int, share: float) -> float:
    if requests == 1:
        return sorted(seen)[int(share * len(seen))]
    draw = random.Random(requests)
    sums = sorted(sum(draw.choices(seen, k=requests)) for _ in range(20_000))
    return sums[int(share * len(sums))]


def test_mean_of_a_request_in_flight(seen: list[float]) -> None:
    assert live(PROMPT, OUTPUT).mean == pytest.approx(sum(seen) / len(seen), rel=0.01)
    assert mean_context(PROMPT, OUTPUT) == pytest.approx(live(PROMPT, OUTPUT).mean, rel=0.002)


def test_mean_context_of_constants_is_the_middle_of_the_output() -> None:
    assert mean_context(constant(1000.0), constant(200.0)) == pytest.approx(1100)


@pytest.mark.parametrize("share", [0.9, 0.95, 0.99])
@pytest.mark.parametrize(
    ("requests", "tolerance"), [(1, 0.06), (3, 0.04), (11, 0.04), (12, 0.04), (64, 0.02)]
)
def test_quantiles_of_the_sum(
    seen: list[float], requests: int, tolerance: float, share: float
) -> None:
    found = sum_quantile(live(PROMPT, OUTPUT), requests, share)
    assert found == pytest.approx(simulated(seen, requests, share), rel=tolerance)


def test_reserved_outputs_hold_more() -> None:
    held = in_flight(reserved=True)
    assert live(PROMPT, OUTPUT, reserved=True).mean == pytest.approx(
        sum(held) / len(held), rel=0.01
    )


def test_many_requests_come_near_their_mean() -> None:
    one = live(PROMPT, OUTPUT)
    normal = 400 * one.mean + 2.326 * math.sqrt(400 * one.variance)
    assert sum_quantile(one, 400, 0.99) == pytest.approx(normal, rel=0.02)


def test_constants_sum_exactly() -> None:
    same = live(constant(1000.0), constant(1.0), extra=8.0)
    assert sum_quantile(same, 10, 0.99) == pytest.approx(10 * 1008.5, rel=1e-3)


def test_a_part_of_a_request_lies_between() -> None:
    one = live(PROMPT, OUTPUT)
    two, three = (sum_quantile(one, count, 0.95) for count in (2, 3))
    assert sum_quantile(one, 2.5, 0.95) == pytest.approx((two + three) / 2)
    assert sum_quantile(one, 0, 0.95) == 0.0


def test_room_is_exact_without_maxima() -> None:
    prompt, output = fit({"p50": 800.0, "p95": 3000.0}, 1.0), fit({"mean": 300.0}, 0.8)
    need = sum_quantile(live(prompt, output), 20, 0.99)
    assert room_factor(prompt, output, 20, 0.99, 1.12 * need) == pytest.approx(1.12, rel=0.005)
    assert room_factor(prompt, output, 20, 0.99, 0.8 * need) == pytest.approx(0.8, rel=0.005)


def test_maxima_can_keep_the_demand_below_a_capacity() -> None:
    most = 4 * (PROMPT.longest + OUTPUT.longest)
    assert room_factor(PROMPT, OUTPUT, 4, 0.99, most) == math.inf
    factor = room_factor(PROMPT, OUTPUT, 4, 0.99, 0.8 * most)
    assert 2 < factor < 64
    assert room_factor(PROMPT, OUTPUT, 4, 0.99, 1.0) == 0.0
    assert room_factor(PROMPT, OUTPUT, 0, 0.99, 1.0) == math.inf


shapes = st.builds(
    lambda median, spread, room: fit(
        {"p50": median, "p95": median * spread, "max": median * spread * room}, 1.0
    ),
    st.floats(2, 1e5), st.floats(1, 15), st.floats(1, 15),
)  # fmt: skip


@settings(max_examples=60, deadline=None)
@given(shapes, shapes, st.floats(0.1, 2000), st.floats(0.5, 0.99))
def test_quantiles_are_bounded_and_rise(
    prompt: Lengths, output: Lengths, requests: float, share: float
) -> None:
    one = live(prompt, output)
    lower, higher = (sum_quantile(one, requests, each) for each in (share, share + 0.009))
    assert 0 < lower <= higher * (1 + 1e-6)
    whole = math.ceil(requests)
    assert higher <= whole * (prompt.longest + output.longest) * (1 + 1e-6)
    assert sum_quantile(one, requests + 1, share) >= lower * 0.95
