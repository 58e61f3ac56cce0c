"""What holds of KV pages in every release, for every kind of model."""

from __future__ import annotations

from functools import cache

from hypothesis import given, settings
from hypothesis import strategies as st
from pages_kit import B200, H100, layout_of

from capcheck import KvLayout
from capcheck.quantity import GIB

RELEASES = ("0.7.3", "0.8.5", "0.9.2", "0.11.0", "0.12.0", "0.14.1", "0.17.1", "0.19.1", "0.20.0",
            "0.23.0", "0.26.0", "0.28.0", "0.30.0", "0.33.0")  # fmt: skip
PLAIN = ("meta-llama/Llama-3.1-8B-Instruct", "Qwen/Qwen2.5-7B-Instruct", "deepseek-ai/DeepSeek-V3")
MIXED = ("google/gemma-3-27b-it", "openai/gpt-oss-20b", "google/gemma-4-26B-A4B-it",
         "meta-llama/Llama-4-Scout-17B-16E-Instruct", "Qwen/Qwen3.5-27B",
         "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "ibm-granite/granite-4.0-h-small",
         "moonshotai/Kimi-Linear-48B-A3B-Instruct", "google/gemma-3n-E4B-it",
         "LiquidAI/LFM2-1.2B")  # fmt: skip
LENGTH = 65536

releases = st.sampled_from(RELEASES)
models = st.sampled_from(PLAIN + MIXED)
ranks = st.sampled_from((1, 2, 4, 8))
lengths = st.integers(1, LENGTH)


@cache
def pages(
    model: str, release: str, tensor: int = 1, stages: int = 1, part: str = H100,
    *, cached: bool = False,
) -> KvLayout:  # fmt: skip
    return layout_of(
        model, release, part, tensor_parallel_size=tensor, pipeline_parallel_size=stages,
        max_model_len=LENGTH, max_num_batched_tokens=4096, enable_prefix_caching=cached,
    )  # fmt: skip


@settings(deadline=None)
@given(models, releases, ranks, st.sampled_from((1, 2)), st.sampled_from((H100, B200)),
       st.booleans(), lengths, lengths)  # fmt: skip
def test_longer_requests_never_take_less(
    model: str, release: str, tensor: int, stages: int, part: str, cached: bool, one: int, two: int
) -> None:
    layout = pages(model, release, tensor, stages, part, cached=cached)
    short, long = sorted((one, two))
    assert 0 < layout.request_blocks(short) <= layout.request_blocks(long)
    assert 0 < layout.start_bytes(short) <= layout.start_bytes(long)


@settings(deadline=None)
@given(models, releases, ranks, st.floats(0, 200 * GIB), st.floats(0, 200 * GIB))
def test_more_memory_never_holds_less(
    model: str, release: str, tensor: int, one: float, two: float
) -> None:
    layout = pages(model, release, tensor)
    small, large = sorted((one, two))
    assert 0 <= layout.blocks(small) <= layout.blocks(large)
    logged = [layout.logged_tokens(layout.blocks(size)) for size in (small, large)]
    assert 0 <= logged[0] <= logged[1]


@settings(deadline=None)
@given(models, releases, st.sampled_from((1, 2, 4)))
def test_more_devices_never_take_more_for_a_token(model: str, release: str, tensor: int) -> None:
    one, two = pages(model, release, tensor), pages(model, release, 2 * tensor)
    # A block that holds a state is a multiple of 16 tokens: padding may grow by less than that.
    slack = 16 * one.bytes_per_token / one.block_tokens
    assert two.bytes_per_token <= one.bytes_per_token + slack


@settings(deadline=None)
@given(st.sampled_from(PLAIN), releases, ranks, lengths)
def test_a_request_takes_its_tokens_and_less_than_a_block_more(
    model: str, release: str, tensor: int, length: int
) -> None:
    layout = pages(model, release, tensor)
    taken = layout.request_bytes(length)
    assert length * layout.bytes_per_token <= taken
    assert taken < (length + layout.block_tokens) * layout.bytes_per_token


@settings(deadline=None)
@given(st.sampled_from(MIXED), releases, ranks)
def test_growing_layers_take_what_is_left_of_long_requests(
    model: str, release: str, tensor: int
) -> None:
    """Far beyond every window, another block's tokens take another block of each growing group."""
    layout = pages(model, release, tensor)
    block = layout.block_tokens
    more = layout.request_bytes(200 * block + LENGTH) - layout.request_bytes(100 * block + LENGTH)
    assert abs(more - 100 * block * layout.bytes_per_token) <= layout.block_bytes


@settings(deadline=None)
@given(st.sampled_from(PLAIN), releases, st.sampled_from((2, 4)))
def test_stages_share_the_layers(model: str, release: str, stages: int) -> None:
    """The stage that leaves the fewest blocks may be one with a layer less than others."""
    whole, stage = pages(model, release, 1), pages(model, release, 1, stages)
    share = stage.bytes_per_token / whole.bytes_per_token
    assert 0.9 / stages < share < 1.1 / stages
