"""Weights held against what vLLM printed in public start-up logs, none of them used for fitting."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck import Case
from capcheck.quantity import GIB
from capcheck.testing import Bench
from capcheck_vllm.spreading import spread
from capcheck_vllm.weights import stage_bytes

A100 = "nvidia/a100-sxm4-80gb"
SMALL_A100 = "nvidia/a100-sxm4-40gb"


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_of(bench: Bench, model: str, release: str, accelerator: str, **args: Any) -> Case:
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "logged",
        "model": {"id": model},
        "hardware": {"accelerator": accelerator, "count": 8, "nodes": 2},
        "engine": {"name": "vllm", "version": release, "args": {"max_model_len": 4096, **args}},
    }
    return bench.cases(json.dumps(spec))[0]


def loaded(case: Case) -> float:
    return sum(line.bytes for line in case.ledger(case.terms()).lines if line.phase == "load")


LOGGED: list[tuple[str, str, dict[str, Any], float, float]] = [
    # model, release, arguments, GiB, and half of the last digit printed, or a few MiB
    ("microsoft/Phi-4-mini-instruct", "0.11.0", {}, 7.17, 0.005),
    ("meta-llama/Llama-3.1-8B-Instruct", "0.5.4", {}, 14.9888, 0.0005),
    ("meta-llama/Meta-Llama-3-8B-Instruct", "0.6.2", {}, 14.9595, 0.0005),
    ("Qwen/Qwen2.5-VL-3B-Instruct", "0.8.0", {}, 7.16, 0.012),
    ("Qwen/Qwen3-4B-Instruct-2507", "0.11.0", {}, 7.6065, 0.002),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "0.8.5",
     {"tensor_parallel_size": 4, "enable_lora": True}, 4.03, 0.012),
]  # fmt: skip


@pytest.mark.parametrize(
    ("model", "release", "args", "logged", "within"), LOGGED, ids=[row[0] for row in LOGGED]
)
def test_weights_are_what_was_logged(
    bench: Bench, model: str, release: str, args: dict[str, Any], logged: float, within: float
) -> None:
    case = case_of(bench, model, release, A100, **args)
    assert loaded(case) / GIB == pytest.approx(logged, abs=within)


def test_a_first_stage_with_a_dense_layer(bench: Bench) -> None:
    # DeepSeek-V2.5 in bf16 over 16 devices: 27.63 GiB where the first, dense layer is. A copy of
    # the latent projections would make it 27.73.
    args = {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}
    case = case_of(bench, "deepseek-ai/DeepSeek-V2", "0.8.4", SMALL_A100, **args)
    model = case.model.get().architecture
    found = [stage_bytes(case, model, None, spread(case), at, (30, 30), "bf16") for at in (0, 1)]
    assert found[0] / GIB == pytest.approx(27.63, abs=0.03)
    assert found[1] > found[0]


def test_fp8_in_blocks_with_and_without_arithmetic_of_its_own(bench: Bench) -> None:
    native = case_of(bench, "Qwen/Qwen3-8B-FP8", "0.20.0", "nvidia/rtx-4090")
    assert loaded(native) / GIB == pytest.approx(8.8, abs=0.05)
    # A weight-only kernel keeps a 16-bit scale for each output channel of each block.
    weight_only = case_of(bench, "Qwen/Qwen3-8B-FP8", "0.20.0", A100)
    elements = 36 * (4096 * (4096 + 2 * 1024) + 4096 * 4096 + 3 * 4096 * 12_288)
    grown = elements / 128 * 2 - elements / 128**2 * 4
    assert loaded(weight_only) - loaded(native) == pytest.approx(grown, rel=0.2)


def test_fbgemm_leaves_attention_and_the_outer_layers_alone(bench: Bench) -> None:
    # vLLM logged 57.7520 GiB on each of eight for the first upload, whose 16 KV heads held each
    # of the eight twice; the one that stands has eight.
    name = "meta-llama/Meta-Llama-3.1-405B-Instruct-FP8"
    case = case_of(bench, name, "0.8.5", "nvidia/h100-sxm5-80gb", tensor_parallel_size=8)
    layers, twice, head, hidden = 126, 8, 128, 16384
    doubled = layers * 2 * twice * head * hidden * 2 / 8  # keys and values, bf16, over 8 devices
    assert (loaded(case) + doubled) / GIB == pytest.approx(57.752, rel=0.002)
