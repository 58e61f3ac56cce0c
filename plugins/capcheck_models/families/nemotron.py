"""Nemotron-H and Nemotron 3: each layer is one of Mamba-2, attention, experts or MLP."""

from __future__ import annotations

from capcheck.architecture import Layer, Mixer

from .blocks import (
    Block,
    Experts,
    Names,
    attention,
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
    routing,
    stack,
    tied,
)
from .hybrid import mamba2_widths
from .moe import MOST_DRAFT_LAYERS
from .state import mamba2

_NO_MIXER = Block((), Mixer("none"), None)
_PATTERN = {"M": "mamba", "E": "moe", "*": "attention", "-": "mlp"}
_SPOKEN = {"linear_attention": "mamba", "full_attention": "attention"}


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
    gate = router(route.experts, hidden, name="mixer.gate")
    tensors = tuple(tensor._replace(dtype="fp32") for tensor in gate) + stacked_experts(
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
            return layer(mamba2(mamba2_widths(c, hidden), "mixer", dtype), one)
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


FAMILIES = {"nemotron_h": nemotron_h}
