"""The quantization methods behind the core's contract."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from capcheck import Architecture, Case, Scheme, Support
from capcheck.packing import Packed

from . import gguf_mixtures, kernels, layouts, schemes, supporting


class Methods:
    """Every method of this package."""

    takes_the_rest = True

    def owns(self, scheme: Scheme) -> bool:
        """Every scheme: the layouts cover every dtype word."""
        del scheme  # the layouts cover every dtype word
        return True

    def from_config(self, config: Mapping[str, Any]) -> Scheme | None:
        """See `PackingSource.from_config`."""
        return schemes.from_config(config, expert_dtype=str(config.get("expert_dtype") or ""))

    def from_words(self, precision: str) -> Scheme | None:
        """See `PackingSource.from_words`."""
        return schemes.from_words(precision)

    def precisions(self) -> Sequence[str]:
        """See `PackingSource.precisions`."""
        return schemes.precisions()

    def online(self, method: str) -> Scheme | None:
        """See `PackingSource.online`."""
        return schemes.online(method)

    def for_model(self, scheme: Scheme, model: Architecture) -> Scheme:
        """See `PackingSource.for_model`."""
        return gguf_mixtures.for_model(scheme, model)

    def of_module(
        self, scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
    ) -> Scheme | None:
        """See `PackingSource.of_module`."""
        return layouts.of_module(scheme, layer, module, role, draft=draft)

    def by_layer(self, scheme: Scheme) -> bool:
        """See `PackingSource.by_layer`."""
        return layouts.by_layer(scheme)

    def kernel(
        self, scheme: Scheme, engine: str, vendor: str, capability: float | None, release: Any
    ) -> str:
        """See `PackingSource.kernel`."""
        times_ten = round(capability * 10) if capability is not None else None
        return kernels.kernel_of(scheme, engine, vendor, times_ten, release)

    def allocations(self, scheme: Scheme, packed: Packed) -> tuple[float, ...]:
        """See `PackingSource.allocations`."""
        return layouts.allocations(
            packed.parts, packed.into, packed.copies, scheme, packed.dtype_bytes,
            kernel=packed.kernel, split=packed.split, whole_into=packed.whole_into,
        )  # fmt: skip

    def supports(self, case: Case) -> Iterable[Support]:
        """See `Engine.supports`."""
        return supporting.supports(case)
