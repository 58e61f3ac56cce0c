"""Gemma 4: heads that differ by layer, experts beside the feed-forward, towers."""

from __future__ import annotations

from capcheck.architecture import Audio, Layer, Rope, Vision

from .audio import gemma_conformer
from .blocks import (
    Experts,
    Heads,
    gated_mlp,
    norm,
    norms,
    replicated,
    router,
    stacked_experts,
    vector,
)
from .config import MOST_EXPERTS, Config
from .decoder import Decoder, Routing, Sizes, ends, layer, sizes, stack, tied
from .gemma import Kind, head_attention, layer_kinds, per_layer, per_layer_outer
from .multimodal import text_part
from .rope import ropes
from .style import FOUR_NORMS
from .towers import Tower, depth, side
from .vit import Encoder, blocks, fixed


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
    return tuple(table._replace(dimensions=size) for table in tables for size in (local, full))


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
    more = norms(hidden, *FOUR_NORMS) + per_layer(
        c.whole("hidden_size_per_layer_input", default=0), hidden
    )

    def make(kind: Kind) -> Layer:
        block = head_attention(
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
        layers=stack(layer_kinds(c, widths.layers, told), make),
        outer=ends(widths, is_tied) + per_layer_outer(c, widths),
        sizes=widths,
        tied=is_tied,
        ropes=_gemma4_ropes(c, local.size, full.size),
        routing=mixture[1] if mixture else None,
    )


_MOST_VIDEO_TOKENS = 32 * 70  # 32 frames of 70 tokens
_MOST_AUDIO_TOKENS = 750  # half a minute, 40 ms each


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
    facts = Vision(
        hidden, layers, width, patch, pooled, tokens,
        video_tokens=_MOST_VIDEO_TOKENS, gated=True, rotary=True,
    )  # fmt: skip
    return Tower(tensors, facts)


_NAMES = ("model.language_model", "lm_head")


def gemma4_any(c: Config) -> Decoder:
    """Gemma 4 with its towers: images, and sound where the configuration tells an encoder."""
    built = text_part(c, "gemma4_text", _NAMES)
    tower = _gemma4_tower(c.section("vision_config"), "model.vision_tower")
    hidden, facts = built.sizes.hidden, tower.facts
    more = replicated(
        "projector", "model.embed_vision.embedding_projection", hidden, tower.facts.hidden
    )
    if c.has("audio_config"):
        sound = c.section("audio_config")
        more += gemma_conformer(sound, "model.audio_tower", hidden)
        wide = sound.size("hidden_size")
        facts = facts._replace(audio=Audio(wide, 4 * wide, _MOST_AUDIO_TOKENS, 1))
    return built._replace(towers=tower.tensors + more, vision=facts)


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
    tokens = vision.size("num_soft_tokens", default=280)
    facts = Vision(hidden, 0, 0, patch, 1, tokens, video_tokens=_MOST_VIDEO_TOKENS)
    return built._replace(towers=towers, vision=facts)


FAMILIES = {
    "gemma4_text": gemma4,
    "gemma4_unified_text": gemma4,
    "gemma4": gemma4_any,
    "gemma4_unified": gemma4_unified,
}
