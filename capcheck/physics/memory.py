"""Device memory of weights: shards, pipeline stages, allocator rounding. Pure; bytes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from capcheck.architecture import Architecture, Layer, Part, Rope, Tensor
from capcheck.quantity import MIB

VOCABULARY_PADDING = 64  # rows; vLLM and SGLang pad the vocabulary to it


TOWERS = ("vision", "audio", "projector")


class Split(NamedTuple):
    """How a model is spread. The last ones: devices that share what differs from `tensor`."""

    tensor: int = 1
    pipeline: int = 1
    expert: int = 1  # devices that deal out whole experts; 1: their matrices are split instead
    experts_over: int = 0  # devices that split the experts' matrices; 0: as `tensor`
    shared_over: int = 0  # that split shared experts; 0: as `tensor`, 1: each holds them whole
    towers_over: int = 0  # that split encoders; 0: as `tensor`, 1: each holds them whole
    audio_over: int = 0  # that split encoders of sound; 0: as other encoders
    spare_experts: int = 0  # copies of busy experts, beside one of each


def ways(tensor: Tensor, split: Split) -> int:
    """How many devices share a matrix that is not replicated."""
    if tensor.role == "expert":
        return 1 if split.expert > 1 else split.experts_over or split.tensor
    if tensor.role == "shared_expert":
        return split.shared_over or split.tensor
    if tensor.role == "audio" and split.audio_over:
        return split.audio_over
    if tensor.role in TOWERS:
        return split.towers_over or split.tensor
    return split.tensor


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
    return part.held * _part_once(part, tensor, ways(tensor, split))


def _part_once(part: Part, tensor: Tensor, over: int) -> int:
    if tensor.split == "column":
        if part.heads:
            size = part.out // part.heads
            return max(1, math.ceil(part.heads / over)) * size
        return math.ceil(part.out / over)
    if tensor.split == "vocabulary":
        padded = math.ceil(part.out / VOCABULARY_PADDING) * VOCABULARY_PADDING
        return math.ceil(padded / over)
    return part.out


def rank_into(tensor: Tensor, split: Split) -> int:
    """Input features on one rank."""
    if tensor.split == "row":
        return math.ceil(tensor.into / ways(tensor, split))
    return tensor.into


def rank_copies(tensor: Tensor, split: Split) -> int:
    """Experts of one layer on one rank."""
    if tensor.role == "expert" and split.expert > 1:
        return math.ceil((tensor.copies + split.spare_experts) / split.expert)
    return tensor.copies


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
    width = _width(tensor.dtype, dtype_bytes)
    return float(out) * max(rank_into(tensor, split), 1) * rank_copies(tensor, split) * width


def rope_sizes(ropes: Sequence[Rope], dtype_bytes: float) -> tuple[float, ...]:
    """Bytes of each rotary table, one for each distinct rope."""
    return tuple(
        rope.positions * rope.dimensions * rope.copies * _width(rope.dtype, dtype_bytes)
        for rope in dict.fromkeys(ropes)
    )


def rope_bytes(ropes: Sequence[Rope], dtype_bytes: float) -> float:
    """Bytes of all rotary tables."""
    return sum(map(allocated, rope_sizes(ropes, dtype_bytes)))


def _width(fixed: str, dtype_bytes: float) -> float:
    return 4.0 if fixed == "fp32" else dtype_bytes


def absorbed_bytes(layer: Layer, split: Split, dtype_bytes: float) -> float:
    """A 16-bit copy of one layer's latent up-projections, for absorbed MLA decoding."""
    mixer = layer.mixer
    if mixer.kind != "mla" or not mixer.latent:
        return 0.0
    heads = math.ceil(mixer.heads / split.tensor)
    return float(heads * (mixer.nope + mixer.value_size) * mixer.latent) * dtype_bytes


def outer_tensors(model: Architecture, stages: int, stage: int) -> list[Tensor]:
    """Embedding, head and final norm of one stage; encoders are on every one."""
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
    return [*chosen, *model.towers]
