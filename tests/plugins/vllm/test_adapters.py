"""Buffers of LoRA adapters, held against the weights that vLLM logs with LoRA on."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck import Case
from capcheck.architecture import Part, Tensor
from capcheck.physics.memory import Split
from capcheck.quantity import GIB
from capcheck.testing import Bench
from capcheck_vllm.adapters import Adapters, takes_ends, tensor_bytes

H100 = "nvidia/h100-sxm5-80gb"
QKV = Tensor(
    "attention", (Part("q", 4096, 32), Part("k", 1024, 8), Part("v", 1024, 8)), 4096, "column"
)
DOWN = Tensor("mlp", (Part("down_proj", 4096),), 12_288, "row")
GATE_UP = Tensor("expert", (Part("gate", 768), Part("up", 768)), 2048, "column", copies=128)
ONE = Adapters(16, 1, 2.0, sharded=False, extra_vocabulary=0)


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_of(
    bench: Bench, model: str, release: str, accelerator: str = H100, **args: Any
) -> Case:  # fmt: skip
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "adapters",
        "model": {"id": model},
        "hardware": {"accelerator": accelerator, "count": args.get("tensor_parallel_size", 1)},
        "engine": {"name": "vllm", "version": release, "args": {"max_model_len": 4096, **args}},
    }
    return bench.cases(json.dumps(spec))[0]


def lines(case: Case) -> dict[str, float]:
    ledger = case.ledger(case.terms())
    return {line.name: line.bytes / GIB for line in ledger.lines if line.phase == "load"}


def lora(bench: Bench, model: str, release: str, **args: Any) -> float:
    return lines(case_of(bench, model, release, enable_lora=True, **args))["LoRA"] * GIB


@pytest.mark.parametrize(
    ("model", "release", "accelerator", "args", "logged", "tolerance"),
    [
        # Public start-up logs: the weights with the buffers of one adapter.
        ("Qwen/Qwen3-8B", "0.22.0", "nvidia/t4", {"tensor_parallel_size": 2}, 7.71, 0.006),
        ("mistralai/Mistral-7B-Instruct-v0.2", "0.14.0", H100, {}, 13.58, 0.006),
        ("unsloth/Llama-3.2-1B-Instruct-FP8-Block", "0.11.2", "nvidia/l4",
         {"max_lora_rank": 32}, 1.4721, 0.002),
    ],
)  # fmt: skip
def test_weights_that_vllm_logs_with_lora(
    bench: Bench,
    model: str,
    release: str,
    accelerator: str,
    args: dict[str, Any],
    logged: float,
    tolerance: float,
) -> None:
    found = lines(case_of(bench, model, release, accelerator, enable_lora=True, **args))
    assert sum(found.values()) == pytest.approx(logged, abs=tolerance)
    assert found["LoRA"] > 0.05


def test_each_slice_of_a_fused_projection_has_its_own_a() -> None:
    # A: 3 x 16 x 4096; B: 16 x (2048 + 512 + 512) on one of two ranks.
    expected = (3 * 16 * 4096 + 16 * (2048 + 512 + 512)) * 2
    assert tensor_bytes(QKV, Split(tensor=2), ONE) == expected


def test_a_row_parallel_a_is_cut_with_its_input() -> None:
    assert tensor_bytes(DOWN, Split(tensor=2), ONE) == (16 * 6144 + 16 * 4096) * 2


def test_fully_sharded_cuts_the_other_half_too() -> None:
    told = ONE._replace(sharded=True)
    assert tensor_bytes(QKV, Split(tensor=2), told) == (3 * 8 * 4096 + 16 * 3072) * 2
    assert tensor_bytes(DOWN, Split(tensor=2), told) == (16 * 6144 + 16 * 2048) * 2


def test_experts_have_adapters_of_their_own() -> None:
    # Qwen3-30B-A3B on four ranks: gate and up of 128 experts, 192 wide here.
    apart = (2 * 16 * 2048 + 2 * 16 * 192) * 128 * 2
    assert tensor_bytes(GATE_UP, Split(tensor=4), ONE) == apart
    joined = (16 * 2048 + 16 * 384) * 128 * 2
    assert tensor_bytes(GATE_UP, Split(tensor=4), ONE, joined=True) == joined
    whole = tensor_bytes(GATE_UP, Split(tensor=4, expert=4), ONE)
    assert whole == (2 * 16 * 2048 + 2 * 16 * 768) * 32 * 2


def test_buffers_grow_with_rank_and_number(bench: Bench) -> None:
    one = lora(bench, "meta-llama/Llama-3.1-8B", "0.20.0")
    assert lora(bench, "meta-llama/Llama-3.1-8B", "0.20.0", max_loras=4) == pytest.approx(
        4 * one, rel=0.01
    )
    wide = lora(bench, "meta-llama/Llama-3.1-8B", "0.20.0", max_lora_rank=64)
    assert wide == pytest.approx(4 * one, rel=0.01)


def test_llama_8b_by_hand(bench: Bench) -> None:
    # 32 layers; A over 3 + 2 inputs of 4096, one of 4096 and one of 14336; B over all outputs.
    inputs = 3 * 4096 + 4096 + 2 * 4096 + 14_336
    outputs = 4096 + 2 * 1024 + 4096 + 2 * 14_336 + 4096
    ends = 2 * (128_256 + 4096)
    expected = 16 * 2 * (32 * (inputs + outputs) + ends)
    assert lora(bench, "meta-llama/Llama-3.1-8B", "0.20.0") == pytest.approx(expected, rel=1e-4)


def test_older_releases_keep_room_for_added_tokens(bench: Bench) -> None:
    new = lora(bench, "meta-llama/Llama-3.1-8B", "0.20.0")
    old = lora(bench, "meta-llama/Llama-3.1-8B", "0.11.0")
    # 256 rows of 4096 twice for each adapter, and 256 more in the table and in the head.
    assert old - new == pytest.approx(4 * 256 * 4096 * 2, rel=0.02)
    more = lora(bench, "meta-llama/Llama-3.1-8B", "0.11.0", lora_extra_vocab_size=512)
    assert more - old == pytest.approx(4 * 256 * 4096 * 2, rel=0.02)


def test_experts_take_adapters_from_0_11_1_on(bench: Bench) -> None:
    old = lora(bench, "Qwen/Qwen3-30B-A3B", "0.11.0")
    new = lora(bench, "Qwen/Qwen3-30B-A3B", "0.14.0")
    assert new > 20 * old
    experts = 48 * 128 * 16 * 2 * (2 * (2048 + 768) + 768 + 2048)
    assert new - old == pytest.approx(experts, rel=0.02)


def test_without_lora_there_are_no_buffers(bench: Bench) -> None:
    assert "LoRA" not in lines(case_of(bench, "Qwen/Qwen3-8B", "0.20.0", max_loras=8))


def test_which_models_adapt_embedding_and_head() -> None:
    assert takes_ends("llama", (0, 8, 5))
    assert not takes_ends("qwen2", (0, 33, 0))
    assert not takes_ends("qwen3", (0, 14, 1))
    assert takes_ends("qwen3", (0, 16, 0))
    assert takes_ends("mistral", (0, 14, 0))
    assert not takes_ends("mistral", (0, 19, 0))
