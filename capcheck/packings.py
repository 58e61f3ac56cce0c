"""All sources of quantization methods behind one face."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capcheck.packing import Packed, PackingSource

if TYPE_CHECKING:
    from capcheck.case import Case
    from capcheck.engine import Support
    from capcheck.quantization import Scheme


class Packings:
    """Asks each source in turn; the one that owns a scheme lays it out."""

    def __init__(self, sources: Sequence[PackingSource]) -> None:
        self._sources = tuple(sources)

    def _owner(self, scheme: Scheme) -> PackingSource:
        for source in self._sources:
            if source.owns(scheme):
                return source
        raise LookupError(f"no plugin knows the quantization method {scheme.method!r}")

    def owns(self, scheme: Scheme) -> bool:
        return any(source.owns(scheme) for source in self._sources)

    def from_config(self, config: Mapping[str, Any]) -> Scheme | None:
        found = (source.from_config(config) for source in self._sources)
        return next((scheme for scheme in found if scheme is not None), None)

    def from_words(self, precision: str) -> Scheme | None:
        found = (source.from_words(precision) for source in self._sources)
        return next((scheme for scheme in found if scheme is not None), None)

    def precisions(self) -> Sequence[str]:
        return [word for source in self._sources for word in source.precisions()]

    def online(self, method: str) -> Scheme | None:
        found = (source.online(method) for source in self._sources)
        return next((scheme for scheme in found if scheme is not None), None)

    def of_module(
        self, scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
    ) -> Scheme | None:
        return self._owner(scheme).of_module(scheme, layer, module, role, draft=draft)

    def by_layer(self, scheme: Scheme) -> bool:
        return self._owner(scheme).by_layer(scheme)

    def kernel(
        self, scheme: Scheme, engine: str, vendor: str, capability: float | None, release: Any
    ) -> str:
        return self._owner(scheme).kernel(scheme, engine, vendor, capability, release)

    def allocations(self, scheme: Scheme, packed: Packed) -> tuple[float, ...]:
        return self._owner(scheme).allocations(scheme, packed)

    def supports(self, case: Case) -> Iterable[Support]:
        for source in self._sources:
            yield from source.supports(case)
