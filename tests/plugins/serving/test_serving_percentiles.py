"""Percentiles of a deployment: their class, their bands, and what stands behind them."""

from __future__ import annotations

import pytest

from capcheck.case import Case
from capcheck.objectives import _tail_doubt
from capcheck.testing import Bench
from capcheck_serving.percentiles import facts

BENCH = Bench()
CHAT = "prompt_tokens: {mean: 300, max: 2000}\n  output_tokens: {mean: 200, max: 1000}"
ALIKE = "prompt_tokens: 512\n  output_tokens: 128"


def case_of(lengths: str, load: str) -> Case:
    return BENCH.cases(f"""
apiVersion: capcheck/v1
kind: Deployment
name: tails
model: {{id: meta-llama/Llama-3.1-8B-Instruct}}
hardware: {{accelerator: nvidia/h100-sxm5-80gb, count: 1}}
engine: {{name: vllm, version: "0.11.0"}}
workload:
  {lengths}
  {load}
""")[0]


@pytest.mark.parametrize(
    ("lengths", "load", "kind"),
    [
        (CHAT, "request_rate: 4/s", ("varied", "open")),
        (ALIKE, "request_rate: 4/s", ("fixed", "open")),
        (CHAT, "concurrency: 16", ("varied", "closed")),
        (ALIKE, "concurrency: 16\n  start: burst\n  prompts: 160", ("fixed", "closed")),
        (CHAT, "concurrency: 500\n  start: burst\n  prompts: 500", ("varied", "uncapped")),
    ],
)
def test_the_class_of_a_load(lengths: str, load: str, kind: tuple[str, str]) -> None:
    found = facts(case_of(lengths, load))
    assert (found["lengths"], found["loop"]) == kind


@pytest.mark.parametrize("load", ["request_rate: 6/s", "concurrency: 24"])
def test_every_percentile_has_a_band(load: str) -> None:
    case = case_of(CHAT, load)
    for latency in ("ttft", "tpot"):
        median = case.estimate(f"{latency}_seconds")
        for name in ("p90", "p95", "p99"):
            band = case.estimate(f"{latency}_seconds_{name}")
            assert band.low < band.mid < band.high
            assert band.mid >= median.mid


def test_an_opening_is_in_the_tail_only_where_there_is_one() -> None:
    steady = case_of(CHAT, "concurrency: 64")
    opened = case_of(CHAT, "concurrency: 64\n  start: burst\n  prompts: 640")
    tails = [one.estimate("ttft_seconds_p99").mid for one in (steady, opened)]
    assert tails[1] > 2 * tails[0]


def test_many_measurements_of_many_sources_carry_an_error() -> None:
    """Open loops of varied lengths were measured at 82 points and more, by five sources."""
    case = case_of(CHAT, "request_rate: 6/s")
    beyond = case.estimate("ttft_seconds").low * 2
    assert _tail_doubt(case, "ttft", "p99", beyond) == ""
    assert _tail_doubt(case, "tpot", "p99", case.estimate("tpot_seconds").low * 2) == ""


def test_few_measurements_or_few_sources_do_not() -> None:
    closed, alike = case_of(CHAT, "concurrency: 16"), case_of(ALIKE, "request_rate: 6/s")
    for case in (closed, alike):
        doubt = _tail_doubt(case, "ttft", "p99", case.estimate("ttft_seconds").low * 2)
        assert doubt.startswith("the p99 is modelled on 1")
        assert doubt.endswith("of 1 source")


def test_a_missed_median_needs_no_tail() -> None:
    case = case_of(CHAT, "concurrency: 16")
    assert _tail_doubt(case, "ttft", "p99", case.estimate("ttft_seconds").low / 2) == ""
    assert _tail_doubt(case, "ttft", "p50", 1e-9) == ""
