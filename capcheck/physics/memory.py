"""Device memory of weights: shards, pipeline stages, allocator rounding. Pure; bytes."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from capcheck.architecture import Architecture, Layer, Part, Rope, Tensor
from capcheck.quantity import MIB

VOCABULARY_PADDING = 64  # rows; vLLM and SGLang pad the vocabulary to it


class Split(NamedTuple):
    """How a model is spread: tensor parallel, pipeline stages, expert parallel."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1


def allocated(size: float) -> float:
    """Bytes that a caching allocator takes for a tensor of `size` bytes.

    Blocks are multiples of 512 B; from 10 MiB on they come in 2 MiB steps, and a remainder of
    at most 1 MiB is not split off. Source: PyTorch's CUDA caching allocator constants.
    """
    if size <= 0:
        return 0.0
    rounded = math.ceil(size / 512) * 512.0
    if rounded >= 10 * MIB:
        stepped = math.ceil(rounded / (2 * MIB)) * 2 * MIB
        if stepped - rounded <= MIB:
            return stepped
    return rounded


def part_out(part: Part, tensor: Tensor, split: Split) -> int:
    """Output features of one part on one rank. KV heads replicate beyond their number."""
    if tensor.split == "column" and not _by_expert(tensor, split):
        if part.heads:
            size = part.out // part.heads
            return max(1, math.ceil(part.heads / split.tensor)) * size
        return math.ceil(part.out / split.tensor)
    if tensor.split == "vocabulary":
        padded = math.ceil(part.out / VOCABULARY_PADDING) * VOCABULARY_PADDING
        return math.ceil(padded / split.tensor)
    return part.out


def rank_into(tensor: Tensor, split: Split) -> int:
    """Input features on one rank."""
    if tensor.split == "row" and not _by_expert(tensor, split):
        return math.ceil(tensor.into / split.tensor)
    return tensor.into


def rank_copies(tensor: Tensor, split: Split) -> int:
    """Experts of one layer on one rank."""
    if _by_expert(tensor, split):
        return math.ceil(tensor.copies / split.expert)
    return tensor.copies


def _by_expert(tensor: Tensor, split: Split) -> bool:
    return tensor.role == "expert" and split.expert > 1


def stage_sizes(layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each pipeline stage, first to last.

    The remainder goes one each to stages counted from the second-last backwards: the last holds
    the head. Source: vLLM's partition, read in its sources.
    """
    base, rest = divmod(layers, stages)
    sizes = [base] * stages
    for step in range(rest):
        sizes[(stages - 2 - step) % stages] += 1
    return tuple(sizes)


def stage_layers(
    layers: Sequence[Layer], stages: int, stage: int, sizes: Sequence[int] | None = None
) -> Sequence[Layer]:
    """The layers that one stage holds; `sizes` overrides the default partition."""
    sizes = sizes or stage_sizes(len(layers), stages)
    first = sum(sizes[:stage])
    return layers[first : first + sizes[stage]]


def dense_bytes(tensor: Tensor, split: Split, dtype_bytes: float) -> float:
    """Bytes of an unquantized tensor on one rank, before allocator rounding."""
    out = sum(part_out(part, tensor, split) for part in tensor.parts)
    width = 4.0 if tensor.dtype == "fp32" else dtype_bytes
    return float(out) * max(rank_into(tensor, split), 1) * rank_copies(tensor, split) * width


def rope_bytes(ropes: Sequence[Rope], dtype_bytes: float) -> float:
    """Bytes of the rotary tables, one for each distinct rope."""
    return sum(
        allocated(rope.positions * rope.dimensions * rope.copies * dtype_bytes)
        for rope in set(ropes)
    )


def absorbed_mla_bytes(layers: Sequence[Layer], split: Split, dtype_bytes: float) -> float:
    """Copies of the latent up-projections that engines keep for absorbed MLA decoding."""
    total = 0.0
    for layer in layers:
        mixer = layer.mixer
        if mixer.kind == "mla" and mixer.latent:
            heads = math.ceil(mixer.heads / split.tensor)
            for width in (mixer.nope, mixer.value_size):
                total += allocated(heads * width * mixer.latent * dtype_bytes)
    return total


TensorBytes = Callable[[Tensor, int | None], float]


def layers_bytes(
    layers: Sequence[Layer], first: int, tensor_bytes: TensorBytes, *, alike: bool
) -> float:
    """Bytes of consecutive layers. `alike`: identical layer objects cost the same everywhere."""
    known: dict[int, float] = {}
    total = 0.0
    for index, layer in enumerate(layers, first):
        key = id(layer)
        if not alike or key not in known:
            known[key] = sum(tensor_bytes(tensor, index) for tensor in layer.tensors)
        total += known[key]
    return total


def outer_tensors(model: Architecture, stages: int, stage: int) -> list[Tensor]:
    """Embedding, head and final norm of one stage; towers stay with the first."""
    chosen = []
    for tensor in model.outer:
        first_only = tensor.role == "embedding"
        if stages == 1:
            chosen.append(tensor)
        elif first_only:
            # A tied head makes the last stage keep the embedding too.
            if stage == 0 or (stage == stages - 1 and model.tied):
                chosen.append(tensor)
        elif stage == stages - 1:
            chosen.append(tensor)
    if stage == 0:
        chosen.extend(model.towers)
    return chosen
