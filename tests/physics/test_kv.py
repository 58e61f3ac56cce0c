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
