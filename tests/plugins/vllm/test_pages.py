"""KV pages by release: worked examples whose blocks and concurrency vLLM's accounting gives."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck import Case, KvLayout
from capcheck.quantity import GIB
from capcheck.testing import Bench


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_of(bench: Bench, model: str, release: str, accelerator: str, **args: Any) -> Case:
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "pages",
        "model": {"id": model},
        "hardware": {"accelerator": accelerator},
        "engine": {"name": "vllm", "version": release, "args": args},
    }
    return bench.cases(json.dumps(spec))[0]


def layout_of(bench: Bench, model: str, release: str, **args: Any) -> KvLayout:
    return case_of(bench, model, release, "nvidia/h100-sxm5-80gb", **args).kv()


@pytest.mark.parametrize(
    ("model", "tensor", "per_token"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 1, 131072),  # 2 x 32 x 8 x 128 x 2
        ("meta-llama/Llama-3.1-70B-Instruct", 4, 81920),
        ("meta-llama/Llama-3.1-405B-Instruct", 8, 64512),
        ("Qwen/Qwen2.5-7B-Instruct", 1, 57344),
        ("Qwen/Qwen2.5-7B-Instruct", 4, 14336),
    ],
)
def test_bytes_per_token(bench: Bench, model: str, tensor: int, per_token: int) -> None:
    layout = layout_of(bench, model, "0.11.0", tensor_parallel_size=tensor, max_model_len=4096)
    assert layout.bytes_per_token == per_token
    assert layout.block_tokens == 16
    assert layout.block_bytes == 16 * per_token


def test_kv_heads_replicate_beyond_their_number(bench: Bench) -> None:
    four = layout_of(bench, "Qwen/Qwen2.5-7B-Instruct", "0.11.0", tensor_parallel_size=4)
    eight = layout_of(bench, "Qwen/Qwen2.5-7B-Instruct", "0.11.0", tensor_parallel_size=8)
    assert eight.bytes_per_token == four.bytes_per_token


@pytest.mark.parametrize("tensor", [1, 8])
def test_a_latent_cache_is_not_divided(bench: Bench, tensor: int) -> None:
    layout = layout_of(bench, "deepseek-ai/DeepSeek-V3", "0.11.0", tensor_parallel_size=tensor)
    assert layout.bytes_per_token == 61 * (512 + 64) * 2


def test_fp8_halves(bench: Bench) -> None:
    plain = layout_of(bench, "meta-llama/Llama-3.1-8B-Instruct", "0.11.0")
    half = layout_of(bench, "meta-llama/Llama-3.1-8B-Instruct", "0.11.0", kv_cache_dtype="fp8")
    assert half.bytes_per_token * 2 == plain.bytes_per_token


# 50 GiB, max_model_len 131,072, 8,192 batched tokens; 12 full and 12 sliding layers.
@pytest.mark.parametrize(
    ("release", "blocks_of_one", "concurrency", "logged"),
    [
        ("0.11.0", 8713, 15.67, 1_092_256),
        ("0.26.0", 9225, 14.80, 1_939_908),
    ],
)
def test_hybrid_groups(
    bench: Bench, release: str, blocks_of_one: int, concurrency: float, logged: int
) -> None:
    layout = layout_of(
        bench, "openai/gpt-oss-20b", release, max_model_len=131072, max_num_batched_tokens=8192
    )
    blocks = layout.blocks(50 * GIB)
    assert layout.block_bytes == 32768 * 12
    assert blocks == 136_533
    assert layout.request_blocks(131072) == blocks_of_one
    assert blocks / layout.request_blocks(131072) == pytest.approx(concurrency, abs=0.005)
    assert layout.logged_tokens(blocks) == pytest.approx(logged, rel=2e-6)


def test_padded_groups(bench: Bench) -> None:
    """10 full and 52 sliding layers: groups of 10, one full and six sliding."""
    layout = layout_of(
        bench, "google/gemma-3-27b-it", "0.11.0", tensor_parallel_size=2, max_model_len=131072,
        max_num_batched_tokens=8192,
    )  # fmt: skip
    blocks = layout.blocks(40 * GIB)
    assert blocks == 65_536
    assert blocks / layout.request_blocks(131072) == pytest.approx(5.62, abs=0.01)


def test_without_the_hybrid_manager_windows_count_as_full(bench: Bench) -> None:
    args = {"tensor_parallel_size": 2, "max_model_len": 131072}
    split = layout_of(bench, "google/gemma-3-27b-it", "0.11.0", **args)
    whole = layout_of(
        bench, "google/gemma-3-27b-it", "0.11.0", disable_hybrid_kv_cache_manager=True, **args
    )
    assert whole.bytes_per_token > 5 * split.bytes_per_token


def test_linear_attention_enlarges_the_block(bench: Bench) -> None:
    """One attention page holds one recurrent state: 784 tokens, as the log says."""
    layout = layout_of(bench, "Qwen/Qwen3.5-27B", "0.19.0", tensor_parallel_size=4)
    assert layout.block_tokens == 784


@pytest.mark.parametrize(
    ("model", "release", "accelerator", "available", "tokens", "concurrency", "length"),
    [
        # logged: 1,394 blocks, 2.23x of 10,000 tokens
        ("Qwen/Qwen3-4B", "0.8.5", "nvidia/rtx-2060-12gb", 3.06 * GIB, 22304, 2.23, 10_000),
        # logged: 93,872 tokens, 5.73x
        (
            "Qwen/Qwen2-7B-Instruct",
            "0.10.1",
            "nvidia/a100-sxm4-80gb",
            5.01 * GIB,
            93872,
            5.73,
            16_384,
        ),
    ],
)
def test_logged_tokens(
    bench: Bench, model: str, release: str, accelerator: str, available: float, tokens: int,
    concurrency: float, length: int,
) -> None:  # fmt: skip
    layout = case_of(bench, model, release, accelerator, max_model_len=length).kv()
    blocks = layout.blocks(available)
    assert layout.logged_tokens(blocks) == pytest.approx(tokens, rel=2e-3)
    assert blocks / layout.request_blocks(length) == pytest.approx(concurrency, abs=0.01)


def test_drafts_add_their_layers(bench: Bench) -> None:
    alone = layout_of(bench, "meta-llama/Llama-3.1-70B-Instruct", "0.11.0", tensor_parallel_size=2)
    drafted = layout_of(
        bench, "meta-llama/Llama-3.1-70B-Instruct", "0.11.0", tensor_parallel_size=2,
        speculative_config={"model": "meta-llama/Llama-3.1-8B-Instruct",
                            "num_speculative_tokens": 4, "draft_tensor_parallel_size": 1},
    )  # fmt: skip
    assert drafted.bytes_per_token == alone.bytes_per_token + 131072
