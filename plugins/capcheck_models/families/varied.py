"""Experts below attention that differs from layer to layer: Llama 4, MiMo V2, Laguna, Step 3.5."""

from __future__ import annotations

from capcheck.architecture import Layer

from .blocks import Block, Experts, Heads, attention, gated_mlp, norms, router, stacked_experts
from .config import Config
from .decoder import (
    Decoder,
    Routing,
    Sizes,
    ends,
    feeding_layer,
    layer,
    routing,
    sizes,
    stack,
    tied,
)
from .moe import (
    Mixture,
    after_dense,
    listed,
    listed_or_after_dense,
    mixture_experts,
    mixture_routing,
    sparse_decoder,
    with_prediction,
)
from .rope import ropes
from .style import (
    ATTENTION_BIAS,
    TWO_NORMS,
    Style,
    layer_types,
    style_attention,
    style_ends,
    style_mlp,
)

_MLP = "feed_forward"


def _llama4_experts(hidden: int, route: Routing) -> Experts:
    prefix = f"{_MLP}.experts"
    tensors = (
        *router(route.experts, hidden, name=f"{_MLP}.router"),
        *stacked_experts(
            route.experts,
            hidden,
            route.intermediate,
            prefix=prefix,
            names=("gate_up_proj", "gate_up_proj", "down_proj"),
        ),
        *gated_mlp(
            hidden, route.intermediate, prefix=f"{_MLP}.shared_expert", role="shared_expert"
        ),
    )
    return Experts(tensors, route.experts, route.per_token)


def _llama4_kinds(c: Config, layers: int) -> list[tuple[bool, bool]]:
    """For each layer: whether it attends in chunks, and whether it has experts."""
    rotated = c.wholes("no_rope_layers", most=1)
    every = c.whole("no_rope_layer_interval", default=4, least=1)
    if not rotated:
        rotated = tuple(int((index + 1) % every != 0) for index in range(layers))
    if len(rotated) < layers:
        raise c.bad("no_rope_layers", f"0 or 1 for each of {layers} layers")
    told = c.wholes("moe_layers")
    step = c.whole("interleave_moe_layer_step", default=1, least=1)
    sparse = set(range(step - 1, layers, step) if told is None else told)
    return [(bool(rotated[index]), index in sparse) for index in range(layers)]


def llama4(c: Config) -> Decoder:
    """Llama 4: three layers in chunks, then a full one; experts in every or every other layer."""
    widths = sizes(c)
    route = routing(c, width=("intermediate_size",))
    chunk = c.whole("attention_chunk_size", default=0)
    experts = _llama4_experts(widths.hidden, route)
    plain = gated_mlp(
        widths.hidden, c.size("intermediate_size_mlp", "intermediate_size"), prefix=_MLP
    )
    around = norms(widths.hidden, *TWO_NORMS)
    bias = c.flag("attention_bias")

    def make(kind: tuple[bool, bool]) -> Layer:
        local, sparse = kind
        block = attention(widths.attention(), bias=bias, out_bias=bias, chunk=chunk if local else 0)
        return feeding_layer(block, around, experts, plain, sparse)

    is_tied = tied(c, False)
    return Decoder(
        layers=stack(_llama4_kinds(c, widths.layers), make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
        routing=route._replace(shared=route.intermediate),
    )


def laguna(c: Config) -> Decoder:
    """Laguna: more query heads in sliding layers, a gate for every head."""
    per_head = c.values.get("gating") in (None, True, "per-head")
    style = Style(
        ATTENTION_BIAS,
        ATTENTION_BIAS,
        qk_norm="head",
        head_gate="self_attn.g_proj" if per_head else "",
        full_gate="" if per_head else "self_attn.g_proj",
    )
    mixture = Mixture(
        style,
        listed_or_after_dense,
        shared="mlp.shared_expert",
        correction="mlp.experts.e_score_correction_bias",
    )
    told = c.wholes("num_attention_heads_per_layer", most=10_000)

    def heads_of(config: Config, widths: Sizes, index: int, _window: int) -> Heads:
        if told is None:
            return widths.attention()
        if index >= len(told) or not told[index]:
            raise config.bad("num_attention_heads_per_layer", "one count of heads a layer")
        return widths.attention()._replace(heads=told[index])

    return sparse_decoder(c, mixture, heads_of)


def _mimo_types(c: Config, layers: int) -> tuple[bool, ...]:
    """Which layers slide: `hybrid_layer_pattern` marks them with 1."""
    marks = c.wholes("hybrid_layer_pattern", most=1)
    if marks is None:
        return tuple(kind == "sliding_attention" for kind in layer_types(c, layers))
    if len(marks) < layers:
        raise c.bad("hybrid_layer_pattern", f"0 or 1 for each of {layers} layers")
    return tuple(bool(mark) for mark in marks[:layers])


def _mimo_blocks(c: Config, widths: Sizes, window: int) -> tuple[Block, Block]:
    """Full and sliding attention, each with its own heads, head sizes and sinks."""
    full = widths.attention()._replace(value=c.whole("v_head_dim", default=0))
    local = Heads(
        widths.hidden,
        c.size("swa_num_attention_heads", default=full.heads),
        c.size("swa_num_key_value_heads", default=full.kv_heads),
        c.size("swa_head_dim", default=full.size),
        c.whole("swa_v_head_dim", "v_head_dim", default=0),
    )

    def style(key: str) -> Style:
        sinks = "self_attn.attention_sink_bias" if c.flag(key) else ""
        return Style(ATTENTION_BIAS, sinks=sinks)

    return (
        style_attention(c, style("add_full_attention_sink_bias"), full, 0),
        style_attention(c, style("add_swa_attention_sink_bias"), local, window),
    )


def mimo_v2(c: Config) -> Decoder:
    """MiMo V2: sliding layers with KV heads, head sizes and sinks of their own."""
    widths = sizes(c)
    mixture = Mixture(Style(ATTENTION_BIAS), listed)
    route = mixture_routing(c, mixture)
    window = c.size("sliding_window", "sliding_window_size")
    full, local = _mimo_blocks(c, widths, window)
    experts = mixture_experts(mixture, route, widths.hidden)
    plain = style_mlp(c, mixture.style, widths.hidden, widths.intermediate)
    around = norms(widths.hidden, *TWO_NORMS)

    def make(kind: tuple[bool, bool]) -> Layer:
        slides, sparse = kind
        return feeding_layer(local if slides else full, around, experts, plain, sparse)

    kinds = zip(_mimo_types(c, widths.layers), listed(c, widths.layers), strict=True)
    tables = ropes(c, widths.head_size)
    if c.has("swa_rope_theta") and len(tables) == 1:
        tables += (tables[0]._replace(base=c.number("swa_rope_theta", 10000.0)),)
    built = Decoder(
        layers=stack(kinds, make),
        outer=style_ends(c, mixture.style, widths),
        sizes=widths,
        tied=tied(c, False),
        ropes=tables,
        routing=route,
    )
    # The prediction layers slide and are dense.
    return with_prediction(c, built, one=layer(local, plain, around))


def _step_sparse(c: Config, layers: int) -> tuple[bool, ...]:
    """Experts where `moe_layers_enum` ("3,4,5") says so, or as in other families."""
    told = c.values.get("moe_layers_enum")
    if not isinstance(told, str):
        default = after_dense("first_k_dense_replace", default=3)
        return listed(c, layers) if c.has("mlp_layer_types") else default(c, layers)
    marked = {word.strip() for word in told[:20_000].split(",")}
    return tuple(str(index) in marked for index in range(layers))


def step3p5(c: Config) -> Decoder:
    """Step 3.5 and 3.7: more query heads in sliding layers, a gate a head, three MTP layers."""
    groups = c.optional("num_attention_groups", least=1)
    style = Style(
        ATTENTION_BIAS,
        qk_norm="head",
        head_gate="self_attn.g_proj" if c.flag("use_head_wise_attn_gate", default=True) else "",
    )
    mixture = Mixture(
        style,
        _step_sparse,
        experts="moe.experts",
        router="moe.gate",
        router_dtype="fp32",
        shared="share_expert",
    )
    other = c.section("attention_other_setting") if c.has("attention_other_setting") else None
    local = other.optional("num_attention_heads", least=1) if other else None
    local = c.optional("num_sliding_attention_heads", least=1) or local

    def heads_of(_c: Config, widths: Sizes, _index: int, window: int) -> Heads:
        heads = widths.attention()._replace(kv_heads=groups or widths.kv_heads)
        return heads._replace(heads=local) if window and local else heads

    built = sparse_decoder(c, mixture, heads_of)
    if groups:
        built = built._replace(sizes=built.sizes._replace(kv_heads=groups))
    heads = built.sizes.attention()._replace(heads=local or built.sizes.heads)
    window = c.whole("sliding_window", default=0)
    one = layer(
        style_attention(c, style, heads, window),
        style_mlp(c, style, heads.hidden, c.size("intermediate_size")),
        norms(heads.hidden, *TWO_NORMS),
    )
    return with_prediction(c, built, one=one, own_head=True)


FAMILIES = {
    "llama4_text": llama4,
    "laguna": laguna,
    "mimo_v2_flash": mimo_v2,
    "mimo_v2": mimo_v2,
    "step3p5": step3p5,
}
