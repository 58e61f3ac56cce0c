"""Weights as an engine holds them: every tensor's shard under one split, dtype and packing. Bytes.

What engines share: fused tensors are sharded, packed by their method's layout and rounded by the
allocator. Which kernel multiplies them, and so how they are padded, is the engine's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from capcheck.architecture import Architecture, Layer, Part, Tensor
from capcheck.packing import Packed, PackingSource
from capcheck.physics import memory
from capcheck.physics.memory import Split
from capcheck.quantization import Scheme

DTYPE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
TOWERS = ("vision", "audio", "projector")


class Weighing:
    """Bytes of a model's tensors on one rank.

    `kernel` gives the word of the kernel for a scheme; `allocate` what one tensor of so many
    bytes really takes.
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

    def _kernel_of(self, scheme: Scheme) -> str:
        if scheme not in self._kernels:
            self._kernels[scheme] = self._kernel(scheme)
        return self._kernels[scheme]

    def tensor(self, tensor: Tensor, layer: int | None) -> float:
        """Bytes of one fused tensor on one rank, allocator rounding included."""
        scheme = self.scheme
        if scheme is None or not tensor.linear:
            return self._dense(tensor)
        by_scheme: dict[Scheme | None, list[Part]] = {}
        for part in tensor.parts:
            own = self.packing.of_module(scheme, layer, part.name, tensor.role, draft=self.draft)
            by_scheme.setdefault(own, []).append(part)
        return sum(self._packed(tensor, parts, own) for own, parts in by_scheme.items())

    def _dense(self, tensor: Tensor) -> float:
        return self._allocate(memory.dense_bytes(tensor, self.split, self.dtype_bytes))

    def _packed(self, tensor: Tensor, parts: list[Part], scheme: Scheme | None) -> float:
        if scheme is None:
            return self._dense(tensor._replace(parts=tuple(parts)))
        shard = Packed(
            tuple(memory.part_out(part, tensor, self.split) for part in parts),
            memory.rank_into(tensor, self.split),
            memory.rank_copies(tensor, self.split),
            self.dtype_bytes,
            self._kernel_of(scheme),
            tensor.split,
        )
        return sum(self._allocate(size) for size in self.packing.allocations(scheme, shard))

    def layers(self, layers: Sequence[Layer], first: int = 0) -> float:
        """Bytes of consecutive layers; `first` is the number of the first one."""
        return memory.layers_bytes(layers, first, self.tensor, alike=self.alike)

    def outer(self, tensors: Sequence[Tensor]) -> float:
        """Bytes of tensors outside of the layers."""
        return sum(self.tensor(tensor, None) for tensor in tensors)

    def stage(
        self, model: Architecture, stage: int, sizes: Sequence[int], *, towers: bool = True
    ) -> float:
        """Bytes of one pipeline stage: layers, outer tensors, rotary tables, absorbed MLA."""
        split = self.split
        layers = memory.stage_layers(model.layers, split.pipeline, stage, sizes)
        outer = memory.outer_tensors(model, split.pipeline, stage)
        if not towers:
            outer = [one for one in outer if one.role not in TOWERS]
        total = self.layers(layers, sum(sizes[:stage])) + self.outer(outer)
        total += memory.rope_bytes(model.ropes, self.dtype_bytes)
        return total + memory.absorbed_mla_bytes(layers, split, self.dtype_bytes)
