"""The pieces that layers are made of, fused and sharded as engines hold them.

Every function returns tensors; names are the checkpoint's, inside the layer. A part with `heads`
is sharded by whole heads. Column-parallel layers shard their outputs and biases, row-parallel
layers their inputs; routers, norms and latent down-projections are replicated.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from capcheck.architecture import Cache, Mixer, Part, Role, Split, Tensor

Tensors = tuple[Tensor, ...]


class Block(NamedTuple):
    """A token mixer: its tensors, what it keeps per request and how it computes."""

    tensors: Tensors
    mixer: Mixer
    cache: Cache | None


class Experts(NamedTuple):
    """A mixture of experts: its tensors and how many experts one token meets."""

    tensors: Tensors
    number: int
    per_token: int


class Names(NamedTuple):
    """How a checkpoint spells the projections of attention, inside the layer."""

    q: str = "self_attn.q_proj"
    k: str = "self_attn.k_proj"
    v: str = "self_attn.v_proj"
    o: str = "self_attn.o_proj"
    q_norm: str = "self_attn.q_norm"
    k_norm: str = "self_attn.k_norm"


SELF_ATTENTION = Names()


def fused(prefix: str, qkv: str, out: str) -> Names:
    """Names of a checkpoint whose q, k and v are one tensor."""
    return Names(*(f"{prefix}.{qkv}",) * 3, f"{prefix}.{out}")


def linear(
    role: Role, parts: tuple[Part, ...], into: int, split: Split, *, bias: bool = False
) -> Tensors:
    """A matrix of fused parts over one input, and its bias."""
    weight = Tensor(role, parts, into, split)
    if not bias:
        return (weight,)
    named = tuple(part._replace(name=f"{part.name}.bias") for part in parts)
    # The bias of a row-parallel layer is added once, after the sum over devices.
    return weight, Tensor(role, named, 0, "replicated" if split == "row" else split, linear=False)


def column(role: Role, name: str, out: int, into: int, *, bias: bool = False) -> Tensors:
    """A matrix whose outputs are sharded."""
    return linear(role, (Part(name, out),), into, "column", bias=bias)


def row(role: Role, name: str, out: int, into: int, *, bias: bool = False) -> Tensors:
    """A matrix whose inputs are sharded."""
    return linear(role, (Part(name, out),), into, "row", bias=bias)


def replicated(role: Role, name: str, out: int, into: int, *, bias: bool = False) -> Tensors:
    """A matrix that every device holds whole."""
    return linear(role, (Part(name, out),), into, "replicated", bias=bias)


def vector(role: Role, name: str, size: int, split: Split = "replicated") -> Tensors:
    """A vector or a table that no method packs: `size` elements."""
    return (Tensor(role, (Part(name, size),), 0, split, linear=False),)


def norm(name: str, size: int, *, bias: bool = False, role: Role = "norm") -> Tensors:
    """The weight of a norm, and its bias."""
    weight = vector(role, name, size)
    return weight + vector(role, f"{name}.bias", size) if bias else weight


def norms(size: int, *names: str, bias: bool = False) -> Tensors:
    """Several norms over the same width."""
    return tuple(tensor for name in names for tensor in norm(name, size, bias=bias))


class Heads(NamedTuple):
    """The shape of one attention layer."""

    hidden: int
    heads: int
    kv_heads: int
    size: int  # of queries and keys
    value: int = 0  # of values; 0: as keys

    @property
    def value_size(self) -> int:
        """The head size of values."""
        return self.value or self.size


def attention_cache(heads: Heads, window: int, chunk: int) -> tuple[Mixer, Cache]:
    """What softmax attention computes and keeps: full, in a sliding window or in chunks."""
    kind: Literal["full", "sliding", "chunked"] = (
        "chunked" if chunk else "sliding" if window else "full"
    )
    extent = chunk or window
    mixer = Mixer(kind, heads.heads, heads.size, heads.value_size, heads.kv_heads, extent)
    return mixer, Cache(kind, heads.kv_heads, heads.size, heads.value_size, extent)


def _qk_norms(heads: Heads, style: str, names: Names, bias: bool) -> Tensors:
    """Norms of queries and keys: over one `head`, over each head apart, or over the `whole`."""
    if not style:
        return ()
    q, k = {
        "head": (heads.size, heads.size),
        "whole": (heads.heads * heads.size, heads.kv_heads * heads.size),
    }[style]
    split: Split = "column" if style == "whole" else "replicated"
    found = vector("norm", names.q_norm, q, split) + vector("norm", names.k_norm, k, split)
    if bias:
        found += vector("norm", f"{names.q_norm}.bias", q, split)
        found += vector("norm", f"{names.k_norm}.bias", k, split)
    return found


def attention(
    heads: Heads,
    *,
    names: Names = SELF_ATTENTION,
    bias: bool = False,
    out_bias: bool = False,
    qk_norm: str = "",
    qk_norm_bias: bool = False,
    window: int = 0,
    chunk: int = 0,
    gated: bool = False,
    shared: bool = False,
) -> Block:
    """Softmax attention: fused q, k, v, then the output projection.

    `gated` doubles the query projection for a gate of the output; `shared` has no keys and values
    of its own (an earlier layer's are read) and keeps no cache.
    """
    query = heads.heads * heads.size * (2 if gated else 1)
    parts = [Part(names.q, query)]
    if not shared:
        parts.append(Part(names.k, heads.kv_heads * heads.size, heads.kv_heads))
        parts.append(Part(names.v, heads.kv_heads * heads.value_size, heads.kv_heads))
    mixer, cache = attention_cache(heads, window, chunk)
    tensors = (
        *linear("attention", tuple(parts), heads.hidden, "column", bias=bias),
        *row("attention", names.o, heads.hidden, heads.heads * heads.value_size, bias=out_bias),
        *_qk_norms(heads, qk_norm, names, qk_norm_bias),
    )
    return Block(tensors, mixer, None if shared else cache)


def gated_mlp(
    hidden: int,
    intermediate: int,
    *,
    prefix: str = "mlp",
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
    role: Role = "mlp",
) -> Tensors:
    """A gated feed-forward: fused gate and up, then down."""
    gate, up, down = (f"{prefix}.{name}" for name in names)
    parts = (Part(gate, intermediate), Part(up, intermediate))
    return (
        *linear(role, parts, hidden, "column", bias=bias),
        *row(role, down, hidden, intermediate, bias=bias),
    )


def plain_mlp(
    hidden: int,
    intermediate: int,
    *,
    names: tuple[str, str] = ("mlp.up_proj", "mlp.down_proj"),
    bias: bool = False,
    role: Role = "mlp",
) -> Tensors:
    """A feed-forward of two matrices."""
    up, down = names
    return (
        *column(role, up, intermediate, hidden, bias=bias),
        *row(role, down, hidden, intermediate, bias=bias),
    )


def stacked_experts(
    count: int,
    hidden: int,
    intermediate: int,
    *,
    prefix: str = "mlp.experts",
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj"),
    bias: bool = False,
) -> Tensors:
    """All experts of one layer: gate and up stacked in one tensor, down in another.

    Two names instead of three are experts without a gate.
    """
    *ups, down = (f"{prefix}.{name}" for name in names)
    wide = tuple(Part(name, intermediate) for name in ups)
    tensors = (
        Tensor("expert", wide, hidden, "column", count),
        Tensor("expert", (Part(down, hidden),), intermediate, "row", count),
    )
    if not bias:
        return tensors
    return tensors + tuple(
        tensor._replace(
            parts=tuple(part._replace(name=f"{part.name}.bias") for part in tensor.parts),
            into=0,
            split="column" if tensor.split == "column" else "replicated",
            linear=False,
        )
        for tensor in tensors
    )


def router(count: int, hidden: int, *, name: str = "mlp.gate", bias: bool = False) -> Tensors:
    """The scores of the experts."""
    return replicated("router", name, count, hidden, bias=bias)


def with_indexer(block: Block, tensors: Tensors, width: int, topk: int, compress: int = 1) -> Block:
    """Attention whose keys are picked by an indexer with keys of its own."""
    cache = block.cache._replace(indexer=width, index_compress=compress) if block.cache else None
    return Block(block.tensors + tensors, block.mixer._replace(topk=topk), cache)
