"""Defaults of TensorRT-LLM by release, as read in its sources."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capcheck import Architecture

Version = tuple[int, ...]

BATCH, STEP_TOKENS = 2048, 8192
FRACTION = 0.9  # of what is free after weights and a profiling step
LARGEST_GRAPH = 128


def block_tokens(version: Version) -> int:
    """Tokens of one KV block: 32 from 0.19 on, 64 before."""
    return 32 if version >= (0, 19, 0) else 64


def positions(model: Architecture) -> int | None:
    """The longest request without max_seq_len: yarn's factor is not applied."""
    return model.most_positions_without_yarn or model.max_positions


def stage_sizes(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage: the first ones take what does not divide."""
    base, rest = divmod(layers, stages)
    return tuple(base + (1 if stage < rest else 0) for stage in range(stages))


def graph_sizes(
    largest: int, *, padding: bool = False, listed: Sequence[int] = ()
) -> tuple[int, ...]:
    """Batch sizes that CUDA graphs are captured for when no list is given.

    1 to 32 one by one, then powers of two; with padding multiples of eight up to 128.
    """
    if listed:
        return tuple(sorted(listed))
    small = [1, 2, 4, *range(8, 129, 8)] if padding else [*range(1, 33), 64, 128]
    large = [2**power for power in range(8, math.ceil(math.log2(max(largest, 1))))]
    sizes = {size for size in (*small, *large) if size <= largest} | {largest}
    return tuple(sorted(sizes))
