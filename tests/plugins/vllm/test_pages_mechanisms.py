"""KV pages mechanism by mechanism, against what each release's sources compute."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pages_kit import B200, H100, case_of, layout_of

DEEPSEEK = "deepseek-ai/DeepSeek-V3"
GEMMA = "google/gemma-3-27b-it"  # 10 full layers and 52 of a window
SCOUT = "meta-llama/Llama-4-Scout-17B-16E-Instruct"  # 12 full layers and 36 in chunks
QWEN35 = "Qwen/Qwen3.5-27B"  # 16 full layers and 48 gated delta nets
NANO = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
V4 = "deepseek-ai/DeepSeek-V4-Flash"
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


@pytest.mark.parametrize(
    ("release", "accelerator", "args", "block"),
    [
        ("0.7.3", H100, {}, 16),
        ("0.9.2", H100, {}, 64),  # FlashMLA
        ("0.9.2", "nvidia/a100-sxm4-80gb", {}, 16),  # which is for Hopper only
        ("0.9.2", B200, {}, 16),
        ("0.10.2", B200, {}, 128),  # CUTLASS
        ("0.16.0", B200, {}, 64),  # FlashInfer
        ("0.18.1", B200, {}, 32),  # the smallest that it takes
        ("0.18.1", H100, {}, 16),  # FlashAttention's
        ("0.18.1", H100, {"kv_cache_dtype": "fp8"}, 64),  # which takes no quantized cache
        ("0.18.1", H100, {"attention_backend": "FLASHMLA"}, 64),
        ("0.18.1", H100, {"block_size": 128}, 128),
        ("0.12.0", H100, {"block_size": 128}, 128),  # a multiple of 64 stays
        ("0.11.0", H100, {"block_size": 128}, 64),  # it did not before
    ],
)
def test_blocks_of_latents(
    release: str, accelerator: str, args: dict[str, Any], block: int
) -> None:
    layout = layout_of(DEEPSEEK, release, accelerator, tensor_parallel_size=8, **args)
    assert layout.block_tokens == block


def test_blocks_on_other_devices() -> None:
    assert layout_of(LLAMA, "0.14.1", "intel/arc-pro-b60").block_tokens == 64


def test_a_backend_that_the_environment_names() -> None:
    env = {"VLLM_ATTENTION_BACKEND": "TRITON_MLA"}
    assert layout_of(DEEPSEEK, "0.12.0", env=env, tensor_parallel_size=8).block_tokens == 16


@pytest.mark.parametrize(
    ("release", "dtype", "per_token"),
    [
        ("0.6.6", "auto", 61 * 2 * (128 // 8) * 256 * 2),  # unfolded to whole heads of 256
        ("0.7.1", "auto", 61 * 576 * 2),
        ("0.7.3", "auto", 61 * 1280),  # rounded up to 256 B
        ("0.8.5", "auto", 61 * 576 * 2),
        ("0.18.1", "fp8", 61 * 576),
    ],
)
def test_bytes_of_latents(release: str, dtype: str, per_token: float) -> None:
    layout = layout_of(DEEPSEEK, release, tensor_parallel_size=8, kv_cache_dtype=dtype)
    assert layout.bytes_per_token == per_token


@pytest.mark.parametrize(
    ("release", "accelerator", "dtype", "per_token"),
    [
        ("0.19.1", H100, "auto", 78 * (1152 + 132)),  # as a log says: 100,152 B
        ("0.19.1", H100, "fp8", 78 * (656 + 132)),
        ("0.22.0", B200, "fp8", 78 * (576 + 132)),  # FlashInfer keeps no scales
        ("0.26.0", B200, "fp8_ds_mla", 78 * (656 + 132)),
        ("0.33.0", H100, "nvfp4_ds_mla", 78 * (352 + 132)),
    ],
)
def test_bytes_of_sparse_latents(
    release: str, accelerator: str, dtype: str, per_token: float
) -> None:
    layout = layout_of(
        "zai-org/GLM-5.1-FP8", release, accelerator, tensor_parallel_size=8, kv_cache_dtype=dtype
    )
    assert layout.bytes_per_token == per_token


@pytest.mark.parametrize(
    ("dtype", "per_head"),
    [
        ("fp8_e5m2", 2 * 128),
        ("fp8_per_token_head", 2 * 128 + 8),
        ("int4_per_token_head", 2 * 64 + 8),
        ("nvfp4", 2 * (64 + 8)),
    ],
)
def test_bytes_of_quantized_heads(dtype: str, per_head: int) -> None:
    layout = layout_of(LLAMA, "0.25.1", kv_cache_dtype=dtype)
    assert layout.bytes_per_token == 32 * 8 * per_head


def test_layers_left_out_of_the_quantization() -> None:
    """Two of 32 layers stay bf16: all are in one group, whatever their pages."""
    skipped = ["0", "31"]
    layout = layout_of(LLAMA, "0.20.0", kv_cache_dtype="fp8", kv_cache_dtype_skip_layers=skipped)
    assert layout.bytes_per_token == 30 * 2048 + 2 * 4096


@pytest.mark.parametrize(
    ("model", "release", "args", "env", "on"),
    [
        (GEMMA, "0.9.0", {}, {}, False),
        (GEMMA, "0.9.1", {}, {}, True),
        (GEMMA, "0.11.0", {"kv_events_config": {"enable_kv_cache_events": True}}, {}, False),
        (GEMMA, "0.20.0", {"kv_events_config": {"enable_kv_cache_events": True}}, {}, True),
        (GEMMA, "0.18.1", {"kv_transfer_config": {"kv_connector": "NixlConnector"}}, {}, False),
        (GEMMA, "0.22.0", {"kv_transfer_config": {"kv_connector": "NixlConnector"}}, {}, True),
        (GEMMA, "0.22.0", {"kv_transfer_config": {"kv_connector": "LMCacheConnectorV1"}}, {},
         False),
        (GEMMA, "0.18.1", {"kv_transfer_config": {"kv_connector": "NixlConnector"},
                           "disable_hybrid_kv_cache_manager": False}, {}, True),
        (GEMMA, "0.14.1", {"kv_offloading_size": 20}, {}, False),
        (GEMMA, "0.22.0", {"kv_offloading_size": 20}, {}, True),
        (SCOUT, "0.10.0", {}, {}, True),
        (SCOUT, "0.12.0", {}, {}, False),
        (SCOUT, "0.12.0", {}, {"VLLM_ALLOW_CHUNKED_LOCAL_ATTN_WITH_HYBRID_KV_CACHE": "1"}, True),
        (SCOUT, "0.14.0", {}, {}, True),
    ],
)  # fmt: skip
def test_when_windows_are_kept_whole(
    model: str, release: str, args: dict[str, Any], env: dict[str, str], on: bool
) -> None:
    layout = layout_of(
        model, release, env=env, tensor_parallel_size=4, max_model_len=131072, **args
    )
    layers, growing = (62, 10) if model == GEMMA else (48, 12)
    a_token = 2 * (4 if model == GEMMA else 2) * 128 * 2
    assert layout.bytes_per_token == a_token * (growing if on else layers)


def test_a_window_alone_stays_a_window() -> None:
    layout = layout_of(
        "mistralai/Mistral-7B-v0.1", "0.11.0", max_model_len=32768, max_num_batched_tokens=2048,
        disable_hybrid_kv_cache_manager=True,
    )  # fmt: skip
    assert layout.request_blocks(32768) == math.ceil((4095 + 2048) / 16) + 1


def test_chunks_count_from_the_release_that_frees_them() -> None:
    args: dict[str, Any] = {
        "tensor_parallel_size": 8, "max_model_len": 131072, "max_num_batched_tokens": 8192,
    }  # fmt: skip
    whole = layout_of(SCOUT, "0.9.2", **args)
    freed = layout_of(SCOUT, "0.14.1", **args)
    assert whole.request_blocks(131072) == 8192
    assert freed.request_blocks(131072) == 8192 + 3 * (8192 + 8192) // 16


@pytest.mark.parametrize(
    ("release", "args", "steps"),
    [
        ("0.25.1", {}, 1),
        ("0.26.0", {}, 2),
        ("0.26.0", {"async_scheduling": False}, 1),
        ("0.26.0", {"speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}, 1),
        ("0.26.0", {"distributed_executor_backend": "ray"}, 1),
        ("0.26.0", {"pipeline_parallel_size": 2}, 3),  # dense models: one step more than stages
        ("0.30.0", {"pipeline_parallel_size": 4, "async_scheduling": False}, 4),
    ],
)
def test_tokens_in_flight(release: str, args: dict[str, Any], steps: int) -> None:
    layout = layout_of(
        GEMMA, release, max_model_len=131072, max_num_batched_tokens=4096,
        tensor_parallel_size=2, **args,
    )  # fmt: skip
    window = math.ceil((1023 + 4096 * steps) / 16) + 1
    assert layout.request_blocks(131072) == 8192 + 6 * window


@pytest.mark.parametrize(
    ("release", "args", "mode", "pages"),
    [
        ("0.14.1", {"enable_prefix_caching": True}, "none", 1),  # a model that keeps none
        ("0.17.1", {}, "none", 1),
        ("0.17.1", {"enable_prefix_caching": True}, "align", 2),
        ("0.25.1", {}, "none", 1),
        ("0.26.0", {}, "align", 2),
        ("0.26.0", {"enable_prefix_caching": False}, "none", 1),
        ("0.26.0", {"speculative_config": {"method": "mtp", "num_speculative_tokens": 2}},
         "align", 4),
    ],
)  # fmt: skip
def test_states_of_a_request(release: str, args: dict[str, Any], mode: str, pages: int) -> None:
    """Three groups of states beside one of 16 attention layers, or of 17 with the draft's."""
    case = case_of(QWEN35, release, max_model_len=32768, tensor_parallel_size=2, **args)
    layout = case.kv()
    assert case.plan.extra["mamba_cache_mode"].get() == mode
    attention = math.ceil(32768 / layout.block_tokens)
    assert layout.request_blocks(32768) == attention + 3 * pages


def test_a_drafted_token_widens_the_convolution() -> None:
    draft: dict[str, Any] = {"speculative_config": {"method": "mtp", "num_speculative_tokens": 1}}
    assert layout_of(QWEN35, "0.19.0", tensor_parallel_size=4).block_tokens == 784
    assert layout_of(QWEN35, "0.19.0", tensor_parallel_size=4, **draft).block_tokens == 800


@pytest.mark.parametrize(
    ("release", "args", "block"),
    [
        ("0.12.0", {}, 1072),  # logged: states in bf16
        ("0.13.0", {}, 2096),  # in fp32, as the configuration says
        ("0.13.0", {"mamba_ssm_cache_dtype": "float16"}, 1072),
        ("0.18.0", {"enable_prefix_caching": True}, 2176),  # whole chunks of 128
        ("0.30.0", {}, 2096),
    ],
)
def test_blocks_that_hold_a_state(release: str, args: dict[str, Any], block: int) -> None:
    assert layout_of(NANO, release, max_model_len=262144, **args).block_tokens == block


def test_every_state_is_kept_where_prefixes_ask_for_it() -> None:
    args: dict[str, Any] = {"max_model_len": 21760, "enable_prefix_caching": True}
    layout = layout_of(NANO, "0.18.0", **args)
    assert layout.request_blocks(21760) == 10 + 4 * 10  # 23 states in groups of 6


@pytest.mark.parametrize(("ranks", "groups"), [(1, 1), (8, 8)])
def test_groups_of_a_state_are_copied_to_every_rank(ranks: int, groups: int) -> None:
    """Granite's 128 heads of 64 share one group of 128: every rank holds one whole."""
    layout = layout_of("ibm-granite/granite-4.0-h-small", "0.18.0", tensor_parallel_size=ranks)
    state = ((8192 + 2 * 128 * groups) * 3 + 128 * 64 * 128) // ranks * 2
    a_token = 2 * (8 // ranks) * 128 * 2
    assert layout.block_tokens == math.ceil(state / a_token / 16) * 16


def test_latents_among_states_share_blocks_of_128() -> None:
    """As logged: 640 tokens, and 20.75 % of padding in a state's page."""
    layout = layout_of("zai-org/GLM-5.3-Flash", "0.28.0", precision="fp8", tensor_parallel_size=8)
    assert layout.block_tokens == 640
    state = 73728 // 8 * 2 + 1048576 // 8 * 4
    assert 640 * 512 * 2 / state == pytest.approx(1.2075, abs=5e-5)


@pytest.mark.parametrize(
    ("dcp", "pcp", "release", "ranks"),
    [(2, 1, "0.11.0", 2), (2, 2, "0.14.1", 4), (2, 2, "0.26.0", 2)],
)
def test_ranks_share_a_context(dcp: int, pcp: int, release: str, ranks: int) -> None:
    args: dict[str, Any] = {"tensor_parallel_size": 8, "max_model_len": 65536}
    one = layout_of(DEEPSEEK, release, **args)
    shared = layout_of(
        DEEPSEEK, release, decode_context_parallel_size=dcp,
        prefill_context_parallel_size=pcp, **args,
    )  # fmt: skip
    assert shared.block_bytes == one.block_bytes
    assert shared.request_blocks(65536) * ranks == one.request_blocks(65536)
    assert shared.logged_tokens(1000) == one.logged_tokens(1000) * ranks


def test_a_stage_holds_its_part_of_each_group() -> None:
    """48 layers in turn of two kinds: two groups of 18, of which a stage holds 9 each."""
    whole = layout_of("openai/gpt-oss-120b", "0.11.0", tensor_parallel_size=2)
    stage = layout_of(
        "openai/gpt-oss-120b", "0.11.0", tensor_parallel_size=2, pipeline_parallel_size=2
    )
    assert stage.block_bytes * 2 == whole.block_bytes
    assert stage.request_blocks(65536) == whole.request_blocks(65536)


@pytest.mark.parametrize(("release", "logged"), [("0.20.2", 16_000), ("0.21.0", 15_880)])
def test_the_logged_figure_changes_its_meaning(release: str, logged: int) -> None:
    """Blocks x 16 tokens, then concurrency x length: 1000 / 126 x 2001."""
    layout = layout_of(LLAMA, release, max_model_len=2001)
    assert layout.request_blocks(2001) == 126
    assert layout.logged_tokens(1000) == logged


@pytest.mark.parametrize(
    ("release", "block_bytes", "flight"),
    [
        # Pages of 37,440, 8,640 and 1,728 B: 22 whole sets; 22, 21 and 20 of each; the widest
        # group, 21 + 21 + 20 of each.
        ("0.20.0", 22 * 47_808, 8192),
        ("0.23.0", 22 * 37_440 + 21 * 8_640 + 20 * 1_728, 8192),
        ("0.31.0", 21 * 37_440 + 21 * 8_640 + 20 * 1_728, 2 * 8192),
    ],
)
def test_deepseek_v4(release: str, block_bytes: int, flight: int) -> None:
    layout = layout_of(
        V4, release, tensor_parallel_size=8, max_model_len=262144, max_num_batched_tokens=8192
    )
    assert layout.block_bytes == block_bytes
    windows = (
        2 * (math.ceil((127 + flight) / 64) + 1)  # 43 layers in two groups
        + math.ceil((7 + flight) / 4) + 1  # states of compressors by 4
        + math.ceil((127 + flight) / 8) + 1  # and by 128
    )  # fmt: skip
    assert layout.request_blocks(262144) == 262144 // 256 + windows
