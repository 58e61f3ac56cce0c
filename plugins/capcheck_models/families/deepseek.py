"""DeepSeek V2 to V3.2 and the models that follow their drawing: Kimi K2, GLM-5, Mistral 4."""

from __future__ import annotations

from functools import partial
from typing import NamedTuple

from capcheck.architecture import Layer, Rope

from .blocks import Tensors, norms
from .config import Config
from .decoder import Decoder, Sizes, ends, layer, layer_count, stack, tied
from .mla import Latent, indexer, latent, latent_attention
from .moe import (
    Mixture,
    Sparse,
    after_dense,
    listed,
    mixture_experts,
    mixture_routing,
    with_prediction,
)
from .rope import ropes
from .style import TWO_NORMS, Style, style_mlp


class Deepseek(NamedTuple):
    """What sets one family apart."""

    mixture: Mixture
    draft_ends: bool = True  # prediction layers store an embedding and a head of their own


def latent_sizes(c: Config, widths: Latent) -> Sizes:
    """The widths that all decoders tell. One latent stands for all KV heads."""
    return Sizes(
        hidden=widths.hidden,
        layers=layer_count(c),
        heads=widths.heads,
        kv_heads=1,
        head_size=widths.query,
        vocabulary=c.size("vocab_size"),
        intermediate=c.whole("intermediate_size", default=0),
    )


def _sparse(c: Config, layers: int) -> tuple[bool, ...]:
    """Experts after the first dense layers, every `moe_layer_freq`-th, or as listed."""
    if c.has("mlp_layer_types"):
        return listed(c, layers)
    first = c.whole("first_k_dense_replace", default=0)
    every = c.whole("moe_layer_freq", default=1, least=1)
    return tuple(index >= first and index % every == 0 for index in range(layers))


def _owners(c: Config, layers: int) -> tuple[bool, ...]:
    """Which layers have an indexer of their own (the rest read an earlier one's choice)."""
    types = c.per_layer("indexer_types", layers)
    return tuple(kind == "full" for kind in types) if types else (True,) * layers


def _ropes(c: Config, widths: Latent) -> tuple[Rope, ...]:
    """An indexer that pairs its dimensions otherwise than attention has a table of its own."""
    tables = ropes(c, widths.rope)
    if not c.has("index_n_heads") or c.flag("indexer_rope_interleave"):
        return tables
    return tuple(table._replace(copies=2 * table.copies) for table in tables)


def deepseek(c: Config, family: Deepseek) -> Decoder:
    """Latent attention and experts after a few dense layers. Raises BadConfig."""
    widths = latent(c)
    told = latent_sizes(c, widths)
    mixture, scorer = family.mixture, indexer(c)
    route = mixture_routing(c, mixture)
    sparse = mixture.sparse(c, told.layers)
    experts = mixture_experts(mixture, route, widths.hidden)
    around = norms(widths.hidden, *TWO_NORMS)
    plain: Tensors = ()
    if not all(sparse):
        plain = style_mlp(c, mixture.style, widths.hidden, c.size("intermediate_size"))
    bias = c.flag("attention_bias")

    def make(kind: tuple[bool, bool]) -> Layer:
        has_experts, owns = kind
        block = latent_attention(widths, scorer, bias=bias, owns_scorer=owns)
        if has_experts:
            return layer(block, around, experts=experts)
        return layer(block, around, plain)

    is_tied = tied(c, False)
    built = Decoder(
        layers=stack(zip(sparse, _owners(c, told.layers), strict=True), make),
        outer=ends(told, is_tied),
        sizes=told,
        tied=is_tied,
        ropes=_ropes(c, widths),
        routing=route,
    )
    # A prediction layer is a sparse one with an indexer of its own.
    ends_too = family.draft_ends
    return with_prediction(c, built, one=make((True, True)), embed=ends_too, own_head=ends_too)


def _mixture(sparse: Sparse = _sparse, dtype: str = "") -> Mixture:
    return Mixture(Style(), sparse, router_dtype=dtype)


FAMILIES = {
    "deepseek_v2": partial(deepseek, family=Deepseek(_mixture())),
    "deepseek_v3": partial(deepseek, family=Deepseek(_mixture())),
    "deepseek_v32": partial(deepseek, family=Deepseek(_mixture())),
    "kimi_k2": partial(deepseek, family=Deepseek(_mixture())),
    "glm_moe_dsa": partial(deepseek, family=Deepseek(_mixture(), draft_ends=False)),
    "glm4_moe_lite": partial(
        deepseek, family=Deepseek(_mixture(after_dense("first_k_dense_replace", default=1)))
    ),
    "mistral4": partial(deepseek, family=Deepseek(_mixture())),
}
