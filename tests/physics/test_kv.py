"""KV-cache bytes and groups. Worked examples of the sizing guide, and bounds."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.architecture import Cache
from capcheck.physics import kv

LLAMA_8B = [Cache("full", heads=8, key=128, value=128)] * 32


def test_the_guides_eight_billion_example() -> None:
    """2 x 32 layers x 8 heads x 128 x 8,192 tokens x 2 bytes x 16 sequences."""
    assert kv.cache_bytes(LLAMA_8B, 8192, 16, 2.0) == 17_179_869_184
    assert kv.cache_bytes(LLAMA_8B, 8192, 16, 1.0) == 8_589_934_592


def test_windows_stop_growing() -> None:
    window = Cache("sliding", heads=8, key=128, value=128, window=1024)
    assert kv.cache_bytes([window], 8192, 1, 2.0) == kv.cache_bytes([window], 1024, 1, 2.0)


def test_shared_layers_take_nothing() -> None:
    assert kv.cache_bytes([None, *LLAMA_8B, None], 100, 1, 2.0) == kv.cache_bytes(
        LLAMA_8B, 100, 1, 2.0
    )


def test_a_latent_is_held_whole() -> None:
    latent = Cache("latent", heads=1, key=576)
    assert kv.attention_bytes_per_token(latent, 1, 2.0) == 1152
    assert kv.attention_bytes_per_token(latent, 8, 2.0) == 1152


@pytest.mark.parametrize(
    ("counts", "threshold", "size"),
    [
        ([12, 12], None, 12),
        ([10, 52], None, 10),
        ([10, 12], 1.25, 12),  # close: the largest
        ([10, 13], 1.25, 10),
        ([10, 14], 1.5, 14),
    ],
)
def test_group_size(counts: list[int], threshold: float | None, size: int) -> None:
    assert kv.group_size(counts, threshold) == size


def test_blocks_of_windows_and_chunks() -> None:
    assert kv.sliding_blocks(128, 8192, 131072, 16) == 521  # ceil((127 + 8192) / 16) + 1
    assert kv.sliding_blocks(4096, 8192, 1000, 16) == 64  # the whole request, and one
    assert kv.chunked_blocks(8192, 8192, 131072, 16) == 1024


@given(st.integers(1, 64), st.integers(1, 64), st.sampled_from([0.5, 1.0, 2.0]))
def test_more_devices_never_take_more(heads: int, tensor: int, width: float) -> None:
    cache = Cache("full", heads=heads, key=64, value=64)
    split = kv.attention_bytes_per_token(cache, tensor, width)
    assert 0 < split <= kv.attention_bytes_per_token(cache, 1, width)
    assert split >= 128 * width  # at least one head


def test_least_padding() -> None:
    assert kv.least_padding([43, 21, 20], 21) == 22  # 1 + 1 + 2 are added; 21 would add 20 + 0 + 1
    assert kv.least_padding([12, 12], 1) == 12  # the largest of those that add nothing
    assert kv.least_padding([3], 5) == 5


@given(st.lists(st.integers(1, 100), min_size=1, max_size=5), st.integers(1, 100))
def test_no_size_pads_less(counts: list[int], least: int) -> None:
    def padding(size: int) -> int:
        return sum(-count % size for count in counts)

    best = kv.least_padding(counts, least)
    assert best >= least
    assert all(padding(best) <= padding(size) for size in range(least, max(*counts, least) + 1))


def test_pages_are_padded_to_a_step() -> None:
    assert kv.padded(64 * 584, 576) == 37_440
    assert kv.padded(576, 576) == 576


# Mamba-2 of 128 heads of 64 with one group of 128: a column of 8192 + 2 x 128, kernel 4.
MAMBA = Cache("state", conv=8448 * 3, ssm=128 * 64 * 128, conv_kernel=4)


def test_a_state() -> None:
    assert kv.state_bytes(MAMBA, 1, 2.0, 4.0) == 8448 * 3 * 2 + 1048576 * 4
    assert kv.state_bytes(MAMBA, 1, 2.0, 4.0, more_tokens=2) == 8448 * 5 * 2 + 1048576 * 4


def test_a_group_is_copied_to_every_rank() -> None:
    each = kv.state_bytes(MAMBA, 8, 2.0, 2.0, shared=256, groups=1)
    assert each == ((8192 + 256 * 8) * 3 + 1048576) / 8 * 2
    assert kv.state_bytes(MAMBA, 1, 2.0, 2.0, shared=256, groups=1) == (8448 * 3 + 1048576) * 2


@given(st.sampled_from([1, 2, 4, 8, 16]), st.sampled_from([1, 2, 8]), st.integers(0, 4))
def test_more_ranks_never_hold_more_of_a_state(tensor: int, groups: int, more: int) -> None:
    def each(ranks: int) -> float:
        return kv.state_bytes(MAMBA, ranks, 2.0, 4.0, shared=256, groups=groups, more_tokens=more)

    assert 0 < each(2 * tensor) <= each(tensor)
