"""What vLLM asks of the KV cache for one request before it starts: not always what that takes."""

from __future__ import annotations

import math
from typing import Any

import pytest
from pages_kit import layout_of

from capcheck.quantity import GIB

GEMMA = "google/gemma-3-27b-it"  # 10 full layers and 52 of a window, one of which comes first
LLAMA = "meta-llama/Llama-3.1-8B-Instruct"


def test_v0_divides_blocks_by_the_stages() -> None:
    """Refused on two stages: 7,299 blocks of 16 held 58,384 tokens for it."""
    one = layout_of("meta-llama/Meta-Llama-3-70B-Instruct", "0.6.3", pipeline_parallel_size=2,
                    max_model_len=8192)  # fmt: skip
    assert one.start_bytes(8192) == 2 * one.request_bytes(8192)
    assert one.start_bytes(58_384) <= (7299 + 1) * one.block_bytes < one.start_bytes(58_416)
    assert one.logged_tokens(7299) == 7299 * 16


def test_padding_is_not_asked_for_before_0_14() -> None:
    layout = layout_of(GEMMA, "0.11.0", max_model_len=131072, max_num_batched_tokens=8192)
    window = math.ceil((1023 + 8192) / 16) + 1
    a_page = 16 * 2 * 16 * 128 * 2
    assert layout.start_bytes(131072) == (10 * 8192 + 52 * window) * a_page
    assert layout.request_bytes(131072) == (10 * 8192 + 60 * window) * a_page


@pytest.mark.parametrize(("release", "blocks"), [
    ("0.14.1", 577), ("0.18.1", 577), ("0.19.0", 8192 + 6 * 577),
])  # fmt: skip
def test_only_the_first_group_counts_before_0_19(release: str, blocks: int) -> None:
    """Gemma's first layer has a window."""
    layout = layout_of(GEMMA, release, max_model_len=131072, max_num_batched_tokens=8192)
    assert layout.start_bytes(131072) == blocks * layout.block_bytes


def test_the_whole_model_counts_against_a_stage_before_0_17() -> None:
    args: dict[str, Any] = {"pipeline_parallel_size": 2, "max_model_len": 8192}
    early, late = (layout_of(LLAMA, release, **args) for release in ("0.16.0", "0.17.0"))
    assert early.block_bytes == late.block_bytes
    assert early.start_bytes(8192) == 2 * late.start_bytes(8192) == GIB


@pytest.mark.parametrize(("release", "kept"), [("0.28.0", 0), ("0.29.0", 1)])
def test_the_pool_keeps_a_block_back(release: str, kept: int) -> None:
    layout = layout_of(LLAMA, release, max_model_len=8192)
    assert layout.start_bytes(8192) == (512 + kept) * layout.block_bytes
