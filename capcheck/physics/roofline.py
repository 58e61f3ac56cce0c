"""The textbook formulas: decode by bandwidth, prefill by FLOP/s, memory by addition.

Bytes, seconds, FLOP/s, bytes/s. These are floors and first estimates; `step` has the model that
is held against measurements.
"""

from __future__ import annotations

import math
from typing import NamedTuple


class Margins(NamedTuple):
    """The policy of the generic memory estimate."""

    activation_share: float  # of the weights
    safety: float  # factor on the sum
    device_bytes: float  # whole devices are recommended


class GenericMemory(NamedTuple):
    """Memory of a deployment whose engine is not named. Bytes."""

    weights: float
    kv: float
    activations: float
    total: float  # with the safety margin
    recommended: float  # total in whole devices


def decode_tokens_per_second(bandwidth: float, bytes_read: float) -> float:
    """One request's decode rate: every token reads all weights once.

    `bandwidth` in bytes/s, `bytes_read` per token in bytes. Raises ValueError unless both are
    positive.
    """
    if bandwidth <= 0 or bytes_read <= 0:
        raise ValueError("bandwidth and bytes must be positive")
    return bandwidth / bytes_read


def prompt_seconds(
    active_parameters: float, tokens: float, flops: float, utilization: float
) -> float:
    """Seconds of one prompt: two FLOP for each active parameter and token.

    `flops` is the peak in FLOP/s, `utilization` the share of it that is reached (0.5 to 0.7 in
    sizing guides). A mixture of experts counts its active parameters only. Raises ValueError
    unless the FLOP/s that remain are positive.
    """
    effective = flops * utilization
    if effective <= 0:
        raise ValueError("FLOP/s and utilization must be positive")
    return 2.0 * active_parameters * tokens / effective


def kv_bytes(
    layers: float,
    kv_heads: float,
    head_size: float,
    tokens: float,
    value_bytes: float,
    sequences: float,
) -> float:
    """Bytes of a uniform KV cache: keys and values of every layer, head, token and sequence."""
    return 2.0 * layers * kv_heads * head_size * tokens * value_bytes * sequences


def generic_memory(weights: float, kv: float, margins: Margins) -> GenericMemory:
    """(weights + KV + a share of the weights for activations) x safety, in whole devices.

    Bytes in, bytes out. Raises ValueError when the device size is not positive.
    """
    if margins.device_bytes <= 0:
        raise ValueError("the device size must be positive")
    activations = margins.activation_share * weights
    total = (weights + kv + activations) * margins.safety
    devices = math.ceil(total / margins.device_bytes)
    return GenericMemory(weights, kv, activations, total, devices * margins.device_bytes)


def bandwidth_floor(bytes_read: float, token_seconds: float) -> float:
    """Bytes/s without which a token cannot take as little as `token_seconds`."""
    if token_seconds <= 0:
        raise ValueError("the time per token must be positive")
    return bytes_read / token_seconds


def flops_floor(
    active_parameters: float, tokens: float, seconds: float, utilization: float
) -> float:
    """Peak FLOP/s without which a prompt cannot take as little as `seconds`."""
    if seconds <= 0 or utilization <= 0:
        raise ValueError("seconds and utilization must be positive")
    return 2.0 * active_parameters * tokens / (seconds * utilization)


def ridge_batch(flops: float, bandwidth: float, bytes_per_parameter: float) -> float:
    """Requests in a decode step above which compute takes longer than reading the weights.

    Two FLOP for each parameter and request against `bytes_per_parameter` read once a step.
    """
    if flops <= 0 or bandwidth <= 0:
        raise ValueError("FLOP/s and bandwidth must be positive")
    return flops * bytes_per_parameter / (2.0 * bandwidth)
