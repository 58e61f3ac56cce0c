"""Percentiles of latencies, as factors over the median.

A tail has two independent sources: how lengths differ, and how the server is loaded. Factors of
independent sources combine in the logarithm, as the spreads of lognormals do.
"""

from __future__ import annotations

import math


def combined(*factors: float) -> float:
    """The factor of independent sources of spread: the root of the squares of their logarithms.

    Factors at or below 1 add nothing.
    """
    return math.exp(math.sqrt(sum(math.log(factor) ** 2 for factor in factors if factor > 1.0)))


def loaded(utilization: float, light: float, heavy: float, knee: float) -> float:
    """The factor at a load: `light` up to the `knee`, then log-linear to `heavy` at capacity.

    `utilization` is the offered rate over the capacity; beyond 1 the factor stays at `heavy`.
    """
    if light <= 0 or heavy <= 0:
        raise ValueError("factors are positive")
    if utilization <= knee:
        return light
    if utilization >= 1.0 or knee >= 1.0:
        return heavy
    return light * float((heavy / light) ** ((utilization - knee) / (1.0 - knee)))
