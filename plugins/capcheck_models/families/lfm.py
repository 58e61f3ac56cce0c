"""Layers without a growing cache: LFM2's convolutions and MiniMax's lightning attention."""

from __future__ import annotations

from capcheck.architecture import Layer

from .blocks import (
    Experts,
    Heads,
    Names,
    attention,
    gated_mlp,
    norms,
    router,
    stacked_experts,
)
from .config import Config
from .decoder import (
    Decoder,
    ends,
    intermediate,
    layer,
    layer_count,
    routing,
    sizes,
    stack,
    tied,
)
from .moe import Mixture, mixture_experts
from .rope import ropes
from .state import lightning, short_convolution
from .style import TWO_NORMS, Style


def _lfm2_width(c: Config) -> int:
    """LFM2 tells the width before the usual two thirds and rounding."""
    width = c.size("block_ff_dim", "intermediate_size")
    if not c.flag("block_auto_adjust_ff_dim", default=True):
        return width
    width = int(c.number("block_ffn_dim_multiplier", 1.0) * (2 * width // 3))
    step = c.size("block_multiple_of", default=256)
    return step * -(-width // step)


def _lfm2(c: Config, dense_width: int, mixture: Mixture | None) -> Decoder:
    widths = sizes(c)
    hidden = widths.hidden
    kinds = c.per_layer("layer_types", widths.layers)
    if kinds is None:
        raise c.bad("layer_types", f"conv or full_attention for each of {widths.layers} layers")
    first = c.whole("num_dense_layers", default=0) if mixture else widths.layers
    route = routing(c) if mixture else None
    experts = mixture_experts(mixture, route, hidden) if mixture and route else None
    names = Names(
        o="self_attn.out_proj", q_norm="self_attn.q_layernorm", k_norm="self_attn.k_layernorm"
    )
    around = norms(hidden, "operator_norm", "ffn_norm")
    plain = gated_mlp(hidden, dense_width, prefix="feed_forward", names=("w1", "w3", "w2"))

    def make(kind: tuple[str, bool]) -> Layer:
        mixes, sparse = kind
        if mixes == "conv":
            kernel = c.size("conv_L_cache", default=3)
            block = short_convolution(hidden, kernel, bias=c.flag("conv_bias"))
        else:
            block = attention(widths.attention(), names=names, qk_norm="head")
        if sparse:
            return layer(block, around, experts=experts)
        return layer(block, plain, around)

    is_tied = tied(c, True)
    return Decoder(
        layers=stack(((kind, index >= first) for index, kind in enumerate(kinds)), make),
        outer=ends(widths, is_tied, last="embedding_norm"),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
        routing=route,
    )


def lfm2(c: Config) -> Decoder:
    """LFM2: gated short convolutions with a few attention layers."""
    return _lfm2(c, _lfm2_width(c), None)


def lfm2_moe(c: Config) -> Decoder:
    """LFM2 with experts after the first dense layers."""
    mixture = Mixture(
        Style(),
        experts="feed_forward.experts",
        names=("w1", "w3", "w2"),
        router="feed_forward.gate",
        shared="",
    )
    return _lfm2(c, intermediate(c), mixture)


def minimax(c: Config) -> Decoder:
    """MiniMax-01 and M1: lightning attention, softmax in every eighth layer, experts."""
    widths = sizes(c)
    hidden = widths.hidden
    marks = c.wholes("attn_type_list", most=1)
    kinds = c.per_layer("layer_types", widths.layers)
    if kinds is None:
        if marks is None or len(marks) < widths.layers:
            raise c.bad("attn_type_list", f"0 or 1 for each of {widths.layers} layers")
        kinds = tuple("full_attention" if mark else "linear_attention" for mark in marks)
    route = routing(c, width=("intermediate_size",))._replace(shared=0)
    root = "block_sparse_moe"
    tensors = router(route.experts, hidden, name=f"{root}.gate") + stacked_experts(
        route.experts,
        hidden,
        route.intermediate,
        prefix=f"{root}.experts",
        names=("w1", "w3", "w2"),
    )
    experts = Experts(tensors, route.experts, route.per_token)
    around = norms(hidden, *TWO_NORMS)

    def make(kind: str) -> Layer:
        if kind == "linear_attention":
            block = lightning(hidden, widths.heads, widths.head_size)
        else:
            block = attention(Heads(hidden, widths.heads, widths.kv_heads, widths.head_size))
        return layer(block, around, experts=experts)

    is_tied = tied(c, False)
    return Decoder(
        layers=stack(kinds[: layer_count(c)], make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, c.whole("rotary_dim", default=widths.head_size)),
        routing=route,
    )


FAMILIES = {
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "minimax": minimax,
    "minimax_m1": minimax,
    "minimax_text_01": minimax,
}
