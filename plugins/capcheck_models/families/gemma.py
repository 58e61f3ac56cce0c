"""Gemma 3n and 4: KV shared between layers, embeddings per layer, heads that differ by layer."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Layer, Part, Rope, Vision

from .audio import gemma_conformer
from .blocks import (
    Block,
    Experts,
    Heads,
    Tensors,
    attention_cache,
    column,
    gated_mlp,
    linear,
    norm,
    norms,
    replicated,
    router,
    row,
    stacked_experts,
    vector,
)
from .config import MOST_EXPERTS, Config
from .decoder import Decoder, Routing, Sizes, embedding, ends, layer, sizes, stack, tied
from .multimodal import text_part
from .rope import ropes
from .style import FOUR_NORMS, layer_types
from .towers import Tower, depth, side
from .vit import Encoder, blocks, fixed


class Kind(NamedTuple):
    """What tells one layer of these families from the next."""

    full: bool  # attends to everything
    shared: bool  # reads the keys and values of an earlier layer
    width: int  # of its feed-forward


def _kinds(c: Config, layers: int, widths: tuple[int, ...]) -> list[Kind]:
    types = layer_types(c, layers, 5)
    first_shared = layers - c.whole("num_kv_shared_layers", default=0)
    return [
        Kind(types[index] == "full_attention", index >= first_shared > 0, widths[index])
        for index in range(layers)
    ]


def _attention(heads: Heads, *, shared: bool, window: int, one_kv: bool, bias: bool) -> Block:
    """Attention with a norm per head; `one_kv`: keys serve as values too."""
    parts = [Part("self_attn.q_proj", heads.heads * heads.size)]
    if not shared:
        parts.append(Part("self_attn.k_proj", heads.kv_heads * heads.size, heads.kv_heads))
    if not shared and not one_kv:
        parts.append(Part("self_attn.v_proj", heads.kv_heads * heads.size, heads.kv_heads))
    mixer, cache = attention_cache(heads, window, 0)
    wide = heads.heads * heads.size
    tensors = (
        *linear("attention", tuple(parts), heads.hidden, "column", bias=bias),
        *row("attention", "self_attn.o_proj", heads.hidden, wide, bias=bias),
        *norm("self_attn.q_norm", heads.size),
    )
    if not shared:
        tensors += norm("self_attn.k_norm", heads.size)
    return Block(tensors, mixer, None if shared else cache)


def _per_layer(width: int, hidden: int) -> Tensors:
    """A layer's own embedding of the token, gated into the stream."""
    if not width:
        return ()
    return (
        *replicated("mlp", "per_layer_input_gate", width, hidden),
        *replicated("mlp", "per_layer_projection", hidden, width),
        *norm("post_per_layer_input_norm", hidden),
    )


def _per_layer_outer(c: Config, widths: Sizes) -> Tensors:
    width = c.whole("hidden_size_per_layer_input", default=0)
    if not width:
        return ()
    wide = width * widths.layers
    vocabulary = c.size("vocab_size_per_layer_input", default=widths.vocabulary)
    return (
        *embedding(vocabulary, wide, "model.embed_tokens_per_layer"),
        *column("mlp", "model.per_layer_model_projection", wide, widths.hidden),
        *norm("model.per_layer_projection_norm", width),
    )


def _gemma4_experts(c: Config, hidden: int) -> tuple[Experts, Routing] | None:
    if not c.flag("enable_moe_block"):
        return None
    count = c.whole("num_experts", least=1, most=MOST_EXPERTS)
    per_token = c.whole("top_k_experts", "num_experts_per_tok", least=1, most=count)
    width = c.size("moe_intermediate_size")
    tensors = (
        *router(count, hidden, name="router.proj"),
        *vector("router", "router.scale", hidden),
        *vector("router", "router.per_expert_scale", count),
        *stacked_experts(count, hidden, width, prefix="experts"),
        *norms(
            hidden,
            "post_feedforward_layernorm_1",
            "post_feedforward_layernorm_2",
            "pre_feedforward_layernorm_2",
        ),
    )
    return Experts(tensors, count, per_token), Routing(count, per_token, width, 0)


def _gemma4_heads(c: Config, widths: Sizes) -> tuple[Heads, Heads]:
    """The shape of sliding and of full layers."""
    local = widths.attention()
    return local, local._replace(
        size=c.size("global_head_dim", default=local.size),
        kv_heads=c.size("num_global_key_value_heads", default=local.kv_heads),
    )


def _gemma4_ropes(c: Config, local: int, full: int) -> tuple[Rope, ...]:
    """One table a kind of layer; the full layers' covers whole heads though few are rotated."""
    tables = ropes(c, local)[:1]
    return tables + tuple(table._replace(dimensions=full) for table in tables)


def gemma4(c: Config) -> Decoder:
    """The text part of Gemma 4."""
    widths = sizes(c)
    hidden, width = widths.hidden, c.size("intermediate_size")
    local, full = _gemma4_heads(c, widths)
    window = c.whole("sliding_window", default=0)
    one_kv, bias = c.flag("attention_k_eq_v"), c.flag("attention_bias")
    mixture = _gemma4_experts(c, hidden)
    doubled = 2 if c.flag("use_double_wide_mlp") else 1
    first_shared = widths.layers - c.whole("num_kv_shared_layers", default=0)
    told = tuple(
        width * (doubled if index >= first_shared > 0 else 1) for index in range(widths.layers)
    )
    more = norms(hidden, *FOUR_NORMS) + _per_layer(
        c.whole("hidden_size_per_layer_input", default=0), hidden
    )

    def make(kind: Kind) -> Layer:
        block = _attention(
            full if kind.full else local,
            shared=kind.shared,
            window=0 if kind.full else window,
            one_kv=one_kv and kind.full,
            bias=bias,
        )
        feed = gated_mlp(hidden, kind.width)
        return layer(block, feed, more, experts=mixture[0] if mixture else None)

    is_tied = tied(c, True)
    return Decoder(
        layers=stack(_kinds(c, widths.layers, told), make),
        outer=ends(widths, is_tied) + _per_layer_outer(c, widths),
        sizes=widths,
        tied=is_tied,
        ropes=_gemma4_ropes(c, local.size, full.size),
        routing=mixture[1] if mixture else None,
    )


def _altup(c: Config, hidden: int) -> Tensors:
    """Alternating updates: predictions and corrections over a few parallel streams."""
    streams = c.size("altup_num_inputs", default=4)
    rank = c.size("laurel_rank", default=64)
    return (
        *vector("other", "altup.correct_output_scale", hidden),
        *replicated("other", "altup.correction_coefs", streams, streams),
        *replicated("other", "altup.prediction_coefs", streams * streams, streams),
        *replicated("router", "altup.modality_router", streams, hidden),
        *norm("altup.router_norm", hidden),
        *column("other", "laurel.linear_left", rank, hidden),
        *row("other", "laurel.linear_right", hidden, rank),
        *norm("laurel.post_laurel_norm", hidden),
    )


def _gemma3n_widths(c: Config, layers: int) -> tuple[int, ...]:
    if not isinstance(c.values.get("intermediate_size"), (list, tuple)):
        return (c.size("intermediate_size"),) * layers
    told = c.wholes("intermediate_size")
    if told is None or len(told) < layers or 0 in told:
        raise c.bad("intermediate_size", f"a width, or one for each of {layers} layers")
    return told[:layers]


def gemma3n(c: Config) -> Decoder:
    """The text part of Gemma 3n."""
    scalar = {"intermediate_size": 0} if isinstance(c.values.get("intermediate_size"), list) else {}
    widths = sizes(c.with_values(scalar))
    hidden = widths.hidden
    told = _gemma3n_widths(c, widths.layers)
    window = c.whole("sliding_window", default=512)
    more = (
        norms(hidden, *FOUR_NORMS)
        + _altup(c, hidden)
        + _per_layer(c.size("hidden_size_per_layer_input", default=256), hidden)
    )

    def make(kind: Kind) -> Layer:
        block = _attention(
            widths.attention(),
            shared=kind.shared,
            window=0 if kind.full else window,
            one_kv=False,
            bias=False,
        )
        return layer(block, gated_mlp(hidden, kind.width), more)

    is_tied = tied(c, True)
    streams = c.size("altup_num_inputs", default=4)
    outer = ends(widths, is_tied) + _per_layer_outer(
        c.with_values({"hidden_size_per_layer_input": c.size("hidden_size_per_layer_input", default=256)}),
        widths,
    )
    for name in ("altup_projections", "altup_unembed_projections"):
        for index in range(streams - 1):
            outer += column("other", f"model.{name}.{index}", hidden, hidden)
    return Decoder(
        layers=stack(_kinds(c, widths.layers, told), make),
        outer=outer,
        sizes=widths._replace(intermediate=max(told)),
        tied=is_tied,
        ropes=ropes(c, widths.head_size) * 2,  # sliding and full layers turn at other speeds
    )


def _gemma4_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch = side(c, "patch_size")
    positions = c.size("position_embedding_size")
    head_size = c.size("head_dim")
    tensors = (
        *fixed("vision", f"{root}.patch_embedder.position_embedding_table", 2 * positions, hidden),
        *fixed("vision", f"{root}.patch_embedder.input_proj", hidden, 3 * patch * patch),
        *blocks(
            Encoder(
                f"{root}.encoder.layers",
                layers,
                hidden,
                width,
                qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                out="self_attn.o_proj",
                mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
                norms=FOUR_NORMS,
                qkv_bias=False,
                out_bias=False,
                mlp_bias=False,
                norm_bias=False,
                qk_norm=("self_attn.q_norm", "self_attn.k_norm"),
                qk_norm_size=head_size,
            )
        ),
    )
    pooled = c.size("pooling_kernel_size", default=3)
    tokens = c.size("default_output_length", default=280)
    return Tower(tensors, Vision(hidden, layers, width, patch, pooled, tokens))


_NAMES = ("model.language_model", "lm_head")


def gemma4_any(c: Config) -> Decoder:
    """Gemma 4 with its towers: images, and sound where the configuration tells an encoder."""
    built = text_part(c, "gemma4_text", _NAMES)
    tower = _gemma4_tower(c.section("vision_config"), "model.vision_tower")
    hidden = built.sizes.hidden
    more = replicated(
        "projector", "model.embed_vision.embedding_projection", hidden, tower.facts.hidden
    )
    if c.has("audio_config"):
        more += gemma_conformer(c.section("audio_config"), "model.audio_tower", hidden)
    return built._replace(towers=tower.tensors + more, vision=tower.facts)


def gemma4_unified(c: Config) -> Decoder:
    """Gemma 4 without towers: patches of pixels and of sound are projected directly."""
    built = text_part(c, "gemma4_text", _NAMES)
    hidden = built.sizes.hidden
    vision, audio = c.section("vision_config"), c.section("audio_config")
    patch = vision.size("patch_size") * vision.size("pooling_kernel_size", default=3)
    pixels = 3 * patch * patch
    positions = vision.size("mm_posemb_size")
    root = "model.embed_vision"
    towers = (
        *fixed("vision", f"{root}.pos_embedding", 2 * positions, hidden),
        *norm(f"{root}.patch_ln1", pixels, bias=True, role="vision"),
        *replicated("vision", f"{root}.patch_dense", hidden, pixels, bias=True),
        *norm(f"{root}.patch_ln2", hidden, bias=True, role="vision"),
        *norm(f"{root}.pos_norm", hidden, bias=True, role="vision"),
        *replicated(
            "projector", f"{root}.multimodal_embedder.embedding_projection", hidden, hidden
        ),
        *replicated(
            "projector",
            "model.embed_audio.embedding_projection",
            hidden,
            audio.size("audio_embed_dim"),
        ),
    )
    return built._replace(towers=towers, vision=Vision(hidden, 0, 0, patch, 1, 0))


FAMILIES = {
    "gemma3n_text": gemma3n,
    "gemma4_text": gemma4,
    "gemma4_unified_text": gemma4,
    "gemma4": gemma4_any,
    "gemma4_unified": gemma4_unified,
}
