"""Cells and pools against figures worked by hand from the models' configurations."""

from __future__ import annotations

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sglang_specs import spec

from capcheck import Case
from capcheck.quantity import GIB
from capcheck.testing import Bench
from capcheck_sglang import pool

BENCH = Bench()
H100 = "nvidia/h100-sxm5-80gb"


def one(text: str) -> Case:
    (case,) = BENCH.cases(text)
    return case


@pytest.mark.parametrize(
    ("model", "devices", "release", "args", "bytes_per_token"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 1, "0.5.4", {}, 2 * 32 * 8 * 128 * 2),
        ("meta-llama/Llama-3.1-70B-Instruct", 4, "0.5.4", {"tp": 4}, 2 * 80 * 2 * 128 * 2),
        ("meta-llama/Llama-3.1-70B-Instruct", 4, "0.5.4", {"tp": 4, "kv_cache_dtype": "fp8_e4m3"},
         2 * 80 * 2 * 128),
        ("deepseek-ai/DeepSeek-R1", 8, "0.5.4", {"tp": 8}, 61 * 576 * 2),
        # 12 + 12 layers of 8 heads x 64: one pool before 0.5.8, one for windows after.
        ("openai/gpt-oss-20b", 1, "0.5.4", {}, 24 * 2 * 8 * 64 * 2),
        ("openai/gpt-oss-20b", 1, "0.5.9", {}, 12 * 2 * 8 * 64 * 2),
    ],
)  # fmt: skip
def test_bytes_of_a_token(
    model: str, devices: int, release: str, args: dict[str, Any], bytes_per_token: int
) -> None:
    case = one(spec(model, H100, devices, release, **args))
    assert case.kv().bytes_per_token == bytes_per_token


def test_windowed_tokens_take_their_share_of_the_pool() -> None:
    case = one(spec("openai/gpt-oss-20b", H100, 1, "0.5.9", swa_full_tokens_ratio=0.5))
    each = 12 * 2 * 8 * 64 * 2
    assert case.kv().block_bytes == each * 1.5


def test_ranks_of_attention_hold_whole_caches_and_divide_requests() -> None:
    args: dict[str, Any] = {
        "tp": 8,
        "dp": 8,
        "enable_dp_attention": True,
        "max_running_requests": 256,
    }
    case = one(spec("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, "0.5.4", **args))
    assert (case.plan.tensor.get(), case.plan.data.get(), case.plan.devices) == (1, 8, 8)
    assert case.plan.max_sequences.get() == 32
    alone = one(spec("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, "0.5.4", tp=8))
    more = case.estimate("weights_bytes").mid - alone.estimate("weights_bytes").mid
    assert 5 * GIB < more < 20 * GIB  # attention and embedding are held whole on every device


def test_max_total_tokens_caps_the_pool() -> None:
    case = one(spec("Qwen/Qwen2.5-7B-Instruct", H100, 1, "0.5.4", max_total_tokens=50_000))
    assert case.estimate("kv_cache_tokens").mid == 50_000
    assert case.estimate("kv_cache_bytes").mid == 50_000 * 57_344


def test_states_and_cells_share_the_rest_by_the_ratio() -> None:
    # granite-4.0-h-micro: 36 states of 13,056 conv values (bf16) and 524,288 fp32 values; cells of
    # 4 layers x 8 heads x 64 x 2 x 2 B = 8,192 B. Logged: 38 states beside 3.04 GiB of cells.
    case = one(spec("granite-4.0-h-micro", "nvidia/l4", 1, "0.5.8", mem_fraction_static=0.8))
    ledger = case.ledger(case.terms())
    states = ledger.bytes_of("recurrent states")
    slot = 36 * (13_056 * 2 + 524_288 * 4)
    assert states % slot == 0
    rest = ledger.left + states
    assert states / slot == math.floor(rest * 0.9 / 1.9 / slot)
    assert case.kv().bytes_per_token == 8192


def test_a_pool_smaller_than_the_longest_request_starts() -> None:
    text = spec("Qwen/QwQ-32B", "nvidia/l4", 4, "0.4.3.post4", tp=4, context_length=131072,
                mem_fraction_static=0.85)  # fmt: skip
    (outcome,) = BENCH.outcomes(text)
    assert outcome.judged["kv-cache/one-request"][0].result.verdict != "fail"


MODELS = (
    "meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen3-30B-A3B", "openai/gpt-oss-20b",
    "google/gemma-3-27b-it", "deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3.2-Exp",
    "Qwen/Qwen3-Next-80B-A3B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct",
    "moonshotai/Kimi-K2-Instruct",
    "meta-llama/Llama-4-Scout-17B-16E-Instruct", "mistralai/Mixtral-8x7B-Instruct-v0.1",
)  # fmt: skip
RELEASES = ("0.3.5", "0.4.1", "0.4.6.post5", "0.4.9", "0.5.2", "0.5.4", "0.5.8", "0.5.12", "0.5.23")
PARTS = (H100, "nvidia/rtx-4090", "nvidia/b200-sxm-180gb", "amd/mi300x-192gb", "nvidia/l4")


@settings(max_examples=60, deadline=None)
@given(
    st.sampled_from(MODELS),
    st.sampled_from(RELEASES),
    st.sampled_from(PARTS),
    st.sampled_from([1, 2, 4, 8]),
    st.booleans(),
    st.sampled_from(["auto", "fp8_e5m2"]),
)
def test_every_model_has_finite_figures(
    model: str, release: str, part: str, devices: int, ranks: bool, kv: str
) -> None:
    args: dict[str, Any] = {"tp": devices, "kv_cache_dtype": kv}
    if ranks and devices > 1:
        args |= {"dp": devices, "enable_dp_attention": True}
    case = one(spec(model, part, devices, release, **args))
    if case.accelerator.unknown or case.model.unknown:
        return
    for name in ("weights_bytes", "kv_cache_bytes", "kv_cache_tokens", "activation_bytes"):
        band = case.estimate(name)
        assert all(math.isfinite(side) for side in band)
        assert band.low <= band.mid <= band.high
    assert case.estimate("weights_bytes").low > 0


def test_only_a_read_configuration_makes_the_cells_small() -> None:
    asked = one(spec("GLM-5-NVFP4", "nvidia/rtx-pro-6000-blackwell-ws", 8, "0.5.9", tp=8))
    assert asked.plan.kv_dtype.get() == "bf16"  # logged: 314,304 tokens of 100,152 B
    assert asked.kv().bytes_per_token == 78 * (576 * 2 + 128 + 4)


def test_layers_that_read_anothers_cells_have_cells_all_the_same() -> None:
    """A log of gemma-4-E4B-it: 997,846 cells and 798,276 of the windows in 79.94 GiB."""
    case = one(spec("google/gemma-4-E4B-it", "nvidia/gb10-dgx-spark", release="0.5.18"))
    own = pool.cells(case, 0, (42,))
    assert own.full == 7 * 2 * 2 * 512 * 2  # 7 of 42 layers keep every token, 2 heads of 512
    assert own.windowed == 35 * 2 * 2 * 256 * 2
    held = 997_846 * own.full + 798_276 * own.windowed
    assert held / GIB == pytest.approx(79.94, abs=0.01)


def test_a_layer_without_attention_stays_without_cells() -> None:
    case = one(spec("Qwen/Qwen3-8B", H100, release="0.5.4"))
    layers = case.model.get("model").architecture.layers
    bare = [layer._replace(cache=None) for layer in layers]
    assert [layer.cache for layer in pool.paged(bare)] == [None] * len(bare)
