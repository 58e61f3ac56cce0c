"""Decoders with a vision tower that other families share: Qwen-VL, LLaVA, InternVL, Mistral 3 …"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import isqrt

from capcheck.architecture import Vision

from . import text_decoder
from .blocks import Tensors, norm, replicated, vector
from .config import Config
from .decoder import Decoder
from .towers import (
    GLM4,
    QWEN2,
    QWEN3,
    QWEN25,
    Glm,
    Qwen,
    Tower,
    clip,
    depth,
    glm_vision,
    intern_vit,
    pixtral,
    qwen_vision,
    side,
    siglip,
)
from .vit import Encoder, blocks, fixed, patches, projector

_NESTED = ("language_model.model", "language_model.lm_head")
_INNER = ("model.language_model", "lm_head")


def rooted(built: Decoder, names: tuple[str, str]) -> Decoder:
    """The same decoder under the names that a multimodal checkpoint gives it."""
    root, lm_head = names

    def renamed(name: str) -> str:
        if name.startswith("lm_head"):
            return lm_head + name.removeprefix("lm_head")
        return root + name.removeprefix("model") if name.startswith("model.") else name

    outer = tuple(
        tensor._replace(
            parts=tuple(part._replace(name=renamed(part.name)) for part in tensor.parts)
        )
        for tensor in built.outer
    )
    return built._replace(outer=outer, prefix=renamed(built.prefix))


def text_part(c: Config, otherwise: str, names: tuple[str, str] | None = None) -> Decoder:
    """The decoder of `text_config` (or of the same level), under a multimodal model's names.

    A tie that only the outer level tells counts.
    """
    keys = ("text_config", "llm_config", "language_config")
    if not c.has(*keys):  # the decoder's keys lie beside vision_config
        flat = {
            key: c.values[key] for key in c.values if key not in ("model_type", "architectures")
        }
        inner = Config(flat)
    else:
        inner = c.section(*keys)
        if not inner.has("tie_word_embeddings") and c.has("tie_word_embeddings"):
            told = {"tie_word_embeddings": c.values["tie_word_embeddings"]}
            inner = inner.with_values(told)
    built = text_decoder(inner, otherwise)
    return rooted(built, names) if names else built


def with_tower(built: Decoder, tower: Tower, more: Tensors = ()) -> Decoder:
    """Add a tower, and the projector between."""
    return built._replace(towers=tower.tensors + more, vision=tower.facts)


def _mrope(built: Decoder) -> Decoder:
    """Positions of time, height and width: engines keep four times the table."""
    return built._replace(ropes=tuple(rope._replace(copies=4) for rope in built.ropes))


def qwen_vl(c: Config, kind: Qwen, text: str, names: tuple[str, str] | None, root: str) -> Decoder:
    """Qwen2-VL and later."""
    built = _mrope(text_part(c, text, names))
    tower = qwen_vision(c.section("vision_config"), root, kind, built.sizes.hidden)
    return with_tower(built, tower)


def glm_vl(c: Config, kind: Glm, text: str) -> Decoder:
    """GLM-4.1V and later."""
    built = _mrope(text_part(c, text, _INNER))
    tower = glm_vision(c.section("vision_config"), "model.visual", kind, built.sizes.hidden)
    return with_tower(built, tower)


_LINEARS = ("multi_modal_projector.linear_1", "multi_modal_projector.linear_2")


def _shared_tower(c: Config, image_tokens: Callable[[int], int], merge: int = 1) -> Tower:
    """The tower of a LLaVA-like model; `image_tokens` of the patches of one image."""
    kind = c.word("model_type", default="clip_vision_model")
    if kind == "pixtral":
        return pixtral(c, "vision_tower", merge=merge)
    grid = (side(c, "image_size") // side(c, "patch_size")) ** 2
    build, root = (siglip if kind.startswith("siglip") else clip), "vision_tower.vision_model"
    return build(c, root, image_tokens=image_tokens(grid))


def llava(c: Config) -> Decoder:
    """LLaVA 1.5 and the Pixtral models in its form."""
    built = text_part(c, "llama", _NESTED)
    tower = _shared_tower(c.section("vision_config"), lambda grid: grid)
    hidden = built.sizes.hidden
    bias = c.flag("multimodal_projector_bias", default=True)
    return with_tower(
        built, tower, projector(tower.facts.hidden, hidden, hidden, names=_LINEARS, bias=bias)
    )


def _anyres(tiles: int) -> Callable[[int], int]:
    """One image as a square of `tiles` x `tiles` with a break a row, beside a small copy."""

    def tokens(grid: int) -> int:
        edge = tiles * isqrt(grid)
        return edge * (edge + 1) + grid

    return tokens


def llava_tiles(c: Config, tiles: int) -> Decoder:
    """LLaVA-NeXT (2 x 2 tiles) and LLaVA-OneVision (3 x 3)."""
    built = text_part(c, "llama", _NESTED)
    tower = _shared_tower(c.section("vision_config"), _anyres(tiles))
    hidden = built.sizes.hidden
    more = vector("projector", "image_newline", hidden) + projector(
        tower.facts.hidden, hidden, hidden, names=_LINEARS
    )
    return with_tower(built, tower, more)


def mistral3(c: Config) -> Decoder:
    """Mistral Small 3.1 and later: a Pixtral tower, four patches merged to one token."""
    built = text_part(c, "mistral", _NESTED)
    merge = c.size("spatial_merge_size", default=2)
    tower = pixtral(c.section("vision_config"), "vision_tower", merge=merge)
    inner, hidden = tower.facts.hidden, built.sizes.hidden
    bias = c.flag("multimodal_projector_bias")
    root = "multi_modal_projector"
    more = (
        *norm(f"{root}.norm", inner, role="projector"),
        *replicated("projector", f"{root}.patch_merger.merging_layer", inner, inner * merge**2),
        *projector(inner, hidden, hidden, names=_LINEARS, bias=bias),
    )
    return with_tower(built, tower, more)


_INTERN_TILE_TOKENS = 256


def _intern_tokens(c: Config) -> int:
    """A tile becomes a quarter of its patches; an image up to twelve tiles and a small copy."""
    ratio = c.number("downsample_ratio", 0.5)
    tower = c.section("vision_config")
    grid = (side(tower, "image_size") // side(tower, "patch_size")) ** 2
    tiles = c.size("max_dynamic_patch", default=12) + int(c.flag("use_thumbnail", default=True))
    return int(grid * ratio * ratio) * tiles


def internvl(c: Config) -> Decoder:
    """InternVL 2 to 3.5, in both of its forms."""
    built = text_part(c, "qwen2", _NESTED)
    inner = c.section("vision_config")
    tower = intern_vit(inner, "vision_model", image_tokens=_intern_tokens(c))
    wide, hidden = 4 * tower.facts.hidden, built.sizes.hidden
    more = norm("mlp1.0", wide, bias=True, role="projector") + projector(
        wide, hidden, hidden, names=("mlp1.1", "mlp1.3")
    )
    return with_tower(built, tower, more)


def gemma3(c: Config) -> Decoder:
    """Gemma 3: SigLIP, pooled to a fixed number of tokens."""
    built = text_part(c, "gemma3_text", _NESTED)
    inner = c.section("vision_config")
    tokens = c.size("mm_tokens_per_image", default=256)
    tower = siglip(inner, "vision_tower.vision_model", image_tokens=tokens)
    grid = side(inner, "image_size") // side(inner, "patch_size")
    tower = tower._replace(facts=tower.facts._replace(merge=max(1, grid // isqrt(tokens))))
    root = "multi_modal_projector"
    more = fixed(
        "projector", f"{root}.mm_input_projection_weight", built.sizes.hidden, tower.facts.hidden
    ) + norm(f"{root}.mm_soft_emb_norm", tower.facts.hidden, role="projector")
    return with_tower(built, tower, more)


def moonvit(c: Config, root: str, *, most_tokens: int) -> Tower:
    """Kimi's MoonViT: learned two-dimensional positions, any resolution; K3's has no biases."""
    hidden = c.size("vt_hidden_size", "hidden_size")
    width, layers = c.size("vt_intermediate_size", "intermediate_size"), depth(c)
    patch = side(c, "patch_size")
    positions = c.size("init_pos_emb_height") * c.size("init_pos_emb_width")
    attends, feeds = c.flag("attn_bias", default=True), c.flag("linear_bias", default=True)
    centred = c.word("norm_type", default="layernorm") == "layernorm"
    patch_bias = c.flag("patch_embed_proj_bias", default=True)
    tensors = (
        *patches(f"{root}.patch_embed.proj", hidden, patch, bias=patch_bias),
        *fixed("vision", f"{root}.patch_embed.pos_emb", positions, hidden),
        *blocks(
            Encoder(
                f"{root}.encoder.blocks",
                layers,
                hidden,
                width,
                qkv=("wqkv",),
                out="wo",
                mlp=("mlp.fc0", "mlp.fc1"),
                norms=("norm0", "norm1"),
                qkv_bias=attends,
                out_bias=attends,
                mlp_bias=feeds,
                norm_bias=centred,
                attended=c.size("qkv_hidden_size", default=hidden),
            )
        ),
        *norm(f"{root}.encoder.final_layernorm", hidden, bias=centred, role="vision"),
    )
    facts = Vision(hidden, layers, width, patch, 2, most_tokens, rotary=True, placed=True)
    return Tower(tensors, facts)


def kimi(c: Config, *, most_tokens: int, root: str, lines: tuple[str, str]) -> Decoder:
    """Kimi-VL and Kimi K2.5: MoonViT, four patches merged to one token."""
    built = text_part(c, "deepseek_v3", _NESTED)
    tower = moonvit(c.section("vision_config"), "vision_tower", most_tokens=most_tokens)
    inner = tower.facts.hidden
    wide = 4 * inner
    names = tuple(f"{root}.{line}" for line in lines)
    more = norm(f"{root}.pre_norm", inner, bias=True, role="projector") + projector(
        wide, wide, built.sizes.hidden, names=names, shard=False
    )
    return with_tower(built, tower, more)


_VISUAL = "model.visual"
FAMILIES = {
    "qwen2_vl": partial(qwen_vl, kind=QWEN2, text="qwen2", names=None, root="visual"),
    "qwen2_5_vl": partial(qwen_vl, kind=QWEN25, text="qwen2", names=None, root="visual"),
    "qwen3_vl": partial(qwen_vl, kind=QWEN3, text="qwen3", names=_INNER, root=_VISUAL),
    "qwen3_vl_moe": partial(qwen_vl, kind=QWEN3, text="qwen3_moe", names=_INNER, root=_VISUAL),
    "qwen3_5": partial(qwen_vl, kind=QWEN3, text="qwen3_5_text", names=_INNER, root=_VISUAL),
    "qwen3_5_moe": partial(
        qwen_vl, kind=QWEN3, text="qwen3_5_moe_text", names=_INNER, root=_VISUAL
    ),
    "glm4v": partial(glm_vl, kind=GLM4, text="glm4v_text"),
    "glm4v_moe": partial(glm_vl, kind=GLM4, text="glm4v_moe_text"),
    "llava": llava,
    "llava_next": partial(llava_tiles, tiles=2),
    "llava_onevision": partial(llava_tiles, tiles=3),
    "mistral3": mistral3,
    "internvl": internvl,
    "internvl_chat": internvl,
    "gemma3": gemma3,
    "kimi_k25": partial(kimi, most_tokens=4096, root="mm_projector", lines=("proj.0", "proj.2")),
    "kimi_vl": partial(
        kimi, most_tokens=1024, root="multi_modal_projector", lines=("linear_1", "linear_2")
    ),
}
