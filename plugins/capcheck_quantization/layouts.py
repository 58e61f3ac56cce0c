"""Which modules a scheme packs, and the device allocations that a packed tensor takes.

Sizes are of what an engine keeps after loading, for one rank: read in vLLM's sources (0.11.2 to
0.32.0) and held against the weights that it logs. `kernel` is a word of `kernels.kernel_of`; the
empty one stands for the hardware's own arithmetic, without padding.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from capcheck.physics.packing import (
    block_scales,
    group_scales,
    groups,
    pack_factor,
    packed_bytes,
    padded,
    swizzled_scales,
)
from capcheck.quantization import Scheme

from . import gguf
from .kernels import padding
from .patterns import matcher
from .reading import PACKED_ROLES

FLOAT32, INT32 = 4.0, 4.0

_WHOLE_FILE = frozenset(("gguf", "exl2"))  # embedding and head are packed too
_TOWERS = frozenset(("vision", "audio", "projector"))
_PACKS_TOWERS = frozenset(("fp8", "compressed-tensors", "bitsandbytes", "torchao", "quark"))
_KEEPS_EMPTY_ZEROS = frozenset(("gptq", "auto-round"))


def of_module(
    scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
) -> Scheme | None:
    """The scheme that packs this module, which is a part of a mixed one; None: unquantized.

    `module` is the checkpoint's name inside the layer, whole where `layer` is None. `draft` marks
    a layer of multi-token prediction, which checkpoints name in several ways.
    """
    if scheme.excluded and matcher(scheme.excluded).matches(layer, module, draft=draft):
        return None
    for part in scheme.parts:
        if of_module(part, layer, module, role, draft=draft) is not None:
            return part
    if scheme.parts:
        return None
    if scheme.targets:
        return scheme if matcher(scheme.targets).matches(layer, module, draft=draft) else None
    if scheme.experts_only:
        return scheme if role == "expert" else None
    if scheme.roles:
        return scheme if role in scheme.roles and (not draft or "draft" in scheme.roles) else None
    return scheme if _packs_by_itself(scheme, role) else None


def _packs_by_itself(scheme: Scheme, role: str) -> bool:
    """Whether a method packs modules of this role unless it is told otherwise."""
    if role in PACKED_ROLES:
        return True
    if scheme.method in _WHOLE_FILE:
        return role in ("embedding", "head")
    # A tower is packed only where a list of exclusions is known, and does not name it.
    return role in _TOWERS and scheme.method in _PACKS_TOWERS and "excluded" not in scheme.guessed


def excluded(
    scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
) -> bool:
    """Whether the scheme leaves this module unquantized."""
    return of_module(scheme, layer, module, role, draft=draft) is None


def by_layer(scheme: Scheme) -> bool:
    """Whether layers of one shape may be packed differently."""
    named = (scheme.excluded, scheme.targets)
    return any(matcher(patterns).by_layer for patterns in named if patterns) or any(
        by_layer(part) for part in scheme.parts if part is not scheme
    )


def refused(scheme: Scheme) -> tuple[str, ...]:
    """Patterns that are not matched because they are malformed, too long or too costly."""
    found = [*matcher(scheme.excluded).refused, *matcher(scheme.targets).refused]
    for part in scheme.parts:
        found.extend(refused(part))
    return tuple(dict.fromkeys(found))


class _Shard(NamedTuple):
    """A fused matrix on one rank: padded sizes, and bytes of one element of the model's dtype."""

    out: int
    into: int
    copies: int
    parts: int
    dtype_bytes: float
    kernel: str
    whole_into: int

    @property
    def marlin(self) -> bool:
        return self.kernel == "marlin"

    @property
    def elements(self) -> float:
        return float(self.out) * self.into * self.copies


def allocations(
    parts: Sequence[int],
    into: int,
    copies: int,
    scheme: Scheme,
    dtype_bytes: float,
    *,
    kernel: str = "",
    split: str = "column",
    whole_into: int = 0,
) -> tuple[float, ...]:
    """Bytes of each device allocation of one packed tensor on one rank.

    `parts` are the output features of the fused parts and `into` the input features, both of this
    rank; `copies` is the number of experts. `split` tells which side an expert's intermediate
    size is on: kernels pad the two sides to different multiples; `whole_into` are the input
    features of all ranks together. A mixed scheme has no layout of its own: ask `of_module`
    first. Raises ValueError for one.
    """
    if scheme.mixed:
        raise ValueError("a mixed scheme packs each module differently: ask of_module")
    if gguf.is_exact(scheme):
        return (gguf.stored_bytes(scheme.weight, sum(parts), into, copies),)
    wide, deep = padding(scheme.weight, kernel, expert=copies > 1)
    if split == "row":
        wide, deep = deep, wide
    shard = _Shard(
        out=sum(padded(part, wide) for part in parts),
        into=padded(into, deep),
        copies=copies,
        parts=len(parts),
        dtype_bytes=dtype_bytes,
        kernel=kernel,
        whole_into=max(whole_into, into),
    )
    sizes = _LAYOUTS.get(scheme.weight, _integers)(scheme, shard)
    if scheme.share >= 1.0:
        return tuple(sizes)
    dense = shard.elements * dtype_bytes * (1.0 - scheme.share)
    return (*(size * scheme.share for size in sizes), dense)


def _integers(scheme: Scheme, shard: _Shard) -> list[float]:
    """int8 and int4 with scales per group or channel; types of a whole file have none beside."""
    packed = packed_bytes(shard.elements, scheme.bits)
    if scheme.method in _WHOLE_FILE:
        return [packed]
    # Reordered activations may belong to any group: every rank keeps the scales of all.
    scaled_into = shard.whole_into if scheme.activation_order else shard.into
    scales = group_scales(shard.out, scaled_into, scheme.group) * shard.copies
    # Integer arithmetic scales its sums in fp32, weight-only kernels in the model's dtype.
    wide = FLOAT32 if scheme.activation or scheme.method == "bitsandbytes" else shard.dtype_bytes
    sizes = [packed, scales * wide]
    if scheme.zero_points:
        exact = scheme.method in ("hqq", "torchao")
        sizes.append(scales * (shard.dtype_bytes if exact else scheme.bits / 8))
    elif scheme.method in _KEEPS_EMPTY_ZEROS and shard.kernel == "exllama":
        sizes.append(scales * scheme.bits / 8)
    elif shard.copies > 1 and scheme.method in _KEEPS_EMPTY_ZEROS:
        # The loader of stacked experts keeps room for zero points, in the model's dtype.
        sizes.append(scales / pack_factor(scheme.bits) * shard.dtype_bytes)
    if scheme.activation_order:
        sizes.extend([shard.into * shard.copies * INT32] * 2)
    return sizes


def _fp8(scheme: Scheme, shard: _Shard) -> list[float]:
    if scheme.block is not None:
        if shard.marlin:
            # A weight-only kernel wants the scales of each block for every output channel.
            scales = shard.out * groups(shard.into, scheme.block[1]) * shard.dtype_bytes
        else:
            scales = block_scales(shard.out, shard.into, scheme.block) * FLOAT32
    elif shard.marlin:
        scales = shard.out * shard.dtype_bytes
    else:
        scales = group_scales(shard.out, shard.into, scheme.group) * FLOAT32
    sizes = [shard.elements, scales * shard.copies]
    if scheme.activation_static and not shard.marlin:
        sizes.append(FLOAT32 * shard.copies)
    return sizes


def _nvfp4(scheme: Scheme, shard: _Shard) -> list[float]:
    """Two weights a byte, an fp8 scale for 16 of them, and scales of the whole tensor."""
    count = swizzled_scales if not shard.marlin else group_scales
    scales = float(count(shard.out, shard.into, scheme.group or 16)) * shard.copies
    tensor_scales = FLOAT32 * shard.parts * shard.copies
    return [packed_bytes(shard.elements, 4), scales, tensor_scales, tensor_scales]


def _microscaled(scheme: Scheme, shard: _Shard) -> list[float]:
    """mxfp4 and mxfp8: one exponent byte for 32 weights."""
    scales = float(group_scales(shard.out, shard.into, scheme.group or 32)) * shard.copies
    return [packed_bytes(shard.elements, scheme.bits), scales]


def _blocks_of_elements(scheme: Scheme, shard: _Shard) -> list[float]:
    """bitsandbytes: blocks run over the flat matrix. Packed scales are unpacked when loaded."""
    scales = groups(int(shard.elements), scheme.group or 64) * FLOAT32
    return [packed_bytes(shard.elements, 4), scales]


_LAYOUTS: Mapping[str, Callable[[Scheme, _Shard], list[float]]] = {
    "fp8_e4m3": _fp8,
    "fp8_e5m2": _fp8,
    "nvfp4": _nvfp4,
    "mxfp4": _microscaled,
    "mxfp8": _microscaled,
    "nf4": _blocks_of_elements,
    "fp4": _blocks_of_elements,
}
