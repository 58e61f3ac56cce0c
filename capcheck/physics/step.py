"""Seconds of one decode step.

The model: weights and products overlap (a p-norm of both times), expert weights are read as far
as the step's tokens touch them, the KV cache is read once, and every layer, step, request,
all-reduce and exchange of experts has a fixed cost. Constants are arguments.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.physics.collectives import all_reduce_seconds, all_to_all_bytes, transfer_seconds
from capcheck.physics.work import Work

ACTIVATION_BYTES = 2.0  # hidden states travel in 16 bits


class StepConstants(NamedTuple):
    """Fitted constants of a step. Efficiencies and utilizations are shares of the peak."""

    overlap_norm: float  # p of the norm of memory and compute time: 1 adds, infinite takes the max
    expert_norm: float  # the same for grouped products, which hide less of their reads
    weight_efficiency: float  # of the bandwidth, reading dense weights
    expert_efficiency: float  # of the bandwidth, reading experts
    cache_efficiency: float  # of the bandwidth, reading the KV cache
    dense_utilization: float  # of the FLOP/s, dense products
    expert_utilization: float
    attention_utilization: float
    latent_utilization: float  # absorbed latent attention
    routing_skew: float  # exponent on the tokens that choose experts; 1: routing is uniform
    expert_imbalance: float  # extra products of the busiest of many expert ranks
    layer_seconds: float  # fixed cost of a layer in a step
    quantized_layer_factor: float  # more of it where activations are quantized for the products
    moe_layer_factor: float  # more of it for a layer with experts
    moe_choice_factor: float  # and for routing: times the root of experts x chosen ones
    latent_layer_factor: float
    recurrent_layer_factor: float
    step_seconds: float  # fixed cost of a step
    request_seconds: float  # of each request in a step
    generation_factor: float  # on the three fixed costs: the device and its host
    release_factor: float  # on layers and step: the engine's release
    all_reduce_seconds: float
    all_reduce_rank_seconds: float  # for each rank of the group
    link_efficiency: float
    exchange_seconds: float  # of a layer that sends tokens to experts elsewhere
    prompt_layer_seconds: float  # fixed cost of a layer in a prefill step
    prompt_moe_layer_seconds: float


class Activity(NamedTuple):
    """Reading a group's bytes and computing with it: both overlap to `seconds`."""

    memory: float  # reading alone
    compute: float  # products or attention alone
    seconds: float  # what the p-norm leaves


class StepParts(NamedTuple):
    """Where a step's seconds go: reading and computing overlap, group by group."""

    dense: Activity  # weights that every step reads
    experts: Activity
    cache: Activity  # KV cache and attention
    all_reduces: float
    exchanges: float  # of tokens with experts elsewhere
    hand_overs: float  # between pipeline stages
    fixed: float

    @property
    def overlapped(self) -> float:
        """Weights, products and KV cache."""
        return self.dense.seconds + self.experts.seconds + self.cache.seconds

    @property
    def memory(self) -> float:
        """Reading weights, experts and cache alone."""
        return self.dense.memory + self.experts.memory + self.cache.memory

    @property
    def compute(self) -> float:
        """Products and attention alone."""
        return self.dense.compute + self.experts.compute + self.cache.compute

    @property
    def interconnect(self) -> float:
        """All that devices send each other."""
        return self.all_reduces + self.exchanges + self.hand_overs

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
    routing = constants.moe_choice_factor * math.sqrt(work.expert_count * work.experts_per_token)
    layers = (
        work.layers * (1.0 + constants.quantized_layer_factor)
        + (constants.moe_layer_factor + routing) * work.moe_layers
        + constants.latent_layer_factor * work.latent_layers
        + constants.recurrent_layer_factor * work.recurrent_layers
    )
    once = (constants.layer_seconds * layers + constants.step_seconds) * constants.release_factor
    return constants.generation_factor * (once + constants.request_seconds * batch)


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
    expert_read = work.experts.bytes * touched / (bandwidth * constants.expert_efficiency)
    expert_products = uneven * routed * work.experts.peak_seconds / constants.expert_utilization
    cached = batch * work.cache_bytes(context_tokens)
    cache_read = cached / (bandwidth * constants.cache_efficiency)
    attention = tokens * _attention_seconds(work, context_tokens, constants)
    return StepParts(
        dense=_activity(dense_read, dense_products, norm),
        experts=_activity(expert_read, expert_products, constants.expert_norm),
        cache=_activity(cache_read, attention, norm),
        all_reduces=all_reduces_seconds(work, tokens, constants),
        exchanges=exchange_seconds(work, tokens, constants),
        hand_overs=hand_over_seconds(work, tokens, constants),
        fixed=fixed_seconds(work, batch, constants),
    )


def _activity(memory: float, compute: float, norm: float) -> Activity:
    return Activity(memory, compute, overlap(memory, compute, norm))


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
