"""vLLM's defaults by release and hardware, as read in its sources."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck import Plan
from capcheck.testing import Bench


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def plan_of(bench: Bench, release: str, accelerator: str, **args: Any) -> Plan:
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "defaults",
        "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
        "hardware": {"accelerator": accelerator},
        "engine": {"name": "vllm", "version": release, "args": args},
    }
    return bench.cases(json.dumps(spec))[0].plan


H100, A100, L4, B200 = (
    "nvidia/h100-sxm5-80gb", "nvidia/a100-sxm4-80gb", "nvidia/l4", "nvidia/b200-180gb",
)  # fmt: skip


@pytest.mark.parametrize(
    ("release", "accelerator", "sequences", "tokens", "share"),
    [
        ("0.8.0", L4, 1024, 2048, 0.9),
        ("0.8.0", H100, 1024, 8192, 0.9),
        ("0.8.5", L4, 256, 2048, 0.9),
        ("0.8.5", A100, 1024, 8192, 0.9),
        ("0.9.0", A100, 256, 2048, 0.9),
        ("0.11.0", H100, 1024, 8192, 0.9),
        ("0.11.0", L4, 256, 2048, 0.9),
        ("0.19.1", H100, 1024, 8192, 0.9),
        ("0.20.0", H100, 1024, 8192, 0.92),
        ("0.27.0", B200, 1024, 8192, 0.92),
        ("0.28.0", B200, 1024, 16384, 0.92),
    ],
)
def test_by_release_and_device(
    bench: Bench, release: str, accelerator: str, sequences: int, tokens: int, share: float
) -> None:
    plan = plan_of(bench, release, accelerator)
    assert plan.max_sequences.get() == sequences
    assert plan.max_step_tokens.get() == tokens
    assert plan.memory.get().amount == share
    assert plan.max_request_tokens.get() == 131072


def test_v0_batches_the_whole_length_unless_chunked(bench: Bench) -> None:
    assert plan_of(bench, "0.6.6", L4, max_model_len=29000).max_step_tokens.get() == 29000
    assert plan_of(bench, "0.6.6", L4, max_model_len=35000).max_step_tokens.get() == 2048
    assert plan_of(bench, "0.6.6", L4, max_model_len=29000).max_sequences.get() == 256


def test_defaults_never_exceed_sequences_times_length(bench: Bench) -> None:
    plan = plan_of(bench, "0.11.0", H100, max_num_seqs=2, max_model_len=1024)
    assert plan.max_step_tokens.get() == 2048


def test_sequences_never_exceed_the_step_from_0_10_1(bench: Bench) -> None:
    assert plan_of(bench, "0.11.0", H100, max_num_batched_tokens=512).max_sequences.get() == 512


def test_lengths_as_people_write_them(bench: Bench) -> None:
    assert plan_of(bench, "0.11.0", H100, max_model_len="32k").max_request_tokens.get() == 32000
    assert plan_of(bench, "0.11.0", H100, max_model_len="32K").max_request_tokens.get() == 32768
    assert plan_of(bench, "0.14.1", H100, max_model_len="auto").max_request_tokens.unknown


def test_old_devices_compute_in_fp16(bench: Bench) -> None:
    assert plan_of(bench, "0.11.0", "nvidia/t4").weight_dtype.get() == "fp16"
    assert plan_of(bench, "0.8.5", "nvidia/t4").weight_dtype.get() == "bf16"
    assert plan_of(bench, "0.11.0", L4).weight_dtype.get() == "bf16"


def test_exact_cache_bytes_replace_the_share(bench: Bench) -> None:
    policy = plan_of(bench, "0.11.0", H100, kv_cache_memory_bytes=10_000_000_000).memory.get()
    assert (policy.kind, policy.amount) == ("bytes", 1e10)


def test_without_a_release_every_era_is_planned(bench: Bench) -> None:
    spec = json.dumps(
        {
            "apiVersion": "capcheck/v1",
            "kind": "Deployment",
            "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
            "hardware": {"accelerator": H100},
            "engine": {"name": "vllm"},
        }
    )
    cases = bench.cases(spec)
    assert len(cases) == 5
    assert {case.plan.memory.get().amount for case in cases} == {0.9, 0.92}
    assert not any(case.release.known for case in cases)
