"""What a source of quantization methods offers to the core and to engines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.case import Case
    from capcheck.engine import Support
    from capcheck.quantization import Scheme


class Packed(NamedTuple):
    """A packed matrix on one rank, before its layout is known."""

    parts: tuple[int, ...]  # output features of the fused parts
    into: int
    copies: int  # experts
    dtype_bytes: float  # of scales that take the model's dtype
    kernel: str  # a word of `kernel`
    split: str  # which side is sharded: kernels pad the two sides differently
    whole_into: int = 0  # input features before sharding; 0: not told, as many as `into`


class PackingSource(Protocol):
    """A plugin that knows quantization methods."""

    takes_the_rest: bool  # it owns whatever no other source does: it is asked last

    def owns(self, scheme: Scheme) -> bool:
        """Whether this source lays out that scheme."""

    def from_config(self, config: Mapping[str, Any]) -> Scheme | None:
        """The scheme of a checkpoint's `quantization_config`; None when not understood."""

    def from_words(self, precision: str) -> Scheme | None:
        """The scheme of `weights.precision` in a spec; None when unquantized or not known."""

    def precisions(self) -> Sequence[str]:
        """Every word that `weights.precision` may be."""

    def online(self, method: str) -> Scheme | None:
        """What an engine's quantization option does to a checkpoint at load time."""

    def for_model(self, scheme: Scheme, model: Architecture) -> Scheme:
        """The scheme with what its method decides by the model: which tensors get more bits."""

    def of_module(
        self, scheme: Scheme, layer: int | None, module: str, role: str, *, draft: bool = False
    ) -> Scheme | None:
        """The scheme that packs this module; None: it stays unquantized."""

    def by_layer(self, scheme: Scheme) -> bool:
        """Whether layers of one shape may be packed differently."""

    def kernel(
        self, scheme: Scheme, engine: str, vendor: str, capability: float | None, release: Any
    ) -> str:
        """Which kernel multiplies these weights: it decides padding; "" for none."""

    def allocations(self, scheme: Scheme, packed: Packed) -> tuple[float, ...]:
        """Bytes of each device allocation of one packed tensor."""

    def supports(self, case: Case) -> Iterable[Support]:
        """What the method decides about legality: capability, dtypes, what divides."""
