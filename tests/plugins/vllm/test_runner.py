"""Which model runner is a release's default, as its configuration code decides."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_cases import LLAMA, MI300X, case_of

from capcheck.testing import Bench
from capcheck_vllm.runner import second_runner


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


QWEN3, QWEN3_MOE = "Qwen/Qwen3-8B", "Qwen/Qwen3-30B-A3B"
HYBRID, DEEPSEEK_V4 = "Qwen/Qwen3.5-9B", "deepseek-ai/DeepSeek-V4-Flash"
NGRAM = {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}


@pytest.mark.parametrize(
    ("release", "model", "args", "second"),
    [
        ("0.21.0", QWEN3, {}, False),
        ("0.22.0", QWEN3, {}, True),
        ("0.22.0", LLAMA, {}, False),
        ("0.22.0", "Qwen/Qwen3-8B-FP8", {}, False),
        ("0.23.0", LLAMA, {}, True),
        ("0.24.0", "Qwen/Qwen3-8B-FP8", {}, True),
        ("0.24.0", "google/gemma-3-27b-it", {}, False),
        ("0.25.0", "google/gemma-3-27b-it", {}, True),
        ("0.25.0", QWEN3_MOE, {}, False),
        ("0.25.0", HYBRID, {}, False),
        ("0.27.0", DEEPSEEK_V4, {}, False),
        ("0.28.0", DEEPSEEK_V4, {}, True),
        ("0.28.0", QWEN3, NGRAM, False),
        ("0.28.0", "Qwen/Qwen3-Embedding-0.6B", {}, False),
        ("0.29.0", HYBRID, {}, True),
    ],
)
def test_by_release_and_model(
    bench: Bench, release: str, model: str, args: dict[str, Any], second: bool
) -> None:
    assert second_runner(case_of(bench, release, args, model=model), True) is second


def test_rocm_keeps_the_first_for_deepseek_v4(bench: Bench) -> None:
    case = case_of(bench, "0.28.0", {}, model=DEEPSEEK_V4, accelerator=MI300X)
    assert not second_runner(case, True)


def test_the_variable_decides(bench: Bench) -> None:
    name = "VLLM_USE_V2_MODEL_RUNNER"
    assert second_runner(case_of(bench, "0.20.0", {}, env={name: "1"}), True) is False
    assert second_runner(case_of(bench, "0.25.0", {}, model=QWEN3_MOE, env={name: "1"}), True)
    assert not second_runner(case_of(bench, "0.30.0", {}, env={name: "0"}), True)
