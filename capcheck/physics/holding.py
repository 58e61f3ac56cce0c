"""Weights as an engine holds them: every tensor's shard under one split, dtype and packing. Bytes.

What engines share: fused tensors are sharded, packed by their method's layout and rounded by the
allocator. Which kernel multiplies them, and so how they are padded, is the engine's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Literal

from capcheck.architecture import Architecture, Layer, Part, Tensor
from capcheck.packing import Packed, PackingSource
from capcheck.physics import allocator, memory
from capcheck.physics.memory import TOWERS, Split
from capcheck.quantization import Scheme

__all__ = ["DTYPE_BYTES", "TOWERS", "Weighing"]

DTYPE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
_LATENT = ".kv_b_proj"


class Weighing:
    """Bytes of a model's tensors on one rank.

    `kernel` gives the word of the kernel for a scheme; `allocate` what one tensor of so many
    bytes really takes. `absorbed` tells when latent up-projections are kept a second time for
    absorbed decoding: always, or only where they are packed (else they are seen in place);
    `measured` whether blocks in use are counted or all that the device gave away.
    """

    def __init__(
        self,
        packing: PackingSource,
        scheme: Scheme | None,
        split: Split,
        dtype: str,
        kernel: Callable[[Scheme], str],
        *,
        draft: bool = False,
        allocate: Callable[[float], float] = memory.allocated,
        absorbed: Literal["always", "packed"] = "always",
        measured: Literal["allocated", "reserved"] = "allocated",
    ) -> None:
        self.packing = packing
        self.scheme = scheme
        self.split = split
        self.dtype_bytes = DTYPE_BYTES.get(dtype, 2.0)
        self.draft = draft
        self.alike = scheme is None or not packing.by_layer(scheme)
        self._kernel = kernel
        self._kernels: dict[Scheme, str] = {}
        self._allocate = allocate
        self._absorbed = absorbed
        self._measured = measured

    def _kernel_of(self, scheme: Scheme) -> str:
        if scheme not in self._kernels:
            self._kernels[scheme] = self._kernel(scheme)
        return self._kernels[scheme]

    def tensor(self, tensor: Tensor, layer: int | None) -> float:
        """Bytes of one fused tensor on one rank, allocator rounding included."""
        return sum(self._allocate(size) for size in self.sizes(tensor, layer))

    def sizes(self, tensor: Tensor, layer: int | None) -> tuple[float, ...]:
        """Bytes of each allocation of one fused tensor on one rank, before rounding."""
        scheme = self.scheme
        if scheme is None or not tensor.linear:
            return self._dense(tensor)
        by_scheme: dict[Scheme | None, list[Part]] = {}
        for part in tensor.parts:
            own = self.packing.of_module(scheme, layer, part.name, tensor.role, draft=self.draft)
            by_scheme.setdefault(own, []).append(part)
        return tuple(
            size for own, parts in by_scheme.items() for size in self._packed(tensor, parts, own)
        )

    def _dense(self, tensor: Tensor) -> tuple[float, ...]:
        return (memory.dense_bytes(tensor, self.split, self.dtype_bytes),)

    def _packed(
        self, tensor: Tensor, parts: list[Part], scheme: Scheme | None
    ) -> tuple[float, ...]:
        if scheme is None:
            return self._dense(tensor._replace(parts=tuple(parts)))
        shard = Packed(
            tuple(memory.part_out(part, tensor, self.split) for part in parts),
            memory.rank_into(tensor, self.split),
            memory.rank_copies(tensor, self.split),
            self.dtype_bytes,
            self._kernel_of(scheme),
            tensor.split,
            tensor.into,
        )
        return self.packing.allocations(scheme, shard)

    def layers(self, layers: Sequence[Layer], first: int = 0) -> float:
        """Bytes of consecutive layers; `first` is the number of the first one."""
        return sum(self._allocate(size) for size in self._of_layers(layers, first))

    def _of_layers(self, layers: Sequence[Layer], first: int) -> list[float]:
        found: dict[int, tuple[float, ...]] = {}
        every: list[float] = []
        for index, layer in enumerate(layers, first):
            key = id(layer) if self.alike else index
            if key not in found:
                found[key] = (
                    *(size for one in layer.tensors for size in self.sizes(one, index)),
                    self._copied(layer, index),
                )
            every += found[key]
        return every

    def _copied(self, layer: Layer, index: int) -> float:
        """What absorbed decoding keeps beside the layer's own tensors."""
        size = memory.absorbed_bytes(layer, self.split, self.dtype_bytes)
        if not size or (self._absorbed == "packed" and not self._packs_latents(layer, index)):
            return 0.0
        return size

    def _packs_latents(self, layer: Layer, index: int) -> bool:
        if self.scheme is None:
            return False
        return any(
            self.packing.of_module(self.scheme, index, part.name, one.role, draft=self.draft)
            is not None
            for one in layer.tensors
            for part in one.parts
            if one.linear and part.name.endswith(_LATENT)
        )

    def outer(self, tensors: Sequence[Tensor]) -> float:
        """Bytes of tensors outside of the layers."""
        return sum(self.tensor(tensor, None) for tensor in tensors)

    def stage(
        self,
        model: Architecture,
        stage: int,
        sizes: Sequence[int],
        *,
        towers: bool = True,
        head: bool = True,
    ) -> float:
        """Bytes of one pipeline stage: layers, outer tensors, rotary tables.

        `towers` and `head`: whether encoders and the projection to the vocabulary are loaded.
        """
        split = self.split
        layers = memory.stage_layers(model.layers, split.pipeline, stage, sizes)
        dropped = (() if towers else TOWERS) + (() if head else ("head",))
        outer = [
            one
            for one in memory.outer_tensors(model, split.pipeline, stage)
            if one.role not in dropped
        ]
        early = (*TOWERS, "embedding")
        before = [one for one in outer if one.role in early]
        after = [one for one in outer if one.role not in early]
        return self._all(
            (
                *(size for one in before for size in self.sizes(one, None)),
                *memory.rope_sizes(model.ropes, self.dtype_bytes),
                *self._of_layers(layers, sum(sizes[:stage])),
                *(size for one in after for size in self.sizes(one, None)),
            )
        )

    def _all(self, sizes: Iterable[float]) -> float:
        """Bytes of allocations that are made in this order and stay."""
        if self._allocate is memory.allocated:
            taken = allocator.held(sizes)
            return taken.reserved if self._measured == "reserved" else taken.allocated
        return sum(map(self._allocate, sizes))
