"""Mamba with attention: Jamba, Granite 4 and Falcon-H1."""

from __future__ import annotations

from capcheck.architecture import Layer

from .blocks import (
    Experts,
    Tensors,
    attention,
    gated_mlp,
    norms,
    router,
    stacked_experts,
)
from .config import Config
from .decoder import (
    Decoder,
    Routing,
    ends,
    feeding_layer,
    intermediate,
    layer,
    routing,
    sizes,
    stack,
    tied,
)
from .rope import ropes
from .state import Mamba1, Mamba2, mamba1, mamba2
from .style import TWO_NORMS


def mamba2_widths(c: Config, hidden: int, wide: int = 0) -> Mamba2:
    """Read a Mamba-2 mixer under either family's names; `wide` is the width when derived."""
    heads = c.size("mamba_num_heads", "mamba_n_heads")
    size = c.optional("mamba_head_dim", "mamba_d_head", least=1)
    if size is None:
        size = c.multiple(wide, heads, "mamba_n_heads")
    return Mamba2(
        hidden=hidden,
        heads=heads,
        size=size,
        groups=c.size("n_groups", "mamba_n_groups", default=1),
        state=c.size("ssm_state_size", "mamba_d_state"),
        kernel=c.size("conv_kernel", "mamba_d_conv", default=4),
        bias=c.flag("use_bias", "mamba_proj_bias"),
        conv_bias=c.flag("use_conv_bias", "mamba_conv_bias", default=True),
    )


def _mamba1_widths(c: Config, hidden: int) -> Mamba1:
    return Mamba1(
        hidden,
        hidden * c.size("mamba_expand", default=2),
        c.size("mamba_d_state", default=16),
        c.size("mamba_d_conv", default=4),
        c.size("mamba_dt_rank", default=-(-hidden // 16)),
        c.flag("mamba_proj_bias"),
        c.flag("mamba_conv_bias", default=True),
    )


def jamba(c: Config) -> Decoder:
    """Jamba: one attention layer in eight, experts in every other layer."""
    widths = sizes(c)
    hidden, width = widths.hidden, intermediate(c)
    route = routing(c, width=("intermediate_size",))
    mixer = _mamba1_widths(c, hidden)
    around = norms(hidden, "input_layernorm", "pre_ff_layernorm")
    plain = gated_mlp(hidden, width, prefix="feed_forward")
    tensors = router(route.experts, hidden, name="feed_forward.router") + stacked_experts(
        route.experts, hidden, width, prefix="feed_forward.experts"
    )
    experts = Experts(tensors, route.experts, route.per_token)

    def every(name: str, period: int, offset: int) -> list[bool]:
        step = c.whole(f"{name}_layer_period", default=period, least=1)
        first = c.whole(f"{name}_layer_offset", default=offset)
        return [index % step == first for index in range(widths.layers)]

    def make(kind: tuple[bool, bool]) -> Layer:
        attends, sparse = kind
        block = attention(widths.attention()) if attends else mamba1(mixer, "mamba")
        return feeding_layer(block, around, experts, plain, sparse and route.experts > 1)

    is_tied = tied(c, False)
    return Decoder(
        layers=stack(zip(every("attn", 8, 4), every("expert", 2, 1), strict=True), make),
        outer=ends(widths, is_tied, last="final_layernorm"),
        sizes=widths,
        tied=is_tied,
        routing=route,
    )


def _granite_feed(c: Config, hidden: int) -> tuple[Tensors, Experts | None, Routing | None]:
    """The shared feed-forward of every layer, and the experts beside it where there are any."""
    shared = c.size("shared_intermediate_size")
    count = c.whole("num_local_experts", default=0)
    names = ("input_linear", "input_linear", "output_linear")
    feed = gated_mlp(
        hidden, shared, prefix="shared_mlp", names=names, role="shared_expert" if count else "mlp"
    )
    if not count:
        return feed, None, None
    route = routing(c, width=("intermediate_size",))
    root = "block_sparse_moe"
    tensors = router(route.experts, hidden, name=f"{root}.router.layer") + stacked_experts(
        route.experts, hidden, route.intermediate, prefix=root, names=names
    )
    return feed, Experts(tensors, route.experts, route.per_token), route._replace(shared=shared)


def granite_hybrid(c: Config) -> Decoder:
    """Granite 4: Mamba-2 and a few attention layers, experts beside a shared feed-forward."""
    widths = sizes(c)
    hidden = widths.hidden
    kinds = c.per_layer("layer_types", widths.layers)
    if kinds is None:
        raise c.bad("layer_types", f"mamba or attention for each of {widths.layers} layers")
    feed, experts, route = _granite_feed(c, hidden)
    around = norms(hidden, *TWO_NORMS)
    bias = c.flag("attention_bias")

    def make(kind: str) -> Layer:
        if kind == "mamba":
            wide = hidden * c.size("mamba_expand", default=2)
            block = mamba2(mamba2_widths(c, hidden, wide), "mamba")
        else:
            block = attention(widths.attention(), bias=bias, out_bias=bias)
        return layer(block, feed, around, experts=experts)

    is_tied = tied(c, False)
    rotates = c.word("position_embedding_type") == "rope"
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size) if rotates else (),
        routing=route,
    )


def falcon_h1(c: Config) -> Decoder:
    """Falcon-H1: Mamba-2 and attention side by side in every layer."""
    widths = sizes(c)
    hidden = widths.hidden
    wide = c.size("mamba_d_ssm", default=hidden * c.size("mamba_expand", default=2))
    state = mamba2_widths(c, hidden, wide)
    state = state._replace(
        bias=c.flag("mamba_proj_bias"), normed=c.flag("mamba_rms_norm", default=True)
    )
    bias = c.flag("attention_bias")
    attends = attention(widths.attention(), bias=bias, out_bias=bias)
    mixes = mamba2(state, "mamba")
    feed = gated_mlp(hidden, intermediate(c), prefix="feed_forward", bias=c.flag("mlp_bias"))
    around = norms(hidden, "input_layernorm", "pre_ff_layernorm")
    # One decoder layer keeps both; two layers tell that, the feed-forward in the second.
    pair = (layer(mixes, ()), layer(attends, feed, around))
    is_tied = tied(c, False)
    return Decoder(
        layers=pair * widths.layers,
        outer=ends(widths, is_tied, last="final_layernorm"),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
    )


FAMILIES = {
    "jamba": jamba,
    "granitemoehybrid": granite_hybrid,
    "falcon_h1": falcon_h1,
}
