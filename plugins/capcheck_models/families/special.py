"""Multimodal models with a tower of their own: Llama 4, Step 3.7, ERNIE 4.5 VL, Muse Glimmer."""

from __future__ import annotations

from capcheck.architecture import Layer, Vision

from .blocks import (
    Experts,
    Tensors,
    attention,
    column,
    gated_mlp,
    norm,
    norms,
    replicated,
    row,
    vector,
)
from .config import MOST_BLOCKS, Config
from .decoder import Decoder, ends, intermediate, layer, routing, sizes, stack, tied
from .moe import Mixture, mixture_experts
from .multimodal import text_part, with_tower
from .rope import ropes
from .style import TWO_NORMS, Style
from .towers import Tower, depth, side
from .vit import Encoder, blocks, fixed, patches

_NESTED = ("language_model.model", "language_model.lm_head")
_INNER = ("model.language_model", "lm_head")
_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


def _llama4_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    grid = (image // patch) ** 2
    inner, out = c.size("projector_input_dim"), c.size("projector_output_dim")
    tensors = (
        *vector("vision", f"{root}.class_embedding", hidden),
        *fixed("vision", f"{root}.positional_embedding_vlm", grid + 1, hidden),
        *patches(f"{root}.patch_embedding.linear", hidden, patch, bias=False),
        *norm(f"{root}.layernorm_pre", hidden, bias=True, role="vision"),
        *norm(f"{root}.layernorm_post", hidden, bias=True, role="vision"),
        *blocks(
            Encoder(
                f"{root}.model.layers",
                layers,
                hidden,
                width,
                qkv=_QKV,
                out="self_attn.o_proj",
                norms=TWO_NORMS,
            )
        ),
        *column("projector", f"{root}.vision_adapter.mlp.fc1", inner, width),
        *row("projector", f"{root}.vision_adapter.mlp.fc2", out, inner),
    )
    # Four patches become one token; an image is up to sixteen tiles and a small copy.
    return Tower(tensors, Vision(hidden, layers, width, patch, 2, 17 * grid // 4, rotary=True))


def llama4(c: Config) -> Decoder:
    """Llama 4 with its tower."""
    built = text_part(c, "llama4_text", _NESTED)
    inner = c.section("vision_config")
    tower = _llama4_tower(inner, "vision_model")
    out = inner.size("vision_output_dim", "projector_output_dim")
    more = replicated("projector", "multi_modal_projector.linear_1", built.sizes.hidden, out)
    return with_tower(built, tower, more)


def _step_tower(c: Config, root: str) -> Tower:
    hidden, width = c.size("width", "hidden_size"), c.size("intermediate_size")
    layers = c.whole("layers", "num_hidden_layers", least=1, most=MOST_BLOCKS)
    patch, image = side(c, "patch_size"), side(c, "image_size")
    tensors = (
        *patches(f"{root}.conv1", hidden, patch, bias=False),
        *fixed("vision", f"{root}.positional_embedding", (image // patch) ** 2, hidden),
        *norm(f"{root}.ln_pre", hidden, bias=True, role="vision"),
        *blocks(
            Encoder(
                f"{root}.transformer.resblocks",
                layers,
                hidden,
                width,
                qkv=("attn.in_proj",),
                out="attn.out_proj",
                mlp=("mlp.c_fc", "mlp.c_proj"),
                norms=("ln_1", "ln_2"),
                scales=("ls_1", "ls_2"),
            )
        ),
        *fixed("projector", f"{root}.vit_downsampler1", 2 * hidden, hidden * 9, bias=True),
        *fixed("projector", f"{root}.vit_downsampler2", 4 * hidden, 2 * hidden * 9, bias=True),
    )
    return Tower(tensors, Vision(hidden, layers, width, patch, 4, 0, rotary=True))


def step3p7(c: Config) -> Decoder:
    """Step 3.7: Step 3.5 with a perception encoder."""
    built = text_part(c, "step3p5", _INNER)
    tower = _step_tower(c.section("vision_config"), "vision_model")
    wide = 4 * tower.facts.hidden
    more = replicated("projector", "vit_large_projector", built.sizes.hidden, wide)
    return with_tower(built, tower, more)


def _ernie_tower(c: Config, root: str) -> Tower:
    hidden, layers = c.size("hidden_size"), depth(c)
    width = c.size("intermediate_size", default=int(hidden * c.number("mlp_ratio", 4.0)))
    patch = side(c, "patch_size")
    tensors = (
        *patches(f"{root}.patch_embed.proj", hidden, patch, bias=False),
        *blocks(Encoder(f"{root}.blocks", layers, hidden, width)),
        *norm(f"{root}.ln", hidden, bias=True, role="vision"),
    )
    merge = c.size("spatial_merge_size", default=2)
    return Tower(tensors, Vision(hidden, layers, width, patch, merge, 0, rotary=True))


def _ernie_resampler(hidden: int, wide: int, frames: int) -> Tensors:
    root = "model.resampler_model"
    tensors: Tensors = ()
    for name, into in (("spatial_linear", wide), ("temporal_linear", wide * frames)):
        tensors += replicated("projector", f"{root}.{name}.0", wide, into, bias=True)
        tensors += replicated("projector", f"{root}.{name}.2", wide, wide, bias=True)
        tensors += norm(f"{root}.{name}.3", wide, bias=True, role="projector")
    return (
        *tensors,
        *replicated("projector", f"{root}.mlp", hidden, wide, bias=True),
        *norm(f"{root}.after_norm", hidden, role="projector"),
    )


def _ernie_experts(c: Config, hidden: int) -> Experts:
    """Experts for text and narrower ones for images; a token meets one of the two sets."""
    wide = c.wholes("moe_intermediate_size")
    if wide is None or len(wide) != 2 or not all(wide):
        raise c.bad("moe_intermediate_size", "two widths: of text and of image experts")
    count = c.values.get("moe_num_experts")
    if isinstance(count, list):
        count = next(iter(c.wholes("moe_num_experts") or ()), None)
    flat = c.with_values({"moe_num_experts": count})
    text = Mixture(
        Style(), router_dtype="fp32", correction="mlp.moe_statics.e_score_correction_bias"
    )
    image = text._replace(
        experts="mlp.experts", router="mlp.gate_1", shared="", correction="mlp.moe_statics.1"
    )
    first = routing(flat.with_values({"moe_intermediate_size": wide[0]}))
    second = routing(flat.with_values({"moe_intermediate_size": wide[1]}))._replace(shared=0)
    one, two = mixture_experts(text, first, hidden), mixture_experts(image, second, hidden)
    return Experts(one.tensors + two.tensors, one.number, one.per_token)


def ernie_vl(c: Config) -> Decoder:
    """ERNIE 4.5 VL with experts of two widths."""
    text = c.section_or_self("text_config")
    widths = sizes(text)
    hidden = widths.hidden
    experts = _ernie_experts(text, hidden)
    bias = text.flag("use_bias")
    block = attention(widths.attention(), bias=bias, out_bias=bias)
    around, feed = norms(hidden, *TWO_NORMS), gated_mlp(hidden, intermediate(text), bias=bias)
    starts = text.values.get("moe_layer_start_index")
    first = min(text.wholes("moe_layer_start_index") or (1,)) if isinstance(starts, list) else 1

    def make(sparse: bool) -> Layer:
        if sparse:
            return layer(block, around, experts=experts)
        return layer(block, feed, around)

    inner = c.section("vision_config")
    tower = _ernie_tower(inner, "vision_model")
    merge, frames = tower.facts.merge, inner.size("temporal_merge_size", default=2)
    is_tied = tied(c, True)
    built = Decoder(
        layers=stack((index >= first for index in range(widths.layers)), make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=tuple(rope._replace(copies=4) for rope in ropes(text, widths.head_size)),
    )
    wide = tower.facts.hidden * merge * merge
    return with_tower(built, tower, _ernie_resampler(hidden, wide, frames))


def _muse_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, frames = side(c, "patch_size"), c.size("patch_temporal", default=2)
    positions = c.size("pos_emb_height") * c.size("pos_emb_width")
    tensors = (
        *patches(f"{root}.patch_embedder", hidden, patch, frames=frames, bias=False),
        *fixed("vision", f"{root}.position_embedding_table", positions, hidden),
        *norm(f"{root}.ln_pre", hidden, bias=True, role="vision"),
        *blocks(
            Encoder(
                f"{root}.layers", layers, hidden, width,
                qkv=("attn.q_proj", "attn.k_proj", "attn.v_proj"),
            )
        ),
        *norm(f"{root}.ln_post", hidden, bias=True, role="vision"),
    )  # fmt: skip
    merge = c.size("merge_size", default=2)
    facts = Vision(hidden, layers, width, patch, merge, 0, frames=frames, rotary=True, placed=True)
    return Tower(tensors, facts)


def muse_glimmer(c: Config) -> Decoder:
    """Muse Glimmer: gated attention, three sliding layers to a full one, a vision tower."""
    built = text_part(c, "muse_glimmer_text", _INNER)
    tower = _muse_tower(c.section("vision_config"), "model.vision_tower")
    out, width = c.size("out_hidden_size"), c.size("projector_hidden_size")
    more = (
        *column("projector", "model.vision_adapter.fc1", width, out),
        *row("projector", "model.vision_adapter.fc2", width, width),
        *replicated("projector", "model.vision_projection", built.sizes.hidden, width),
    )
    return with_tower(built, tower, more)


FAMILIES = {
    "llama4": llama4,
    "step3p7": step3p7,
    "ernie4_5_vl_moe": ernie_vl,
    "muse_glimmer": muse_glimmer,
}
