"""Seconds of one decode step.

The model: weights and products overlap (a p-norm of both times), expert weights are read as far
as the step's tokens touch them, the KV cache is read once, and every layer, step, request,
all-reduce and exchange of experts has a fixed cost. Constants are arguments.
"""

from __future__ import annotations

from typing import NamedTuple

from capcheck.physics.collectives import all_reduce_seconds, all_to_all_bytes, transfer_seconds
from capcheck.physics.work import Work

ACTIVATION_BYTES = 2.0  # hidden states travel in 16 bits


class StepConstants(NamedTuple):
    """Fitted constants of a step. Efficiencies and utilizations are shares of the peak."""

    overlap_norm: float  # p of the norm of memory and compute time: 1 adds, infinite takes the max
    weight_efficiency: float  # of the bandwidth, reading dense weights
    expert_efficiency: float  # of the bandwidth, reading experts
    cache_efficiency: float  # of the bandwidth, reading the KV cache
    dense_utilization: float  # of the FLOP/s, dense products
    expert_utilization: float
    attention_utilization: float
    latent_utilization: float  # absorbed latent attention
    routing_skew: float  # exponent on the tokens that choose experts; 1: routing is uniform
    expert_imbalance: float  # extra load of the busiest of many expert ranks
    layer_seconds: float  # fixed cost of a layer in a step
    moe_layer_factor: float  # more of it for a layer with experts
    latent_layer_factor: float
    recurrent_layer_factor: float
    step_seconds: float  # fixed cost of a step
    request_seconds: float  # of each request in a step
    all_reduce_seconds: float
    all_reduce_rank_seconds: float  # for each rank of the group
    link_efficiency: float
    exchange_seconds: float  # of a layer that sends tokens to experts elsewhere
    prompt_layer_seconds: float  # fixed cost of a layer in a prefill step
    prompt_moe_layer_seconds: float


class StepParts(NamedTuple):
    """Where a step's seconds go: `memory` and `compute` overlap to `overlapped`."""

    overlapped: float  # weights, products, KV cache: what the p-norms leave
    memory: float  # reading weights, experts and cache alone
    compute: float  # products and attention alone
    interconnect: float
    fixed: float

    @property
    def seconds(self) -> float:
        """The whole step."""
        return self.overlapped + self.interconnect + self.fixed


def overlap(first: float, second: float, norm: float) -> float:
    """Time of two activities that overlap: their p-norm, between the longer and the sum."""
    longer, shorter = max(first, second), min(first, second)
    if longer <= 0:
        return 0.0
    return longer * float((1.0 + (shorter / longer) ** norm) ** (1.0 / norm))


def touched_share(tokens: float, experts: int, chosen: int, skew: float) -> float:
    """Share of a layer's experts that at least one token chooses: 1 - (1 - k/E)^(T^skew)."""
    if experts <= 0 or tokens <= 0:
        return 0.0
    if chosen >= experts:
        return 1.0
    effective = tokens**skew if tokens > 1 else tokens
    return 1.0 - float((1.0 - chosen / experts) ** effective)


def expert_imbalance(work: Work, constants: StepConstants) -> float:
    """Load of the busiest expert rank over the mean: grows with their number."""
    return 1.0 + constants.expert_imbalance * (1.0 - 1.0 / work.layout.expert)


def all_reduces_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    """The all-reduces of a pass over all layers: after attention and after the MLP."""
    one = all_reduce_seconds(
        tokens * work.hidden * ACTIVATION_BYTES,
        work.layout.tensor,
        start_seconds=constants.all_reduce_seconds,
        rank_seconds=constants.all_reduce_rank_seconds,
        bytes_per_second=work.machine.link_bandwidth,
        efficiency=constants.link_efficiency,
    )
    return 2.0 * work.layers * one


def hand_over_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    """Handing a micro-batch's hidden states from pipeline stage to stage, over all stages."""
    hops = work.layout.pipeline - 1
    if not hops:
        return 0.0
    moved = tokens * work.hidden * ACTIVATION_BYTES
    link = work.machine.link_bandwidth
    one = transfer_seconds(moved, link, constants.link_efficiency)
    return hops * (constants.all_reduce_seconds + one)


def exchange_seconds(work: Work, tokens: float, constants: StepConstants) -> float:
    """Sending a rank's tokens to experts elsewhere and back, over all MoE layers."""
    layout = work.layout
    if not work.moe_layers or (layout.expert <= 1 and layout.data <= 1):
        return 0.0
    groups = layout.expert_devices if layout.data > 1 else 1
    moved = all_to_all_bytes(tokens, work.hidden, work.experts_per_token, groups, ACTIVATION_BYTES)
    link = work.machine.link_bandwidth
    one = constants.exchange_seconds + transfer_seconds(moved, link, constants.link_efficiency)
    return work.moe_layers * one


def fixed_seconds(work: Work, batch: float, constants: StepConstants) -> float:
    """Launches, scheduling and sampling of a step, whatever the sizes."""
    layers = (
        work.layers
        + constants.moe_layer_factor * work.moe_layers
        + constants.latent_layer_factor * work.latent_layers
        + constants.recurrent_layer_factor * work.recurrent_layers
    )
    per_request = constants.request_seconds * batch
    return constants.layer_seconds * layers + constants.step_seconds + per_request


def decode_step(
    work: Work,
    batch: float,
    context_tokens: float,
    constants: StepConstants,
    tokens_per_request: float = 1.0,
) -> StepParts:
    """A step of `batch` requests on each data-parallel rank at a mean context, in parts.

    `tokens_per_request` above 1 verifies proposed tokens: more products, the same reads.
    """
    batch = max(batch, 0.0)
    tokens = batch * tokens_per_request
    routed = tokens * work.layout.data
    bandwidth, norm = work.machine.bandwidth, constants.overlap_norm
    dense_read = (work.dense.bytes + work.head.bytes) / (bandwidth * constants.weight_efficiency)
    dense_peak = tokens * (work.dense.peak_seconds + work.head.peak_seconds)
    dense_products = dense_peak / constants.dense_utilization
    uneven = expert_imbalance(work, constants)
    touched = touched_share(
        routed, work.expert_count, work.experts_per_token, constants.routing_skew
    )
    expert_read = uneven * work.experts.bytes * touched / (bandwidth * constants.expert_efficiency)
    expert_products = uneven * routed * work.experts.peak_seconds / constants.expert_utilization
    cached = batch * work.cache_bytes(context_tokens)
    cache_read = cached / (bandwidth * constants.cache_efficiency)
    attention = tokens * _attention_seconds(work, context_tokens, constants)
    overlapped = (
        overlap(dense_read, dense_products, norm)
        + overlap(expert_read, expert_products, norm)
        + overlap(cache_read, attention, norm)
    )
    return StepParts(
        overlapped=overlapped,
        memory=dense_read + expert_read + cache_read,
        compute=dense_products + expert_products + attention,
        interconnect=all_reduces_seconds(work, tokens, constants)
        + exchange_seconds(work, tokens, constants)
        + hand_over_seconds(work, tokens, constants),
        fixed=fixed_seconds(work, batch, constants),
    )


def _attention_seconds(work: Work, context_tokens: float, constants: StepConstants) -> float:
    """Seconds of attention and state updates for one query token."""
    flops = work.state_flops / constants.attention_utilization
    for part in work.attention:
        reached = constants.latent_utilization if part.latent else constants.attention_utilization
        flops += part.decode_flops * min(max(context_tokens, 0.0), part.limit) / reached
    return flops / work.machine.attention_flops


def decode_step_seconds(
    work: Work,
    batch: float,
    context_tokens: float,
    constants: StepConstants,
    tokens_per_request: float = 1.0,
) -> float:
    """Seconds of a decode step; see `decode_step`."""
    return decode_step(work, batch, context_tokens, constants, tokens_per_request).seconds
