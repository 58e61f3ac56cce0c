"""The planner's five figures as estimates that everybody can read."""

from __future__ import annotations

from capcheck import Case, Estimate, Terms, estimate
from capcheck_generic.accounting import memory


@estimate("generic_weights_bytes", unit="B", basis="parameters x bytes per parameter")
def weights(case: Case, t: Terms) -> float:
    """Bytes of the weights."""
    del t
    return memory(case).weights


@estimate("generic_kv_bytes", unit="B", basis="every sequence at full length")
def kv(case: Case, t: Terms) -> float:
    """Bytes of the KV cache."""
    del t
    return memory(case).kv


@estimate("generic_activation_bytes", unit="B", basis="a share of the weights")
def activation(case: Case, t: Terms) -> float:
    """Bytes of activations."""
    del t
    return memory(case).activations


@estimate("generic_total_bytes", unit="B", basis="the sum with its safety margin")
def total(case: Case, t: Terms) -> float:
    """Bytes with the safety margin."""
    del t
    return memory(case).total


@estimate("generic_recommended_bytes", unit="B", basis="the total in whole devices")
def recommended(case: Case, t: Terms) -> float:
    """Bytes of the whole devices it takes."""
    del t
    return memory(case).recommended


ALL: tuple[Estimate, ...] = (weights, kv, activation, total, recommended)
