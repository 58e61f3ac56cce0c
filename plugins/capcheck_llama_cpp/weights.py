"""Bytes of a model's tensors as a GGUF file stores them, by layer."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Architecture, Case, Scheme, Tensor
from capcheck.architecture import Layer, Mixer, Part
from capcheck.packing import Packed, PackingSource
from capcheck_llama_cpp.tensor_names import stem

COMPUTED = 34 / 32  # bytes of a value that the fork computes from latent projections: q8_0
WIDE, PLAIN = 4.0, 2.0  # bytes of a value: vectors, routers and convolutions; all else unpacked
_STAYS_WIDE = frozenset(("router", "norm"))
_HOST_TABLES = frozenset(("embedding",))


class Piece(NamedTuple):
    """Tensors of one name in one layer."""

    name: str  # ffn_down_exps.weight
    bytes: float

    @property
    def of_experts(self) -> bool:
        """Whether routed experts are stacked in it."""
        return "_exps." in self.name


Layers = tuple[tuple[Piece, ...], ...]


class Held(NamedTuple):
    """A whole model."""

    layers: Layers
    output: float  # head and final norm; a tied head is the embedding once more
    embedding: float  # looked up on the host

    @property
    def total(self) -> float:
        """What there is to place on devices."""
        return sum(one.bytes for layer in self.layers for one in layer) + self.output


class Weigher:
    """Weighs tensors of one scheme."""

    def __init__(
        self,
        packing: PackingSource,
        scheme: Scheme | None,
        *,
        computes: bool = False,
        plain: float = PLAIN,
    ) -> None:
        self.packing = packing
        self.scheme = scheme
        self.plain = plain  # bytes of an element that is not packed
        self.computes = computes  # latent projections are kept whole, and taken apart besides

    def model(self, model: Architecture) -> Held:
        """Everything of the main model."""
        layers = tuple(self.layer(layer, number) for number, layer in enumerate(model.layers))
        tables = [one for one in model.outer if one.role in _HOST_TABLES]
        output = sum(self.tensor(one, None) for one in model.outer if one not in tables)
        embedding = sum(self.tensor(one, None) for one in tables)
        if model.tied and tables:
            output += self.tensor(tables[0], None)
        return Held(layers, output, embedding)

    def layer(self, layer: Layer, number: int) -> tuple[Piece, ...]:
        """One layer's tensors, those of one name together."""
        found: dict[str, float] = {}
        for tensor in layer.tensors:
            for part in tensor.parts:
                name = stem(part.name, tensor.role)
                size = self._whole(tensor, part, number, layer.mixer)
                found[name] = found.get(name, 0.0) + size
        return tuple(Piece(name, size) for name, size in found.items())

    def tensor(self, tensor: Tensor, number: int | None) -> float:
        """One fused tensor: its parts are tensors of their own in the file."""
        return sum(self._part(tensor, part.name, part.out, number) for part in tensor.parts)

    def _whole(self, tensor: Tensor, part: Part, number: int, mixer: Mixer) -> float:
        if mixer.latent and part.name.endswith("kv_b_proj"):
            return self._latent(tensor, part.name, number, mixer)
        return self._part(tensor, part.name, part.out, number)

    def _part(self, tensor: Tensor, name: str, out: int, number: int | None) -> float:
        size = float(out) * max(tensor.into, 1) * tensor.copies
        looked_up = tensor.role in ("embedding", "head") and tensor.into
        if not looked_up and (
            not tensor.into or not tensor.linear or tensor.role in _STAYS_WIDE or tensor.dtype
        ):
            return size * WIDE
        return self._packed(self._scheme(tensor, name, number), out, tensor.into, tensor.copies)

    def _scheme(self, tensor: Tensor, name: str, number: int | None) -> Scheme | None:
        if self.scheme is None:
            return None
        return self.packing.of_module(self.scheme, number, name, tensor.role)

    def _packed(self, own: Scheme | None, out: int, into: int, copies: int) -> float:
        if own is None:
            return float(out) * into * copies * self.plain
        shard = Packed((out,), into, copies, PLAIN, "", "column")
        return sum(self.packing.allocations(own, shard))

    def _latent(self, tensor: Tensor, name: str, number: int | None, mixer: Mixer) -> float:
        """The latent's up-projection: for keys, which is turned, and for values apart."""
        own = self._scheme(tensor, name, number)
        if self.computes:
            out = mixer.heads * (mixer.nope + mixer.value_size)
            return self._packed(own, out, tensor.into, tensor.copies) + out * tensor.into * COMPUTED
        keys = self._packed(own, mixer.heads * mixer.latent, mixer.nope, tensor.copies)
        return keys + self._packed(own, mixer.heads * mixer.value_size, tensor.into, tensor.copies)


def held(case: Case, model: Architecture, scheme: Scheme | None, *, computes: bool = False) -> Held:
    """A model as its file holds it, weighed once."""
    plain = _plain_bytes(case)
    key = ("llama.cpp weights", id(model), scheme, computes, plain)
    cache = case.workshop.cache
    if key not in cache:
        weigher = Weigher(case.workshop.packing, scheme, computes=computes, plain=plain)
        cache[key] = (weigher.model(model), model)
    found: Held = cache[key][0]
    return found


def _plain_bytes(case: Case) -> float:
    """Bytes of an element of a file that is not packed: 4 where it is said to be F32."""
    stated = case.deployment.text("model", "weights", "precision")
    if stated is None:
        stated = case.engine.precision(case.deployment)
    word = stated.either("") if stated is not None else ""
    return WIDE if word.lower() in ("f32", "fp32", "float32") else PLAIN
