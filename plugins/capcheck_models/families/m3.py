"""MiniMax M3: block-sparse attention, experts, a vision tower."""

from __future__ import annotations

from capcheck.architecture import Layer, Part, Vision

from .blocks import (
    Block,
    attention,
    gated_mlp,
    linear,
    norm,
    norms,
    with_indexer,
)
from .config import Config
from .decoder import (
    Decoder,
    Sizes,
    ends,
    layer,
    routing,
    sizes,
    stack,
    tied,
)
from .moe import Mixture, listed, mixture_experts
from .multimodal import text_part, with_tower
from .rope import ropes
from .style import TWO_NORMS, Style
from .towers import Tower, depth, side
from .vit import Encoder, blocks, patches, projector

_BLOCK = "block_sparse_moe"
_M3 = Mixture(
    Style(),
    experts=f"{_BLOCK}.experts",
    names=("w1", "w3", "w2"),
    router=f"{_BLOCK}.gate",
    router_dtype="fp32",
    shared=f"{_BLOCK}.shared_experts",
)


def _m3_block(c: Config, widths: Sizes, indexed: bool) -> Block:
    style = "head" if c.flag("use_qk_norm", default=True) else ""
    block = attention(widths.attention(), qk_norm=style)
    if not indexed:
        return block
    told = c.section("sparse_attention_config")
    size, heads = told.size("sparse_index_dim"), told.size("sparse_num_index_heads")
    at = "self_attn.indexer"
    parts = (Part(f"{at}.q_proj", heads * size), Part(f"{at}.k_proj", size))
    tensors = linear("indexer", parts, widths.hidden, "replicated") + norms(
        size, f"{at}.q_norm", f"{at}.k_norm"
    )
    topk = told.size("sparse_topk_blocks") * told.size("sparse_block_size")
    return with_indexer(block, tensors, size, topk)


def _m3_indexed(c: Config, layers: int) -> tuple[bool, ...]:
    told = c.section("sparse_attention_config").wholes("sparse_attention_freq", most=1)
    if told is None or len(told) < layers:
        raise c.bad("sparse_attention_config", f"sparse_attention_freq for {layers} layers")
    return tuple(bool(mark) for mark in told[:layers])


def minimax_m3_text(c: Config) -> Decoder:
    """The text part of MiniMax M3: block-sparse attention, experts after three dense layers."""
    widths = sizes(c)
    hidden = widths.hidden
    route = routing(c, width=("intermediate_size",))
    shared = c.whole("shared_intermediate_size", default=route.shared)
    route = route._replace(shared=shared)
    experts = mixture_experts(_M3, route, hidden)
    plain = gated_mlp(hidden, c.size("dense_intermediate_size"))
    around = norms(hidden, *TWO_NORMS)

    def make(kind: tuple[bool, bool]) -> Layer:
        indexed, sparse = kind
        block = _m3_block(c, widths, indexed)
        if sparse:
            return layer(block, around, experts=experts)
        return layer(block, plain, around)

    is_tied = tied(c, False)
    kinds = zip(_m3_indexed(c, widths.layers), listed(c, widths.layers), strict=True)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
        routing=route,
    )


def _m3_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch = side(c, "patch_size")
    told = c.section_or_self("img_token_compression_config")
    merge, frames = told.size("spatial_merge_size"), told.size("temporal_patch_size")
    tensors = (
        *patches(f"{root}.embeddings.proj", hidden, patch, frames=frames, bias=False),
        *norm(f"{root}.pre_layrnorm", hidden, bias=True, role="vision"),
        *blocks(
            Encoder(
                f"{root}.encoder.layers",
                layers,
                hidden,
                width,
                qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                out="self_attn.out_proj",
                norms=("layer_norm1", "layer_norm2"),
            )
        ),
    )
    side_tokens = side(c, "image_size") // (patch * merge)
    facts = Vision(
        hidden, layers, width, patch, merge, side_tokens * side_tokens, frames=frames, rotary=True
    )
    return Tower(tensors, facts)


def minimax_m3(c: Config) -> Decoder:
    """MiniMax M3 with its tower; patches are projected, then four are merged to one token."""
    names = ("language_model.model", "language_model.lm_head")
    built = text_part(c, "minimax_m3_vl_text", names)
    tower = _m3_tower(c.section("vision_config"), "vision_tower.vision_model")
    inner, hidden = tower.facts.hidden, built.sizes.hidden
    merge = tower.facts.merge
    wide = hidden * merge * merge
    root = "multi_modal_projector"
    more = projector(
        inner, hidden, hidden, names=(f"{root}.linear_1", f"{root}.linear_2")
    ) + projector(
        wide, hidden, hidden, names=("patch_merge_mlp.linear_1", "patch_merge_mlp.linear_2")
    )
    return with_tower(built, tower, more)


FAMILIES = {
    "minimax_m3_vl_text": minimax_m3_text,
    "minimax_m3_vl": minimax_m3,
}
