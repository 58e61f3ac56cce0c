"""Attention between state-space layers: Nemotron-H, Jamba, Granite 4, Falcon-H1, LFM2, MiniMax."""

from __future__ import annotations

from capcheck.architecture import Layer, Mixer

from .blocks import (
    Block,
    Experts,
    Heads,
    Names,
    Tensors,
    attention,
    gated_mlp,
    norm,
    norms,
    plain_mlp,
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
    layer_count,
    routing,
    sizes,
    stack,
    tied,
)
from .moe import MOST_DRAFT_LAYERS, Mixture, mixture_experts
from .rope import ropes
from .state import Mamba1, Mamba2, lightning, mamba1, mamba2, short_convolution
from .style import TWO_NORMS, Style

_NO_MIXER = Block((), Mixer("none"), None)
_PATTERN = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
_SPOKEN = {"linear_attention": "mamba", "full_attention": "attention"}


def _mamba2_widths(c: Config, hidden: int, wide: int = 0) -> Mamba2:
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


def _nemotron_kinds(c: Config) -> tuple[str, ...]:
    told = c.words("layers_block_type")
    if told is not None:
        kinds = tuple(_SPOKEN.get(kind, kind) for kind in told)
    else:
        pattern = c.values.get("hybrid_override_pattern")
        if not isinstance(pattern, str) or len(pattern) > MOST_LAYERS:
            raise c.bad("hybrid_override_pattern", "one of M, E, *, - a layer")
        kinds = tuple(_PATTERN.get(mark, mark) for mark in pattern)
    if not kinds or len(kinds) > MOST_LAYERS or not set(kinds) <= set(_PATTERN.values()):
        raise c.bad("hybrid_override_pattern", "mamba, moe, attention or mlp for each layer")
    return kinds


def _nemotron_experts(c: Config, hidden: int) -> tuple[Experts, Routing]:
    route = routing(c)
    inner = c.whole("moe_latent_size", default=0) or hidden
    shared = c.whole("n_shared_experts", default=0) * c.whole(
        "moe_shared_expert_intermediate_size", default=0
    )
    tensors = router(route.experts, hidden, name="mixer.gate") + stacked_experts(
        route.experts,
        inner,
        route.intermediate,
        prefix="mixer.experts",
        names=("up_proj", "down_proj"),
    )
    if shared:
        named = ("mixer.shared_experts.up_proj", "mixer.shared_experts.down_proj")
        tensors += plain_mlp(hidden, shared, names=named, role="shared_expert")
    if inner != hidden:
        tensors += replicated("other", "mixer.fc1_latent_proj", inner, hidden)
        tensors += replicated("other", "mixer.fc2_latent_proj", hidden, inner)
    return Experts(tensors, route.experts, route.per_token), route._replace(shared=shared)


def _nemotron_layers(
    c: Config, widths: Sizes, kinds: tuple[str, ...], experts: Experts | None
) -> tuple[Layer, ...]:
    hidden = widths.hidden
    one = norm("norm", hidden)
    bias = c.flag("attention_bias")

    def make(kind: str) -> Layer:
        if kind == "attention":
            names = Names(*(f"mixer.{part}_proj" for part in "qkvo"))
            block = attention(widths.attention(), names=names, bias=bias, out_bias=bias)
            return layer(block, one)
        if kind == "mamba":
            dtype = "fp32" if c.word("mamba_ssm_cache_dtype") == "float32" else ""
            return layer(mamba2(_mamba2_widths(c, hidden), "mixer", dtype), one)
        if kind == "moe":
            return layer(_NO_MIXER, one, experts=experts)
        named = ("mixer.up_proj", "mixer.down_proj")
        feed = plain_mlp(hidden, intermediate(c), names=named, bias=c.flag("mlp_bias"))
        return layer(_NO_MIXER, feed, one)

    return stack(kinds, make)


def nemotron_h(c: Config) -> Decoder:
    """Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, experts or MLP."""
    kinds = _nemotron_kinds(c)
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")
    size = c.size("head_dim", "attention_head_dim", default=max(hidden // heads, 1))
    kv_heads = c.size("num_key_value_heads", default=heads)
    widths = Sizes(
        hidden, len(kinds), heads, kv_heads, size, c.size("vocab_size"),
        c.whole("intermediate_size", default=0),
    )  # fmt: skip
    experts, route = _nemotron_experts(c, hidden) if "moe" in kinds else (None, None)
    is_tied = tied(c, False)
    built = Decoder(
        layers=_nemotron_layers(c, widths, kinds, experts),
        outer=ends(widths, is_tied, root="backbone", embed="embeddings", last="norm_f"),
        sizes=widths,
        tied=is_tied,
        prefix="backbone.layers",
        routing=route,
    )
    return _nemotron_prediction(c, built, experts) if experts else built


def _nemotron_prediction(c: Config, built: Decoder, experts: Experts) -> Decoder:
    """Nemotron 3's prediction block: an attention and an expert layer, three norms."""
    if not c.whole("num_nextn_predict_layers", default=0, most=MOST_DRAFT_LAYERS):
        return built
    hidden = built.sizes.hidden
    around = replicated("draft", "mtp.layers.0.eh_proj", hidden, 2 * hidden) + norms(
        hidden, "mtp.layers.0.enorm", "mtp.layers.0.hnorm", "mtp.layers.1.final_layernorm"
    )
    pair = _nemotron_layers(c, built.sizes, ("attention", "moe"), experts)
    return built._replace(draft=pair, draft_outer=around)


def jamba(c: Config) -> Decoder:
    """Jamba: one attention layer in eight, experts in every other layer."""
    widths = sizes(c)
    hidden, width = widths.hidden, intermediate(c)
    route = routing(c, width=("intermediate_size",))
    mixer = Mamba1(
        hidden,
        hidden * c.size("mamba_expand", default=2),
        c.size("mamba_d_state", default=16),
        c.size("mamba_d_conv", default=4),
        c.size("mamba_dt_rank", default=-(-hidden // 16)),
        c.flag("mamba_proj_bias"),
        c.flag("mamba_conv_bias", default=True),
    )
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
        if sparse and route.experts > 1:
            return layer(block, around, experts=experts)
        return layer(block, around, plain)

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
            block = mamba2(_mamba2_widths(c, hidden, wide), "mamba")
        else:
            block = attention(widths.attention(), bias=bias, out_bias=bias)
        return layer(block, feed, around, experts=experts)

    is_tied = tied(c, False)
    nope = c.word("position_embedding_type", default="rope") != "rope"
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=() if nope else ropes(c, widths.head_size),
        routing=route,
    )


def falcon_h1(c: Config) -> Decoder:
    """Falcon-H1: Mamba-2 and attention side by side in every layer."""
    widths = sizes(c)
    hidden = widths.hidden
    wide = c.size("mamba_d_ssm", default=hidden * c.size("mamba_expand", default=2))
    state = _mamba2_widths(c, hidden, wide)
    state = state._replace(
        bias=c.flag("mamba_proj_bias"), normed=c.flag("mamba_rms_norm", default=True)
    )
    bias = c.flag("attention_bias")
    attends = attention(widths.attention(), bias=bias, out_bias=bias)
    mixes = mamba2(state, "mamba")
    feed = gated_mlp(
        hidden, intermediate(c), prefix="feed_forward", bias=c.flag("mlp_bias")
    )
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
        route.experts, hidden, route.intermediate, prefix=f"{root}.experts", names=("w1", "w3", "w2")
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
    "nemotron_h": nemotron_h,
    "jamba": jamba,
    "granitemoehybrid": granite_hybrid,
    "falcon_h1": falcon_h1,
    "lfm2": lfm2,
    "lfm2_moe": lfm2_moe,
    "minimax": minimax,
    "minimax_m1": minimax,
    "minimax_text_01": minimax,
}
