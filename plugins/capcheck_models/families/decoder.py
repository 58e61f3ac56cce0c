"""A decoder: layers between an embedding and a head, whatever its family."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from typing import NamedTuple, TypeVar

from capcheck.architecture import Layer, Part, Rope, Split, Tensor, Vision

from .blocks import Block, Experts, Heads, Tensors, norm, vector
from .config import MOST_EXPERTS, MOST_LAYERS, Config

Kind = TypeVar("Kind", bound=Hashable)


class Sizes(NamedTuple):
    """The widths that nearly every configuration tells, under whichever name."""

    hidden: int
    layers: int
    heads: int
    kv_heads: int
    head_size: int
    vocabulary: int
    intermediate: int  # 0: not told

    def attention(self) -> Heads:
        """The shape of an ordinary attention layer."""
        return Heads(self.hidden, self.heads, self.kv_heads, self.head_size)


def layer_count(c: Config) -> int:
    """How many decoder layers. Raises BadConfig."""
    keys = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
    return c.whole(*keys, least=1, most=MOST_LAYERS)


def sizes(c: Config, *, kv_heads: int | None = None) -> Sizes:
    """Read the widths. `kv_heads` replaces the default of one for every query head.

    Raises BadConfig when one is missing, or when heads do not divide the hidden size although
    no head size is told.
    """
    hidden = c.size("hidden_size", "n_embd", "d_model")
    heads = c.size("num_attention_heads", "n_head", "n_heads")
    head_size = c.optional("head_dim", "attention_head_dim", "hidden_size_per_head", least=1)
    if head_size is None:
        head_size = c.multiple(hidden, heads, "num_attention_heads")
    return Sizes(
        hidden=hidden,
        layers=layer_count(c),
        heads=heads,
        kv_heads=c.size("num_key_value_heads", "num_kv_heads", default=kv_heads or heads),
        head_size=head_size,
        vocabulary=c.size("vocab_size"),
        intermediate=c.whole("intermediate_size", "ffn_hidden_size", default=0),
    )


def intermediate(c: Config) -> int:
    """The width of the dense feed-forward, required. Raises BadConfig."""
    return c.size("intermediate_size", "ffn_hidden_size")


class Routing(NamedTuple):
    """How many experts there are, how many a token meets and how wide they are."""

    experts: int
    per_token: int
    intermediate: int
    shared: int  # width of the shared experts together; 0: none


def routing(c: Config, *, width: tuple[str, ...] = ("moe_intermediate_size",)) -> Routing:
    """Read the mixture of experts; `width` are the keys of one expert's width.

    Raises BadConfig, also when a token would meet more experts than there are.
    """
    experts = c.whole(
        "num_local_experts", "n_routed_experts", "num_experts", "moe_num_experts",
        least=1, most=MOST_EXPERTS,
    )  # fmt: skip
    keys = ("num_experts_per_tok", "num_experts_per_token", "moe_top_k", "moe_topk", "moe_k")
    per_token = c.whole(*keys, least=1, most=experts)
    size = c.size(*width)
    count = c.whole(
        "n_shared_experts", "num_shared_experts", "moe_num_shared_experts", "num_shared_expert",
        default=0, most=MOST_EXPERTS,
    )  # fmt: skip
    shared = c.whole("shared_expert_intermediate_size", "share_expert_dim", default=count * size)
    return Routing(experts, per_token, size, shared)


class Decoder(NamedTuple):
    """What a family makes of a configuration; `Architecture` adds what all models share."""

    layers: tuple[Layer, ...]
    outer: Tensors
    sizes: Sizes
    tied: bool
    ropes: tuple[Rope, ...] = ()
    prefix: str = "model.layers"  # the checkpoint's name of the list of layers
    routing: Routing | None = None
    draft: tuple[Layer, ...] = ()
    draft_outer: Tensors = ()
    towers: Tensors = ()
    vision: Vision | None = None


def stack(kinds: Iterable[Kind], make: Callable[[Kind], Layer]) -> tuple[Layer, ...]:
    """One layer per kind, each distinct kind built once and shared."""
    made: dict[Kind, Layer] = {}
    layers = []
    for kind in kinds:
        if kind not in made:
            made[kind] = make(kind)
        layers.append(made[kind])
    return tuple(layers)


def layer(block: Block, *more: Tensors, experts: Experts | None = None) -> Layer:
    """A decoder layer: a mixer, the rest of its tensors, perhaps experts."""
    tensors = block.tensors + tuple(tensor for group in more for tensor in group)
    if experts is None:
        return Layer(block.mixer, tensors, block.cache)
    return Layer(
        block.mixer, tensors + experts.tensors, block.cache, experts.number, experts.per_token
    )


def feeding_layer(
    block: Block, around: Tensors, experts: Experts | None, plain: Tensors, sparse: bool
) -> Layer:
    """A decoder layer that feeds forward by its experts, or (`sparse` false) by one width."""
    if sparse and experts is not None:
        return layer(block, around, experts=experts)
    return layer(block, plain, around)


def embedding(
    vocabulary: int, hidden: int, name: str = "model.embed_tokens", *, split: bool = True
) -> Tensors:
    """A table of token vectors, sharded by rows of the vocabulary."""
    parts = (Part(name, vocabulary),)
    shard: Split = "vocabulary" if split else "replicated"
    return (Tensor("embedding", parts, hidden, shard, linear=False),)


def head(vocabulary: int, hidden: int, name: str = "lm_head", *, bias: bool = False) -> Tensors:
    """The projection to the vocabulary."""
    weight = (Tensor("head", (Part(name, vocabulary),), hidden, "vocabulary"),)
    return weight + vector("head", f"{name}.bias", vocabulary, "vocabulary") if bias else weight


def ends(
    widths: Sizes,
    tied: bool,
    *,
    root: str = "model",
    embed: str = "embed_tokens",
    last: str = "norm",
    norm_bias: bool = False,
    final_norm: bool = True,
    lm_head: str = "lm_head",
    head_bias: bool = False,
) -> Tensors:
    """Embedding, final norm and, unless it is tied, the head."""
    found = embedding(widths.vocabulary, widths.hidden, f"{root}.{embed}")
    if final_norm:
        found += norm(f"{root}.{last}", widths.hidden, bias=norm_bias)
    if not tied:
        found += head(widths.vocabulary, widths.hidden, lm_head, bias=head_bias)
    return found


def tied(c: Config, default: bool) -> bool:
    """Whether the head is the embedding."""
    return c.flag("tie_word_embeddings", default=default)
