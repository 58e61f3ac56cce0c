"""Which ggml type each tensor of a model has in a file of a given mixture: Q4_K_M, IQ3_XS, ...

llama.cpp's quantization walks over the layers and gives some tensors more bits than the rest: by
their category, by the layer, by how many query heads share a KV head. The rules are data.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from capcheck.architecture import Architecture, Layer, Tensor
from capcheck.quantization import Scheme, Seen

from .gguf import METHOD, exact, fitting, records, stored_types
from .gguf_names import Category, category
from .patterns import fold

_EIGHT = 8  # experts: Mixtral's number has rules of its own
_SEVENTIES = frozenset(("llama", "qwen2", "deci", "olmo"))  # 80 layers of these are a "70B"
_LAYERS_OF_SEVENTIES = 80
_COUNTS_DRAFTS = frozenset(("glm4_moe", "glm4v_moe"))  # files whose layers include the draft's
_PACKED = frozenset(
    ("embedding", "head", "attention", "mlp", "expert", "shared_expert", "state", "indexer",
     "other")
)  # fmt: skip


class _Site(NamedTuple):
    """Where a tensor stands: the number that its rule counts, of how many, in which model."""

    number: int
    among: int
    sharing: float  # query heads of each KV head
    experts: int
    falcon: bool


_CONDITIONS: Mapping[str, Callable[[_Site], bool]] = {
    "more": lambda at: (
        at.number < at.among // 8
        or at.number >= 7 * at.among // 8
        or (at.number - at.among // 8) % 3 == 2  # a third of those between
    ),
    "first2": lambda at: at.number < 2,
    "first4": lambda at: at.number < 4,
    "first/8": lambda at: at.number < at.among // 8,
    "first/16": lambda at: at.number < at.among // 16,
    "middle": lambda at: at.among // 8 <= at.number < 7 * at.among // 8,
    "gqa>=4": lambda at: at.sharing >= 4,
    "experts>=4": lambda at: at.experts >= 4,
    "dense": lambda at: at.experts <= 1,
    "experts=8": lambda at: at.experts == _EIGHT,
    "falcon": lambda at: at.falcon,
    "not-falcon": lambda at: not at.falcon,
}


class Mixture(NamedTuple):
    """One kind of file."""

    word: str
    base: str
    embedding: str
    output: str
    rules: tuple[tuple[frozenset[str], tuple[str, ...], str], ...]  # of, when, type
    low: bool  # 1 and 2 bit: what is good for larger types is not applied to them
    doubt: str
    source: str

    def type_of(self, kind: str, at: _Site) -> str:
        """The type of a tensor of this category at this place."""
        for of, when, word in self.rules:
            if kind in of and all(_CONDITIONS[one](at) for one in when):
                return word
        return self.base


@lru_cache(maxsize=1)
def mixtures() -> Mapping[str, Mixture]:
    """Every mixture by each of its words."""
    found: dict[str, Mixture] = {}
    for row in records("gguf_mixtures.jsonl"):
        made = _like(row, found[row["like"]]) if "like" in row else _mixture(row)
        for word in (row["word"], *row.get("also", ())):
            found[word] = made
    return found


def _mixture(row: Mapping[str, Any]) -> Mixture:
    rules = tuple(
        (frozenset(rule["of"]), tuple(rule.get("when", ())), rule["type"])
        for rule in row.get("rules", ())
    )
    base = row["base"]
    return Mixture(
        row["word"], base, row.get("embedding", base), row.get("output", "q6_k"), rules,
        row.get("low", False), row.get("doubt", ""), row["source"],
    )  # fmt: skip


def _like(row: Mapping[str, Any], other: Mixture) -> Mixture:
    told = {
        key: row[key] for key in ("word", "embedding", "output", "doubt", "source") if key in row
    }
    return other._replace(**told)


def words() -> tuple[str, ...]:
    """Every file type, other spellings left out."""
    return tuple(dict.fromkeys(found.word for found in mixtures().values()))


def from_word(word: str, seen: Seen = "written") -> Scheme | None:
    """The scheme of a file type's word before the model is known; None for no such word."""
    found = mixtures().get(word)
    if found is None:
        return None
    bits = stored_types()[found.base].bits
    return Scheme(
        METHOD, word, round(bits, 4), seen=seen, source=found.source, guessed=("bits",),
        doubt=found.doubt,
    )  # fmt: skip


def for_model(scheme: Scheme, model: Architecture) -> Scheme:
    """The scheme with the type of each of this model's tensors; as it is where that is open."""
    found = mixtures().get(scheme.weight)
    if scheme.method != METHOD or scheme.parts or found is None or "bits" not in scheme.guessed:
        return scheme
    names: dict[str, list[str]] = {}
    elements = bits = 0.0
    for name, tensor, part_out, word in _typed(found, model):
        kept = fitting(word, tensor.into)
        size = float(part_out) * tensor.into * tensor.copies
        elements, bits = elements + size, bits + size * kept.bits
        names.setdefault(word, []).append(name)
    if not elements:
        return scheme
    rest = max(names, key=lambda word: len(names[word]))
    parts = [exact(word, fold(names[word]), scheme.seen) for word in names if word != rest]
    parts.append(exact(rest, (), scheme.seen))
    return scheme._replace(bits=round(bits / elements, 4), parts=tuple(parts), guessed=())


def _typed(found: Mixture, model: Architecture) -> Iterator[tuple[str, Tensor, int, str]]:
    """Every packed module: its whole name, its tensor, its rows, and the type it gets."""
    for tensor in model.outer:
        if tensor.into and tensor.role in _PACKED:
            for part in tensor.parts:
                yield part.name, tensor, part.out, _outer_type(found, tensor, model)
    walk = _Walk(found, model)
    for number, layer in enumerate(model.layers):
        for tensor in layer.tensors:
            if tensor.linear and tensor.into and tensor.role in _PACKED:
                for part in tensor.parts:
                    word = walk.type_of(number, category(part.name, tensor.role), tensor.role)
                    yield f"layers.{number}.{part.name}", tensor, part.out, word


def _outer_type(found: Mixture, tensor: Tensor, model: Architecture) -> str:
    if tensor.role == "head" or (tensor.role == "embedding" and model.tied):
        return "q8_0" if _is_falcon(model) else found.output
    return found.embedding if tensor.role == "embedding" else found.base


def _is_falcon(model: Architecture) -> bool:
    return model.family == "falcon"


class _Walk:
    """One pass over the layers, counting as llama.cpp's quantization does."""

    def __init__(self, found: Mixture, model: Architecture) -> None:
        self.mixture = found
        kinds = [set(_kinds(layer)) for layer in model.layers]
        # Where values are split off, fused ones of the same model count and pack as they do.
        self.values = {"attn_v"} | (
            {"attn_qkv"} if any("attn_v" in one for one in kinds) else set()
        )
        self.attending = sum(1 for one in kinds if one & {"attn_v", "attn_qkv"})
        drafts = len(model.draft) if model.family in _COUNTS_DRAFTS else 0
        self.layers = len(model.layers) + drafts
        self.model = model
        sharing = model.heads / model.kv_heads if model.kv_heads else 0.0
        self.site = _Site(0, 0, sharing, model.experts, _is_falcon(model))
        self.counted: dict[str, int] = {}
        self.seventy = (
            model.family in _SEVENTIES
            and len(model.layers) == _LAYERS_OF_SEVENTIES
            and model.heads != model.kv_heads
        )

    def type_of(self, number: int, kind: Category, role: str) -> str:
        """The type of the next tensor of this category, in the layer of that number."""
        found, site = self.mixture, self.site
        if role == "expert" and any("experts" in of for of, _, _ in found.rules):
            return found.type_of("experts_down" if kind == "ffn_down" else "experts", site)
        if kind in self.values:
            at = site._replace(number=self._next("attn_v"), among=self.attending)
            return self._of_values(found.type_of("attn_v", at))
        if kind == "attn_k" and site.experts == _EIGHT and not found.low:
            return "q8_0"
        if kind in ("ffn_down", "ffn_gate", "ffn_up"):
            index = number if self.model.experts > 1 else self._next(kind)
            return found.type_of(kind, site._replace(number=index, among=self.layers))
        return found.type_of(kind, site)

    def _of_values(self, word: str) -> str:
        if self.mixture.low:
            return word
        if self.site.experts == _EIGHT:
            return "q8_0"
        return "q5_k" if self.seventy and word in ("q3_k", "q4_k") else word

    def _next(self, kind: str) -> int:
        self.counted[kind] = self.counted.get(kind, -1) + 1
        return self.counted[kind]


def _kinds(layer: Layer) -> Iterator[str]:
    for tensor in layer.tensors:
        for part in tensor.parts:
            if tensor.linear:
                yield category(part.name, tensor.role)
