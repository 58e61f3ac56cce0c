"""Llama 3.2 Vision: the image enters by cross-attention layers."""

from __future__ import annotations

from capcheck.architecture import Cache, Layer, Mixer, Vision

from .blocks import (
    Block,
    attention,
    gated_mlp,
    norm,
    norms,
    replicated,
    vector,
)
from .config import MOST_BLOCKS, Config
from .decoder import Decoder, ends, intermediate, layer, sizes, stack, tied
from .multimodal import rooted, with_tower
from .rope import ropes
from .style import LLAMA, TWO_NORMS, style_attention
from .towers import Tower, depth, side
from .vit import Encoder, blocks, fixed, patches

_NESTED = ("language_model.model", "language_model.lm_head")
_INNER = ("model.language_model", "lm_head")
_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


_EXTRA_TOKENS = 8  # Llama 3.2's embedding has rows that its head has not


def _cross_layer(c: Config, block: Block, vision_tokens: int) -> Layer:
    """A cross-attention layer: keys and values of the image, which are kept once a request."""
    widths = sizes(c)
    cache = Cache("cross", widths.kv_heads, widths.head_size, widths.head_size, vision_tokens)
    gates = vector("attention", "cross_attn_attn_gate", 1) + vector("mlp", "cross_attn_mlp_gate", 1)
    feed = gated_mlp(widths.hidden, intermediate(c))
    named = tuple(
        tensor._replace(
            parts=tuple(
                part._replace(name=part.name.replace("self_attn", "cross_attn"))
                for part in tensor.parts
            )
        )
        for tensor in block.tensors
    )
    mixer = Mixer("full", widths.heads, widths.head_size, widths.head_size, widths.kv_heads)
    around = norms(widths.hidden, *TWO_NORMS)
    return layer(Block(named, mixer, cache), feed, around, gates)


def _mllama_text(c: Config, vision_tokens: int) -> Decoder:
    widths = sizes(c)
    crossing = frozenset(c.wholes("cross_attention_layers") or ())
    plain = style_attention(c, LLAMA, widths.attention(), 0)
    feed, around = gated_mlp(widths.hidden, intermediate(c)), norms(widths.hidden, *TWO_NORMS)
    crossed = attention(widths.attention(), qk_norm="head")

    def make(crosses: bool) -> Layer:
        return _cross_layer(c, crossed, vision_tokens) if crosses else layer(plain, feed, around)

    is_tied = tied(c, False)
    rows = widths._replace(vocabulary=widths.vocabulary + _EXTRA_TOKENS)
    outer = ends(rows, True) + (() if is_tied else ends(widths, False)[-1:])
    return Decoder(
        layers=stack((index in crossing for index in range(widths.layers)), make),
        outer=outer,
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
    )


def _mllama_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    tiles = c.size("max_num_tiles")
    ratios = len(c.items("supported_aspect_ratios") or ()) + 1
    positions = (image // patch) ** 2 + 1
    block = Encoder(
        f"{root}.transformer.layers", layers, hidden, width, qkv=_QKV, out="self_attn.o_proj",
        norms=TWO_NORMS, qkv_bias=False, out_bias=False,
    )  # fmt: skip
    outer = block._replace(
        prefix=f"{root}.global_transformer.layers",
        layers=c.whole("num_global_layers", most=MOST_BLOCKS),
        gates=("gate_attn", "gate_ffn"),
    )
    gated = f"{root}.gated_positional_embedding"
    tensors = (
        *vector("vision", f"{root}.class_embedding", hidden),
        *patches(f"{root}.patch_embedding", hidden, patch, bias=False),
        *vector("vision", f"{gated}.gate", 1),
        *fixed("vision", f"{gated}.embedding", positions, hidden),
        *fixed("vision", f"{gated}.tile_embedding", ratios, tiles * positions * hidden),
        *norm(f"{root}.layernorm_pre", hidden, bias=True, role="vision"),
        *norm(f"{root}.layernorm_post", hidden, bias=True, role="vision"),
        *blocks(block),
        *blocks(outer),
    )
    for name in ("pre", "post"):
        at = f"{root}.{name}_tile_positional_embedding"
        tensors += vector("vision", f"{at}.gate", 1)
        tensors += fixed("vision", f"{at}.embedding", ratios, tiles * hidden)
    outputs = len(c.items("intermediate_layers_indices") or ()) + 1
    facts = Vision(hidden, layers, width, patch, 1, tiles * positions, outputs=outputs)
    return Tower(tensors, facts)


def mllama(c: Config) -> Decoder:
    """Llama 3.2 Vision: the image enters by cross-attention layers."""
    inner = c.section("vision_config")
    tower = _mllama_tower(inner, "vision_model")
    built = rooted(_mllama_text(c.section("text_config"), tower.facts.image_tokens), _NESTED)
    out = inner.size("vision_output_dim")
    more = replicated("projector", "multi_modal_projector", built.sizes.hidden, out, bias=True)
    return with_tower(built, tower, more)


FAMILIES = {"mllama": mllama}
