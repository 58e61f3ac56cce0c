"""Where llama.cpp puts the layers of a model: on which device, or on the host."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from itertools import accumulate

from capcheck import Model, Value

COUNTS_OUTPUT_FIRST = 7000  # from this build on the output layer is the first to be offloaded
HOST = None


def shares(devices: int, given: Sequence[float] | None) -> tuple[float, ...]:
    """Where each device's part of the layers ends, of 1. Without any given all get the same."""
    parts = [*(given or ()), *[0.0] * devices][:devices]
    if not any(parts):
        parts = [1.0] * devices
    whole = sum(parts)
    return tuple(end / whole for end in accumulate(parts))


def owners(
    layers: int, offloaded: int, ends: Sequence[float], *, build: int
) -> tuple[int | None, ...]:
    """The device of each layer and, last, of the output; None is the host.

    The last `offloaded` layers go to the devices, in order and by their shares. The output counts
    as a layer: in newer builds as the first that is offloaded, in older ones as the last.
    """
    if not ends:
        return (HOST,) * (layers + 1)
    first = max(layers + (1 if build >= COUNTS_OUTPUT_FIRST else 0) - offloaded, 0)
    many = min(offloaded, layers + 1)
    found: list[int | None] = []
    for index in range(layers + 1):
        if index < first or index - first >= many:
            found.append(HOST)
        else:
            found.append(min(bisect_right(ends, (index - first) / many), len(ends) - 1))
    return tuple(found)


def on_host(gpu_layers: Value[int], host_experts: Value[int], model: Model | None) -> Value[bool]:
    """Whether layers or experts are told to stay on the host."""
    if host_experts.either(1) > 0:
        return host_experts.map(lambda many: many > 0)
    layers = len(model.architecture.layers) if model is not None else 0
    return gpu_layers.map(lambda many: many < layers)
