"""Bursty arrivals and preemption, from the spec to the estimates."""

from __future__ import annotations

import json

import pytest

from capcheck.testing import Bench

SPEC = """apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {{id: meta-llama/Llama-3.1-8B-Instruct}}
hardware: {{accelerator: nvidia/h100-sxm5-80gb, count: 1}}
engine: {{name: {engine}, version: "{version}", args: {{{args}}}}}
workload:
  prompt_tokens: {{mean: 2000, p50: 1500, max: 8000}}
  output_tokens: {{mean: 500, p50: 300, max: 4000}}
  {load}
"""
VLLM = {"engine": "vllm", "version": "0.11.0", "args": "max_num_seqs: 512"}
TRTLLM = {"engine": "tensorrt-llm", "version": "1.1.0", "args": "max_batch_size: 512"}
BENCH = Bench()


def estimate(name: str, load: str, **engine: str) -> float:
    (case,) = BENCH.cases(SPEC.format(load=load, **(engine or VLLM)))
    return float(case.estimate(name).mid)


@pytest.mark.parametrize("figure", ["ttft_seconds_mean", "ttft_seconds"])
def test_bursts_lengthen_the_wait(figure: str) -> None:
    even, usual, bursts = (
        estimate(figure, f"request_rate: 5/s\n  burstiness: {shape}") for shape in (4, 1, 0.25)
    )
    assert even < usual < bursts
    assert usual == estimate(figure, "request_rate: 5/s")  # arrivals are random unless declared


def test_preemption_begins_where_the_cache_is_full() -> None:
    few, some, many = (
        estimate("preemption_probability", f"concurrency: {count}") for count in (32, 170, 400)
    )
    assert few == 0.0
    assert few < some < many
    assert many > 0.99


def test_nothing_is_evicted_that_was_reserved() -> None:
    assert estimate("preemption_probability", "concurrency: 400", **TRTLLM) == 0.0


def test_a_test_at_a_rate_ends_before_its_backlog_is_old() -> None:
    """900 requests a second, most of them waiting: 1,000 are sent in about a second, not in ten
    minutes; who is admitted waits for the prompts of the others all the same."""
    bench, spec = Bench(), {
        "apiVersion": "capcheck/v1", "kind": "Deployment", "name": "x",
        "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
        "hardware": {"accelerator": "nvidia/h100-sxm5-80gb", "count": 1},
        "engine": {"name": "vllm", "version": "0.11.0"},
        "workload": {"prompt_tokens": 1000, "output_tokens": 200, "request_rate": "900/s"},
    }  # fmt: skip
    (long,) = bench.cases(json.dumps(spec))
    spec["workload"]["prompts"] = 1000  # type: ignore[index]
    (short,) = bench.cases(json.dumps(spec))
    assert short.estimate("ttft_seconds").mid < long.estimate("ttft_seconds").mid / 10
