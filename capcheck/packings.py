"""All sources of quantization methods behind one face."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capcheck.guard import Guard
from capcheck.packing import Packed, PackingSource
from capcheck.values import NOWHERE, Unknown, unknown

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.case import Case
    from capcheck.engine import Support
    from capcheck.quantization import Scheme


class Packings:
    """Asks each source in turn; the one that owns a scheme lays it out."""

    takes_the_rest = True

    def __init__(self, sources: Sequence[PackingSource], guard: Guard) -> None:
        # A source that takes whatever nobody else knows is asked last.
        self._sources = sorted(sources, key=lambda one: one.takes_the_rest)
        self._guard = guard

    def _first(self, what: str, ask: Callable[[PackingSource], Scheme | None]) -> Scheme | None:
        """The scheme of the first source that gives one."""
        for source in self._sources:

            def one(source: PackingSource = source) -> Scheme | None:
                return ask(source)

            scheme = self._guard.call(source, what, one, None)
            if scheme is not None:
                return scheme
        return None

    def _owner(self, scheme: Scheme) -> PackingSource:
        for source in self._sources:
            if source.owns(scheme):
                return source
        why = f"no plugin knows the quantization method {scheme.method!r}"
        raise Unknown(unknown(NOWHERE, why), "quantization")

    def owns(self, scheme: Scheme) -> bool:
        """Whether any source lays out that scheme."""
        return any(source.owns(scheme) for source in self._sources)

    def from_config(self, config: Mapping[str, Any]) -> Scheme | None:
        """The scheme of a checkpoint's configuration; None when nobody understands it."""
        return self._first("from_config", lambda source: source.from_config(config))

    def from_words(self, precision: str) -> Scheme | None:
        """The scheme of a declared precision; None when nobody knows it."""
        return self._first("from_words", lambda source: source.from_words(precision))

    def precisions(self) -> Sequence[str]:
        """Every word that a precision may be."""
        return [word for source in self._sources for word in source.precisions()]

    def online(self, method: str) -> Scheme | None:
        """What an engine's option makes of plain weights; None when it makes nothing."""
        return self._first("online", lambda source: source.online(method))

    def for_model(self, scheme: Scheme, model: Architecture) -> Scheme:
        """What the owner of the scheme makes of it for one model."""
        owner = self._owner(scheme)
        ask = getattr(owner, "for_model", None)  # a source from before there was such a question
        if ask is None:
            return scheme
        return self._guard.call(owner, "for_model", lambda: ask(scheme, model), scheme)

    def of_module(
        self, scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
    ) -> Scheme | None:
        """The scheme that packs one module; None: it stays unquantized."""
        return self._owner(scheme).of_module(scheme, layer, module, role, draft=draft)

    def by_layer(self, scheme: Scheme) -> bool:
        """Whether layers of one shape may be packed differently."""
        return self._owner(scheme).by_layer(scheme)

    def kernel(
        self, scheme: Scheme, engine: str, vendor: str, capability: float | None, release: Any
    ) -> str:
        """The kernel that multiplies these weights."""
        return self._owner(scheme).kernel(scheme, engine, vendor, capability, release)

    def allocations(self, scheme: Scheme, packed: Packed) -> tuple[float, ...]:
        """Bytes of each device allocation of one packed tensor."""
        return self._owner(scheme).allocations(scheme, packed)

    def supports(self, case: Case) -> Iterable[Support]:
        """What all methods decide about legality."""
        for source in self._sources:
            yield from source.supports(case)
