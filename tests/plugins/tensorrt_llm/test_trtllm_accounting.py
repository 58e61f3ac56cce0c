"""Worked examples of the accounting: lines, blocks, layouts."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from trtllm_specs import case_of, verdicts

from capcheck import GIB
from capcheck_tensorrt_llm.defaults import block_tokens, graph_sizes, stage_sizes
from capcheck_tensorrt_llm.releases import releases
from capcheck_tensorrt_llm.weights import split_of

LATENT = 61 * (512 + 64) * 2  # DeepSeek-R1: 61 layers, kv_lora_rank and rope, 16 bit


def test_the_share_is_one_of_what_is_left() -> None:
    """(visible - weights - step - other - graphs) x 0.9, the default."""
    case = case_of(args={"max_seq_len": 8192})
    ledger = case.ledger(case.terms())
    used = sum(one.bytes for one in ledger.lines if not one.name.startswith("left free"))
    assert ledger.kv == pytest.approx(0.9 * (ledger.visible - used))
    # 32 layers x 8 KV heads x 128 x 2 x 2 bytes, in blocks of 32 tokens
    assert case.kv().bytes_per_token == 131072
    assert case.kv().block_tokens == 32


def test_a_stated_number_of_tokens_is_the_pool() -> None:
    case = case_of(args={"max_seq_len": 8192, "kv_cache_config": {"max_tokens": 65536}})
    ledger = case.ledger(case.terms())
    assert ledger.pool == 65536 * 131072
    assert case.estimate("kv_cache_tokens").mid == 65536


def test_stated_bytes_are_the_pool() -> None:
    size = 10 * 2**30
    case = case_of(
        version="1.3.0",
        args={"max_seq_len": 8192, "kv_cache_config": {"max_gpu_total_bytes": size}},
    )
    assert case.ledger(case.terms()).pool == size


def test_the_rotary_table_is_kept_in_fp32() -> None:
    """131,072 positions x 128 x 4 B = 64 MiB: logged weights are 8.55 GiB, the shards 8.49."""
    case = case_of("Llama-3.1-8B-Instruct-FP8")
    assert case.estimate("weights_bytes").mid / GIB == pytest.approx(8.52, abs=0.01)


def test_attention_data_parallelism_splits_only_the_experts() -> None:
    """Every rank holds the attention whole and serves requests of its own."""
    args = {"tensor_parallel_size": 8, "moe_expert_parallel_size": 8, "max_seq_len": 8192,
            "kv_cache_config": {"dtype": "fp8"}}  # fmt: skip
    alone = case_of("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, args=args)
    spread = case_of(
        "deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8,
        args={**args, "enable_attention_dp": True},
    )  # fmt: skip
    assert (spread.plan.tensor.get(), spread.plan.data.get(), spread.plan.devices) == (1, 8, 8)
    assert (alone.plan.tensor.get(), alone.plan.data.get(), alone.plan.devices) == (8, 1, 8)
    assert split_of(spread).expert == split_of(alone).expert == 8
    assert spread.estimate("weights_bytes").mid > alone.estimate("weights_bytes").mid
    # A latent is one head that every rank holds whole, split or not.
    assert spread.kv().bytes_per_token == alone.kv().bytes_per_token == LATENT / 2


def test_hopper_keeps_latents_in_blocks_of_64() -> None:
    args = {"tensor_parallel_size": 8, "max_seq_len": 8192}
    for accelerator, tokens in (("nvidia/h200-sxm-141gb", 64), ("nvidia/b200-180gb", 32)):
        case = case_of("deepseek-ai/DeepSeek-R1", accelerator, 8, args=args)
        assert case.kv().block_tokens == tokens
        assert case.kv().bytes_per_token == LATENT


def test_windows_are_a_pattern_over_the_layers() -> None:
    """gpt-oss: every other layer keeps 128 tokens; 36 layers x 8 heads x 64 x 2 x 2 bytes."""
    args = {"max_seq_len": 32768, "kv_cache_config": {"max_attention_window": [128, 32768]}}
    kv = case_of("openai/gpt-oss-120b", "nvidia/b200-180gb", args=args).kv()
    whole = 36 * 8 * 64 * 2 * 2
    assert kv.bytes_per_token == whole / 2
    expected = whole / 2 * (32768 + 128)
    assert kv.request_bytes(32768) == pytest.approx(expected, rel=0.001)
    assert kv.request_bytes(64) == pytest.approx(whole * 64)


def test_an_engine_that_is_built_has_a_decoder_of_its_own() -> None:
    """Logits of every sequence about three times: 12 B x 2,048 x 128,256."""
    built = case_of(version="0.21.0", args={"max_seq_len": 8192})
    torch = case_of(version="0.21.0", args={"max_seq_len": 8192, "backend": "pytorch"})
    assert built.ledger(built.terms()).bytes_of("decoder") == 12 * 2048 * 128256
    assert torch.ledger(torch.terms()).bytes_of("decoder") == 0


def test_engines_that_were_built_before_are_not_judged() -> None:
    found = verdicts(version="0.16.0", args={"max_batch_size": 64})
    assert found["weights/fit"] == found["kv-cache/one-request"] == {"skip"}


def test_a_request_that_is_too_long_is_shortened() -> None:
    """TensorRT-LLM lowers max_seq_len with a warning, unless it is told to stop."""
    args = {"max_seq_len": 131072, "max_batch_size": 8}
    lenient = verdicts(accelerator="nvidia/rtx-4090", args=args)
    strict = verdicts(
        accelerator="nvidia/rtx-4090",
        args={**args, "fail_fast_on_attention_window_too_large": True},
    )
    assert lenient["kv-cache/one-request"] == {"at risk"}
    assert strict["kv-cache/one-request"] == {"fail"}


def test_weights_that_do_not_fit_are_an_error() -> None:
    assert verdicts("meta-llama/Llama-3.1-70B-Instruct")["weights/fit"] == {"fail"}


def test_recurrent_states_are_not_guessed() -> None:
    found = verdicts("Qwen/Qwen3-Next-80B-A3B-Instruct", count=2, args={"tp_size": 2})
    assert found["weights/fit"] == {"skip"}


@pytest.mark.parametrize(
    ("largest", "padding", "count", "last"),
    [(128, False, 34, 128), (128, True, 19, 128), (1024, False, 37, 1024), (8, False, 8, 8),
     (100, False, 34, 100)],
)  # fmt: skip
def test_graph_sizes(largest: int, padding: bool, count: int, last: int) -> None:
    """1 to 32, 64, 128, then powers of two; with padding 1, 2, 4 and multiples of 8."""
    sizes = graph_sizes(largest, padding=padding)
    assert (len(sizes), sizes[-1]) == (count, last)


@given(st.integers(1, 4096), st.booleans())
def test_graph_sizes_rise_to_the_largest(largest: int, padding: bool) -> None:
    sizes = graph_sizes(largest, padding=padding)
    assert list(sizes) == sorted(set(sizes))
    assert sizes[-1] == largest


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_take_all_layers(layers: int, stages: int) -> None:
    sizes = stage_sizes(layers, stages)
    assert sum(sizes) == layers
    assert list(sizes) == sorted(sizes, reverse=True)
    assert sizes[0] - sizes[-1] <= 1


@given(st.floats(0.05, 0.95), st.integers(64, 16384))
def test_a_larger_share_is_a_larger_pool(share: float, tokens: int) -> None:
    pools = []
    for part in (share, min(0.99, share + 0.04)):
        args = {"max_num_tokens": tokens, "max_seq_len": 8192,
                "kv_cache_config": {"free_gpu_memory_fraction": part}}  # fmt: skip
        case = case_of(args=args)
        pools.append(case.ledger(case.terms()).kv)
    assert 0 < pools[0] < pools[1] < 80 * GIB


def test_releases() -> None:
    (known,) = releases("1.2.0rc3", "")
    assert known.known
    assert known.version == (1, 2, 0)
    (unpinned,) = releases(None, "the image has no tag")
    assert not unpinned.known
    assert unpinned.among == ((1, 0, 0), (1, 4, 0))
    assert block_tokens((0, 18, 2)) == 64
    assert block_tokens((0, 20, 0)) == 32
