"""V0 or V1, as the argument code of 0.8.5 to 0.11.0 decides."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_cases import H100, MI300X, T4, case_of

from capcheck.testing import Bench


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("release", "accelerator", "args", "v1"),
    [
        ("0.7.3", H100, {}, False),
        ("0.8.5", H100, {}, True),
        ("0.8.5", T4, {}, False),
        ("0.10.1", T4, {}, False),
        ("0.10.2", T4, {}, True),
        ("0.8.5", MI300X, {}, False),
        ("0.9.0", MI300X, {}, True),
        ("0.9.2", H100, {"kv_cache_dtype": "fp8"}, True),
        ("0.9.2", "nvidia/l40s", {"kv_cache_dtype": "fp8"}, False),
        ("0.9.2", H100, {"kv_cache_dtype": "fp8_e5m2"}, True),
        ("0.9.1", H100, {"dtype": "float32"}, False),
        ("0.9.2", H100, {"dtype": "float32"}, True),
        ("0.8.5", H100, {"num_scheduler_steps": 8}, False),
        ("0.8.5", H100, {"pipeline_parallel_size": 2}, False),
        ("0.9.0", H100, {"pipeline_parallel_size": 2}, True),
        ("0.11.0", T4, {}, True),
    ],
)
def test_which_engine_serves(
    bench: Bench, release: str, accelerator: str, args: dict[str, Any], v1: bool
) -> None:
    case = case_of(bench, release, args, accelerator=accelerator)
    assert case.plan.extra["v1"].get() is v1


def test_an_early_v1_leaves_hybrid_models_to_v0(bench: Bench) -> None:
    model = "Qwen/Qwen3-Next-80B-A3B-Instruct"
    assert not case_of(bench, "0.10.0", {}, model=model).plan.extra["v1"].get()
    asked = case_of(bench, "0.10.0", {}, model=model, env={"VLLM_USE_V1": "1"})
    assert asked.plan.extra["v1"].get()
    assert case_of(bench, "0.10.2", {}, model=model).plan.extra["v1"].get()


def test_the_reason_is_told(bench: Bench) -> None:
    case = case_of(bench, "0.8.5", {}, accelerator=T4)
    assert "capability 7.5" in case.plan.extra["v1"].origin.why
    assert case.plan.max_sequences.get() == 256  # V0's default


def test_the_variable_decides_before_the_features_do(bench: Bench) -> None:
    assert not case_of(bench, "0.10.2", {}, env={"VLLM_USE_V1": "0"}).plan.extra["v1"].get()
    assert case_of(bench, "0.12.0", {}, env={"VLLM_USE_V1": "0"}).plan.extra["v1"].get()


def test_v1_asked_for_where_it_cannot_serve_is_refused(bench: Bench) -> None:
    case = case_of(bench, "0.8.5", {}, accelerator=T4, env={"VLLM_USE_V1": "1"})
    (refused,) = (one for one in case.supports("options/conflict") if "VLLM_USE_V1" in one.message)
    assert refused.legal is False
    assert "compute capability 7.5" in refused.message
