"""KV-cache pages: bytes per layer and token, groups of hybrid models. Pure; bytes, tokens."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capcheck.architecture import Cache

# Bytes of one cached element by dtype word.
KV_ELEMENT_BYTES = {
    "fp32": 4.0, "bf16": 2.0, "fp16": 2.0, "fp8_e4m3": 1.0, "fp8_e5m2": 1.0, "int8": 1.0,
    "q8_0": 34 / 32, "q5_1": 24 / 32, "q5_0": 22 / 32, "q4_1": 20 / 32, "q4_0": 18 / 32,
    "nvfp4": 0.5 + 1 / 16,
}  # fmt: skip


def attention_bytes_per_token(cache: Cache, tensor: int, element_bytes: float) -> float:
    """Bytes that one token takes in one attention layer on one rank.

    2 x heads x head size x element bytes, with KV heads replicated beyond their number; a latent
    (MLA) is one head that every rank holds whole.
    """
    if cache.kind == "latent":
        return cache.key * element_bytes
    heads = max(1, cache.heads // tensor) if cache.heads else 0
    return heads * (cache.key + cache.value) * element_bytes


def state_bytes(
    cache: Cache, tensor: int, conv_bytes: float, ssm_bytes: float, *,
    shared: int = 0, groups: int = 0, more_tokens: int = 0,
) -> float:  # fmt: skip
    """Bytes of the recurrent state of one request in one layer on one rank.

    `more_tokens`: columns of the convolution beyond its kernel, one for each drafted token.
    `shared`: elements of one column that `groups` of heads share; they are copied until every
    rank has a group of its own.
    """
    kept = max(cache.conv_kernel - 1, 1)
    column = cache.conv / kept
    if groups and groups % tensor:
        column += shared / groups * (tensor - groups)
    conv = column / tensor * (kept + more_tokens) if cache.conv else 0.0
    return conv * conv_bytes + cache.ssm / tensor * ssm_bytes


def cache_bytes(
    caches: Sequence[Cache | None], tokens: float, sequences: float, element_bytes: float
) -> float:
    """Bytes of the whole model's KV cache for `sequences` of `tokens`, without paging.

    2 x layers x KV heads x head size x tokens x bytes x sequences for plain attention.
    """
    total = 0.0
    for cache in caches:
        if cache is None:
            continue
        if cache.kind == "state":
            total += state_bytes(cache, 1, element_bytes, element_bytes) * sequences
            continue
        kept = min(tokens, cache.window) if cache.window else tokens
        total += attention_bytes_per_token(cache, 1, element_bytes) * kept * sequences
    return total


def group_size(counts: Sequence[int], threshold: float | None) -> int:
    """Layers per page group: the smallest kind's, or the largest's when they are close."""
    smallest, largest = min(counts), max(counts)
    if threshold is not None and largest < threshold * smallest:
        return largest
    return smallest


def least_padding(counts: Sequence[int], least: int) -> int:
    """The size, at least `least`, to whose multiples `counts` are rounded up with least padding.

    The larger of equally good ones.
    """
    sizes = range(max(1, least), max(*counts, least, 1) + 1)
    return min(sizes, key=lambda size: (sum(-count % size for count in counts), -size))


def padded(size: float, step: int) -> int:
    """`size` rounded up to a multiple of `step`."""
    return math.ceil(size / step) * step


def sliding_blocks(window: int, in_flight: int, tokens: int, block_tokens: int) -> int:
    """Blocks that a sliding-window layer needs to admit a request of `tokens`."""
    return math.ceil(min(window - 1 + in_flight, tokens) / block_tokens) + 1


def chunked_blocks(chunk: int, in_flight: int, tokens: int, block_tokens: int) -> int:
    """Blocks that a chunked-attention layer needs to admit a request of `tokens`."""
    return math.ceil(min(chunk + in_flight, tokens) / block_tokens)
