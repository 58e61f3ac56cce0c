"""Kimi delta attention between latent attention: Kimi Linear and K3, Ling 3, GLM 5.3 Flash."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Layer, Part, Tensor

from .blocks import (
    Block,
    Experts,
    Tensors,
    column,
    gated_mlp,
    linear,
    norm,
    norms,
    replicated,
    router,
    stacked_experts,
)
from .config import MOST_LAYERS, Config
from .decoder import (
    Decoder,
    Routing,
    Sizes,
    ends,
    intermediate,
    layer,
    routing,
    stack,
    tied,
)
from .deepseek import latent_sizes
from .mla import Latent, indexer, latent, latent_attention
from .moe import Mixture, listed, mixture_experts, with_prediction
from .multimodal import moonvit, text_part, with_tower
from .rope import ropes
from .state import Delta, kimi_delta
from .style import TWO_NORMS, Style
from .towers import GLM5, glm_vision
from .vit import fixed, projector

_FULL = ("full_attention", "indexed_attention")


def _full_layers(c: Config, layers: int) -> tuple[bool, ...]:
    """Which layers attend with latents: listed from 1, or by kind, or by group."""
    if c.has("linear_attn_config"):
        told = c.section("linear_attn_config").wholes("full_attn_layers", most=MOST_LAYERS)
        if told is not None:
            return tuple(index + 1 in told for index in range(layers))
    kinds = c.per_layer("layer_types", layers)
    if kinds is not None:
        return tuple(kind in _FULL for kind in kinds)
    group = c.whole("layer_group_size", least=1)
    return tuple((index + 1) % group == 0 for index in range(layers))


def _kda_widths(c: Config, hidden: int) -> Delta:
    if c.has("linear_attn_config"):
        told = c.section("linear_attn_config")
        heads, size = told.size("num_heads"), told.size("head_dim")
        kernel = told.size("short_conv_kernel_size", default=4)
    else:  # flat, where head_dim means something else
        heads = c.size("linear_num_heads", "num_attention_heads")
        size = c.size("linear_head_dim", default=128)
        kernel = c.size("linear_conv_kernel_dim", "short_conv_kernel_size", default=4)
    return Delta(hidden, heads, heads, size, size, kernel)


class Parts(NamedTuple):
    """What the layers of one such model are put together from."""

    linear: Block
    full: Block
    experts: Experts
    route: Routing
    more: Tensors = ()  # in every layer, beside the two norms


def _decoder(c: Config, parts: Parts, widths: Sizes) -> Decoder:
    hidden = widths.hidden
    around = norms(hidden, *TWO_NORMS) + parts.more
    plain = gated_mlp(hidden, intermediate(c))
    if c.has("mlp_layer_types"):
        sparse = listed(c, widths.layers)
    else:
        first = c.whole("first_k_dense_replace", default=1)
        sparse = tuple(index >= first for index in range(widths.layers))

    def make(kind: tuple[bool, bool]) -> Layer:
        attends, has_experts = kind
        block = parts.full if attends else parts.linear
        if has_experts:
            return layer(block, around, experts=parts.experts)
        return layer(block, plain, around)

    is_tied = tied(c, False)
    return Decoder(
        layers=stack(zip(_full_layers(c, widths.layers), sparse, strict=True), make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        routing=parts.route,
    )


_ROOT = "block_sparse_moe"
_KIMI = Mixture(
    Style(), experts=f"{_ROOT}.experts", names=("w1", "w3", "w2"), router=f"{_ROOT}.gate",
    shared=f"{_ROOT}.shared_experts",
)  # fmt: skip


def _kimi_experts(c: Config, hidden: int) -> tuple[Experts, Routing]:
    """Kimi's experts; in K3 they work in a narrower space than the stream."""
    route = routing(c)
    inner = c.whole("routed_expert_hidden_size", default=0)
    if not inner:
        return mixture_experts(_KIMI, route, hidden), route
    tensors = (
        *router(route.experts, hidden, name=_KIMI.router),
        *stacked_experts(
            route.experts, inner, route.intermediate, prefix=_KIMI.experts, names=_KIMI.names
        ),
        *gated_mlp(hidden, route.shared, prefix=_KIMI.shared, role="shared_expert"),
        *replicated("other", f"{_ROOT}.routed_expert_down_proj", inner, hidden),
        *replicated("other", f"{_ROOT}.routed_expert_up_proj", hidden, inner),
    )
    if c.flag("latent_moe_use_norm"):
        tensors += norm(f"{_ROOT}.routed_expert_norm", inner)
    return Experts(tensors, route.experts, route.per_token), route


def _residual_mixing(hidden: int, *names: str) -> Tensors:
    """K3 mixes the outputs of earlier blocks into a layer's input by a learned score."""
    return tuple(
        tensor
        for name in names
        for tensor in (
            *norm(f"{name}_norm", hidden),
            *replicated("other", f"{name}_proj", 1, hidden),
        )
    )


def kimi_linear(c: Config) -> Decoder:
    """Kimi Linear and the text part of Kimi K3; their latents carry no positions."""
    widths = latent(c)
    hidden = widths.hidden
    full = latent_attention(widths)
    if c.flag("mla_use_output_gate"):
        wide = widths.heads * widths.value
        gate = column("attention", "self_attn.g_proj", wide, hidden)
        full = full._replace(tensors=full.tensors + gate)
    told = c.section("linear_attn_config") if c.has("linear_attn_config") else c
    experts, route = _kimi_experts(c, hidden)
    mixes = c.has("attn_res_block_size")
    parts = Parts(
        kimi_delta(_kda_widths(c, hidden), low_rank_gate=not told.flag("use_full_rank_gate")),
        full,
        experts,
        route,
        _residual_mixing(hidden, "self_attention_res", "mlp_res") if mixes else (),
    )
    built = _decoder(c, parts, latent_sizes(c, widths))
    if mixes:
        built = built._replace(
            outer=built.outer + _residual_mixing(hidden, "model.output_attn_res")
        )
    return built


def kimi_k3(c: Config) -> Decoder:
    """Kimi K3: Kimi Linear's drawing with a MoonViT tower."""
    built = text_part(c, "kimi_linear", ("language_model.model", "language_model.lm_head"))
    inner = c.section("vision_config")
    tower = moonvit(inner, "vision_tower", most_tokens=0)
    wide, hidden = 4 * tower.facts.hidden, built.sizes.hidden
    names = ("mm_projector.linear_1", "mm_projector.linear_2")
    more = projector(wide, wide, hidden, names=names, bias=False, shard=False) + norm(
        "mm_projector.post_norm", hidden, role="projector"
    )
    return with_tower(built, tower, more)


def bailing_hybrid(c: Config) -> Decoder:
    """Ling 3: full-rank gates, gated latent attention with positions every sixth layer."""
    widths = latent(c)
    full = latent_attention(widths, prefix="attention", out="dense")
    gate = column("attention", "attention.g_proj", widths.heads, widths.hidden)
    linear_block = kimi_delta(
        _kda_widths(c, widths.hidden),
        low_rank_decay=False,
        low_rank_gate=False,
        prefix="attention",
    )
    route = routing(c)
    experts = mixture_experts(Mixture(Style(), router_dtype="fp32"), route, widths.hidden)
    parts = Parts(linear_block, full._replace(tensors=full.tensors + gate), experts, route)
    built = _decoder(c, parts, latent_sizes(c, widths))
    return with_prediction(c, built._replace(ropes=ropes(c, widths.rope)))


def _pooled_indexer(c: Config, widths: Latent) -> Block:
    """Latent attention whose indexer scores one pooled key for several tokens."""
    scorer = indexer(c)
    if scorer is None:
        raise c.bad("index_n_heads", "a whole number from 1")
    pool = c.size("index_kpool", default=1)
    block = latent_attention(widths, scorer)
    pooled: tuple[Tensor, ...] = ()
    if pool > 1:
        at = "self_attn.indexer.index_kpool_compress"
        pooled = (
            *fixed("indexer", f"{at}_ape", pool, scorer.size),
            *linear("indexer", (Part(f"{at}_gate", scorer.size),), widths.hidden, "replicated"),
        )
    cache = block.cache._replace(index_compress=pool) if block.cache else None
    return block._replace(tensors=block.tensors + pooled, cache=cache)


def _hyper(hidden: int, streams: int) -> Tensors:
    """Hyper-connections of both branches, kept in fp32."""
    mixes = streams * (streams + 2)
    found: Tensors = ()
    for name in ("attn_hc", "ffn_hc"):
        found += fixed("other", f"{name}.fn", mixes, streams * hidden)
        found += fixed("other", f"{name}.base", mixes, 1) + fixed("other", f"{name}.scale", 3, 1)
    return tuple(tensor._replace(dtype="fp32") for tensor in found)


def glm5_next_text(c: Config) -> Decoder:
    """GLM 5.3 Flash: Kimi delta attention, sparse latent attention, hyper-connections."""
    widths = latent(c)
    route = routing(c)
    streams = c.size("hc_mult", default=4)
    parts = Parts(
        kimi_delta(_kda_widths(c, widths.hidden)),
        _pooled_indexer(c, widths),
        mixture_experts(Mixture(Style()), route, widths.hidden),
        route,
        _hyper(widths.hidden, streams),
    )
    built = _decoder(c, parts, latent_sizes(c, widths))
    one = layer(parts.full, norms(widths.hidden, *TWO_NORMS), parts.more, experts=parts.experts)
    return with_prediction(c, built, one=one)


def glm5_next(c: Config) -> Decoder:
    """GLM 5.3 Flash with its vision tower."""
    built = text_part(c, "glm5_next_text", ("model.language_model", "lm_head"))
    tower = glm_vision(c.section("vision_config"), "model.visual", GLM5, built.sizes.hidden)
    return with_tower(built, tower)


FAMILIES = {
    "kimi_linear": kimi_linear,
    "kimi_k3": kimi_k3,
    "bailing_hybrid": bailing_hybrid,
    "glm5_next_text": glm5_next_text,
    "glm5_next": glm5_next,
}
