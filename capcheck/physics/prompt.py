"""Seconds of one prompt: alone, and as what it adds to steps that run anyway.

Products at their utilization, never faster than the read of the weights that a chunk touches;
causal attention over the pairs that it attends; bytes of the collectives; a fixed cost a chunk.
"""

from __future__ import annotations

import math

from capcheck.physics.step import (
    StepConstants,
    all_reduces_seconds,
    exchange_seconds,
    expert_imbalance,
    hand_over_seconds,
    overlap,
    touched_share,
)
from capcheck.physics.work import Work


def attended_pairs(tokens: float, cached_tokens: float, limit: float) -> float:
    """Query and key pairs of causal attention for new tokens after cached ones."""

    def until(position: float) -> float:
        if position <= limit:
            return position * position / 2.0
        return limit * limit / 2.0 + limit * (position - limit)

    return until(cached_tokens + tokens) - until(cached_tokens)


def prompt_attention_seconds(
    work: Work, tokens: float, constants: StepConstants, cached_tokens: float = 0.0
) -> float:
    """Seconds of attention over a prompt's new tokens, once causal pairs are counted."""
    flops = work.state_flops * tokens
    for part in work.attention:
        flops += part.prefill_flops * attended_pairs(tokens, cached_tokens, part.limit)
    return flops / (work.machine.attention_flops * constants.attention_utilization)


def prompt_products_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    """Seconds of a prompt's matrix products; only the last token meets the head."""
    dense = tokens * work.dense.peak_seconds + min(tokens, 1.0) * work.head.peak_seconds
    experts = tokens * work.experts.peak_seconds * expert_imbalance(work, constants)
    return dense / constants.dense_utilization + experts / constants.expert_utilization


def pipelined_share(chunks: float, stages: float) -> float:
    """Share of a prompt's time that a pipeline needs: (c + s - 1) / (c s).

    c chunks of it are in flight over s stages of equal length; the first has to pass them all.
    Huang et al., "GPipe: Efficient Training of Giant Neural Networks", 2019, the bubble.
    """
    chunks, stages = max(chunks, 1.0), max(stages, 1.0)
    return (chunks + stages - 1.0) / (chunks * stages)


def prompt_fixed_seconds(work: Work, constants: StepConstants) -> float:
    """Fixed cost of one prefill step."""
    return (
        constants.prompt_layer_seconds * work.layers
        + constants.prompt_moe_layer_seconds * work.moe_layers
    )


def _prompt_link_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    free = constants._replace(
        all_reduce_seconds=0.0, all_reduce_rank_seconds=0.0, exchange_seconds=0.0
    )
    return (
        all_reduces_seconds(work, tokens, free)
        + exchange_seconds(work, tokens, free)
        + hand_over_seconds(work, tokens, free)
    )


def prefill_seconds(
    work: Work,
    tokens: float,
    constants: StepConstants,
    chunk_tokens: float = math.inf,
    cached_tokens: float = 0.0,
) -> float:
    """Seconds of one prompt alone: `tokens` new ones after `cached_tokens`, in chunks.

    Each chunk takes at least the read of the weights that it touches.
    """
    if tokens <= 0:
        return 0.0
    steps = max(1, math.ceil(tokens / chunk_tokens)) if chunk_tokens > 0 else 1
    products = prompt_products_seconds(work, tokens, constants)
    reads = steps * _weights_seconds(work, tokens / steps, constants)
    return (
        overlap(products, reads, 2.0)
        + prompt_attention_seconds(work, tokens, constants, cached_tokens)
        + _prompt_link_seconds(work, tokens, constants)
        + steps * prompt_fixed_seconds(work, constants)
    )


def _weights_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    """Seconds to read the weights that a chunk of tokens touches."""
    touched = touched_share(
        tokens, work.expert_count, work.experts_per_token, constants.routing_skew
    )
    dense = (work.dense.bytes + work.head.bytes) / constants.weight_efficiency
    experts = work.experts.bytes * touched / constants.expert_efficiency
    return (dense + experts) / work.machine.bandwidth


def prefill_share_seconds(
    work: Work,
    tokens: float,
    constants: StepConstants,
    chunk_tokens: float,
    cached_tokens: float = 0.0,
) -> float:
    """Seconds that one more prompt adds to steps that run anyway.

    The weights are read for the decodes already, and prompts share prefill steps; the prompts
    of other data-parallel ranks come to the same experts.
    """
    if tokens <= 0:
        return 0.0
    dense = tokens * work.dense.peak_seconds / constants.dense_utilization
    experts = tokens * work.layout.data * work.experts.peak_seconds
    uneven = expert_imbalance(work, constants) / constants.expert_utilization
    return (
        dense
        + experts * uneven
        + prompt_attention_seconds(work, tokens, constants, cached_tokens)
        + _prompt_link_seconds(work, tokens, constants)
        + tokens / chunk_tokens * prompt_fixed_seconds(work, constants)
    )
