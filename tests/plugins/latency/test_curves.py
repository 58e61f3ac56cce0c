"""Curves over the load are the estimates under that load, and reach is where they cross."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest
from latency_kit import case_of, chat

from capcheck import Unknown, curve
from capcheck.curves import at_load, load_words, planned, point, reach

FLIGHT = chat("concurrency: 16")
RATE = chat("request_rate: 4/s", replicas=2)


@pytest.mark.parametrize("load", [1, 7, 64, 300])
def test_a_point_is_what_the_estimates_say_at_that_load(load: int) -> None:
    (found,) = curve(case_of(FLIGHT), loads=(load,))
    declared = case_of(chat(f"concurrency: {load}"))
    assert found == point(declared)
    assert found.tpot_seconds == declared.estimate("tpot_seconds")
    assert found.ttft_seconds == declared.estimate("ttft_seconds")
    assert found.output_tokens_per_second == declared.estimate("output_tokens_per_second_replica")
    assert found.saturated == (declared.estimate("saturation").mid > 1)


@pytest.mark.parametrize("load", [0.25, 3.7, 40])
def test_a_point_of_a_rate_is_the_deployments(load: float) -> None:
    (found,) = curve(case_of(RATE), loads=(load,))
    declared = case_of(chat(f"request_rate: {load}/s", replicas=2))
    assert found == point(declared)
    assert found.by == "rate"


def test_a_curve_may_be_over_what_is_not_declared() -> None:
    (found,) = curve(case_of(FLIGHT), loads=(2.0,), by="rate")
    assert found == point(case_of(chat("request_rate: 2/s")))
    (found,) = curve(case_of(RATE), loads=(32,), by="concurrency")
    assert found == point(case_of(chat("concurrency: 32", replicas=2)))


def test_latency_and_throughput_grow_with_the_load() -> None:
    points = curve(case_of(FLIGHT))
    assert [one.load for one in points] == [2, 4, 8, 16, 32, 64, 128]
    for less, more in pairwise(points):
        assert less.tpot_seconds.mid <= more.tpot_seconds.mid * (1 + 1e-9)
        assert less.ttft_seconds.mid <= more.ttft_seconds.mid * (1 + 1e-9)
        assert less.output_tokens_per_second.mid <= more.output_tokens_per_second.mid * (1 + 1e-6)
    assert points[-1].limit == "max sequences"
    assert points[0].limit == ""


def test_reach_is_the_last_load_that_holds() -> None:
    case = case_of(FLIGHT)
    target = case.estimate("tpot_seconds").mid * 1.1
    found = reach(case, "tpot_seconds", target)
    assert found > 16
    assert at_load(case, found).estimate("tpot_seconds").mid <= target
    assert at_load(case, found + 1).estimate("tpot_seconds").mid > target


def test_reach_of_a_rate_is_rounded_down() -> None:
    case = case_of(RATE)
    target = case.estimate("tpot_seconds").mid * 1.1
    found = reach(case, "tpot_seconds", target)
    assert found > 4
    assert found == float(f"{found:.2g}")
    assert at_load(case, found).estimate("tpot_seconds").mid <= target
    assert at_load(case, found * 1.12).estimate("tpot_seconds").mid > target


@pytest.mark.parametrize("text", [FLIGHT, RATE])
def test_reach_has_ends(text: str) -> None:
    case = case_of(text)
    assert reach(case, "tpot_seconds", 1e-4) == 0
    assert reach(case, "tpot_seconds", 60.0) == math.inf


def test_the_declared_case_is_left_alone() -> None:
    case = case_of(FLIGHT)
    before = case.estimate("tpot_seconds")
    curve(case, loads=(200,))
    assert case.estimate("tpot_seconds") == before
    assert case.deployment.number("workload", "concurrency") is not None


def test_no_load_is_unknown() -> None:
    text = FLIGHT.replace("  concurrency: 16\n", "")
    with pytest.raises(Unknown, match="traffic"):
        curve(case_of(text))


def test_plans_can_be_replaced() -> None:
    args = "max_model_len: 8192, speculative_config: {method: ngram, num_speculative_tokens: 4}"
    case = case_of(chat("concurrency: 4\n  acceptance_rate: 0.7", args=args))
    plain = planned(case, draft=None, draft_tokens=None)
    assert plain.plan.draft is None
    assert case.plan.draft is not None
    without = case_of(chat("concurrency: 4", args="max_model_len: 8192"))
    assert plain.estimate("tpot_seconds").mid == pytest.approx(
        without.estimate("tpot_seconds").mid, rel=0.01
    )


def test_words_of_loads() -> None:
    assert load_words(1, "concurrency") == "1 concurrent request"
    assert load_words(1200, "concurrency") == "1,200 concurrent requests"
    assert load_words(3.2, "rate") == "3.2 requests/s"
