"""Vision towers that several families share: SigLIP, CLIP, Pixtral, InternViT, Qwen, GLM."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Part, Vision

from .blocks import Tensors, column, linear, norm, replicated, row, vector
from .config import MOST_BLOCKS, Config
from .vit import Encoder, blocks, fixed, patches, projector


class Tower(NamedTuple):
    """An encoder and what memory profiling needs to know of it."""

    tensors: Tensors
    facts: Vision


def depth(c: Config) -> int:
    """How many blocks. Raises BadConfig."""
    keys = ("num_hidden_layers", "depth", "vt_num_hidden_layers", "num_layers")
    return c.whole(*keys, least=1, most=MOST_BLOCKS)


def side(c: Config, key: str) -> int:
    """A size in pixels, told as one number or as [height, width]. Raises BadConfig."""
    pair = c.values.get(key)
    if isinstance(pair, (list, tuple)):
        sizes = c.wholes(key)
        if not sizes or not sizes[0]:
            raise c.bad(key, "one or two sizes in pixels")
        return sizes[0]
    return c.size(key)


_SIGLIP_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


def _contrastive(root: str, layers: int, hidden: int, width: int) -> Tensors:
    """The layers that SigLIP and CLIP share, and the norm behind them."""
    encoder = Encoder(
        f"{root}.encoder.layers", layers, hidden, width, qkv=_SIGLIP_QKV,
        out="self_attn.out_proj", norms=("layer_norm1", "layer_norm2"),
    )  # fmt: skip
    return (*blocks(encoder), *norm(f"{root}.post_layernorm", hidden, bias=True, role="vision"))


def siglip(c: Config, root: str, *, image_tokens: int) -> Tower:
    """SigLIP without its pooling head. `image_tokens`: what one image becomes."""
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    tensors = (
        *patches(f"{root}.embeddings.patch_embedding", hidden, patch),
        *fixed("vision", f"{root}.embeddings.position_embedding", (image // patch) ** 2, hidden),
        *_contrastive(root, layers, hidden, width),
    )
    return Tower(tensors, Vision(hidden, layers, width, patch, 1, image_tokens))


def clip(c: Config, root: str, *, image_tokens: int) -> Tower:
    """CLIP's encoder with its class token."""
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    positions = (image // patch) ** 2 + 1
    tensors = (
        *vector("vision", f"{root}.embeddings.class_embedding", hidden),
        *patches(f"{root}.embeddings.patch_embedding", hidden, patch, bias=False),
        *fixed("vision", f"{root}.embeddings.position_embedding", positions, hidden),
        *norm(f"{root}.pre_layrnorm", hidden, bias=True, role="vision"),
        *_contrastive(root, layers, hidden, width),
    )
    return Tower(tensors, Vision(hidden, layers, width, patch, 1, image_tokens))


def pixtral(c: Config, root: str, *, merge: int) -> Tower:
    """Pixtral: gated feed-forwards, rotary positions, a break after each row of patches."""
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    rows = -(-image // (patch * merge))
    tensors = (
        *patches(f"{root}.patch_conv", hidden, patch, bias=False),
        *norm(f"{root}.ln_pre", hidden, role="vision"),
        *blocks(
            Encoder(
                f"{root}.transformer.layers",
                layers,
                hidden,
                width,
                qkv=("attention.q_proj", "attention.k_proj", "attention.v_proj"),
                out="attention.o_proj",
                mlp=("feed_forward.gate_proj", "feed_forward.up_proj", "feed_forward.down_proj"),
                norms=("attention_norm", "ffn_norm"),
                qkv_bias=False,
                out_bias=False,
                mlp_bias=False,
                norm_bias=False,
            )
        ),
    )
    facts = Vision(hidden, layers, width, patch, merge, rows * (rows + 1), gated=True, rotary=True)
    return Tower(tensors, facts)


def intern_vit(c: Config, root: str, *, image_tokens: int) -> Tower:
    """InternViT: a class token, learned scales of both branches."""
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch, image = side(c, "patch_size"), side(c, "image_size")
    bias = c.flag("attention_bias", "qkv_bias", default=True)
    normed = c.flag("use_qk_norm", "qk_normalization")
    tensors = (
        *vector("vision", f"{root}.embeddings.class_embedding", hidden),
        *vector(
            "vision", f"{root}.embeddings.position_embedding", hidden * ((image // patch) ** 2 + 1)
        ),
        *patches(f"{root}.embeddings.patch_embedding", hidden, patch),
        *blocks(
            Encoder(
                f"{root}.encoder.layers",
                layers,
                hidden,
                width,
                qkv_bias=bias,
                norm_bias=c.word("norm_type", default="layer_norm") == "layer_norm",
                qk_norm=("attn.q_norm", "attn.k_norm") if normed else (),
                qk_norm_size=hidden,
                scales=("ls1", "ls2"),
            )
        ),
    )
    return Tower(tensors, Vision(hidden, layers, width, patch, 2, image_tokens))


class Qwen(NamedTuple):
    """What sets one generation of Qwen's vision towers apart."""

    gated: bool = False
    rms: bool = False
    patch_bias: bool = False
    positions: bool = False
    merger: tuple[str, str, str] = ("merger.ln_q", "merger.mlp.0", "merger.mlp.2")
    mlp: tuple[str, ...] = ("mlp.fc1", "mlp.fc2")
    extra: str = ""  # the list of mergers of deeper layers
    extra_names: tuple[str, str, str] = ("norm", "linear_fc1", "linear_fc2")
    pixels: int = 12_845_056  # most of one image, the processors' default
    video_pixels: int = 0  # most of all frames of a video; 0: an image's in each frame


QWEN2 = Qwen()
QWEN25 = Qwen(gated=True, rms=True, mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"))
QWEN3 = Qwen(
    patch_bias=True,
    positions=True,
    merger=("merger.norm", "merger.linear_fc1", "merger.linear_fc2"),
    mlp=("mlp.linear_fc1", "mlp.linear_fc2"),
    extra="deepstack_merger_list",
    pixels=16_777_216,
    video_pixels=25_165_824,
)
QWEN3_OMNI = QWEN3._replace(
    merger=("merger.ln_q", "merger.mlp.0", "merger.mlp.2"),
    extra="merger_list",
    extra_names=("ln_q", "mlp.0", "mlp.2"),
    pixels=QWEN2.pixels,
    video_pixels=0,
)


def _merger(root: str, names: tuple[str, str, str], normed: int, wide: int, out: int) -> Tensors:
    ln, first, second = (f"{root}.{name}" for name in names)
    return (
        *norm(ln, normed, bias=True, role="projector"),
        *column("projector", first, wide, wide, bias=True),
        *row("projector", second, out, wide, bias=True),
    )


def qwen_vision(c: Config, root: str, kind: Qwen, text_hidden: int) -> Tower:
    """Qwen's vision towers: patches of two frames, four merged to one token."""
    hidden, layers = c.size("embed_dim", "hidden_size"), depth(c)
    if c.has("embed_dim"):  # Qwen2-VL tells the decoder's width as hidden_size
        width = int(hidden * c.number("mlp_ratio", 4.0))
        out = c.size("hidden_size", default=text_hidden)
    else:
        width = c.size("intermediate_size")
        out = c.size("out_hidden_size", default=text_hidden)
    patch = side(c, "patch_size")
    merge = c.size("spatial_merge_size", default=2)
    frames = c.size("temporal_patch_size", default=2)
    tensors: Tensors = patches(
        f"{root}.patch_embed.proj", hidden, patch, frames=frames, bias=kind.patch_bias
    )
    if kind.positions:
        count = c.size("num_position_embeddings")
        tensors += fixed("vision", f"{root}.pos_embed", count, hidden)
    tensors += blocks(
        Encoder(f"{root}.blocks", layers, hidden, width, mlp=kind.mlp, norm_bias=not kind.rms)
    )
    wide = hidden * merge * merge
    merger = _merger(root, kind.merger, hidden, wide, out)
    tensors += tuple(
        t for t in merger if not (kind.rms and t.parts[0].name == f"{root}.{kind.merger[0]}.bias")
    )
    deep = c.wholes("deepstack_visual_indexes") or ()
    for index in range(len(deep) if kind.extra else 0):
        at = f"{root}.{kind.extra}.{index}"
        tensors += _merger(at, kind.extra_names, wide, wide, out)
    token = (patch * merge) ** 2
    facts = Vision(
        hidden, layers, width, patch, merge, kind.pixels // token, len(deep),
        video_tokens=kind.video_pixels // (token * frames), frames=frames,
        gated=len(kind.mlp) == 3, rotary=True, placed=kind.positions,
    )  # fmt: skip
    return Tower(tensors, facts)


class Glm(NamedTuple):
    """What sets one generation of GLM's vision towers apart."""

    bias: bool = False
    qk_norm: bool = False
    positions: bool = True
    conv_norm: bool = True
    merger_width: str = "intermediate_size"


GLM4 = Glm()
GLM5 = Glm(
    bias=True, qk_norm=True, positions=False, conv_norm=False,
    merger_width="projection_intermediate_size",
)  # fmt: skip
_GLM_MOST_TOKENS = 6144
_GLM_MOST_VIDEO_TOKENS = 30_000


def _glm_merger(c: Config, root: str, kind: Glm, out: int) -> Tensors:
    width = c.size(kind.merger_width)
    at = f"{root}.merger"
    parts = (Part(f"{at}.gate_proj", width), Part(f"{at}.up_proj", width))
    return (
        *replicated("projector", f"{at}.proj", out, out),
        *norm(f"{at}.post_projection_norm", out, bias=True, role="projector"),
        *linear("projector", parts, out, "column"),
        *row("projector", f"{at}.down_proj", out, width),
    )


def glm_vision(c: Config, root: str, kind: Glm, text_hidden: int) -> Tower:
    """GLM's vision towers: gated feed-forwards, a downsampling convolution, a gated merger."""
    hidden, layers = c.size("hidden_size"), depth(c)
    out = c.size("out_hidden_size", default=text_hidden)
    patch, image = side(c, "patch_size"), side(c, "image_size")
    merge = c.size("spatial_merge_size", default=2)
    frames = c.size("temporal_patch_size", default=2)
    # GLM-4.xV blocks are as wide as the decoder's output, the merger is wider.
    width = c.size("intermediate_size") if kind.bias else out
    heads = c.size("num_heads")
    tensors: Tensors = patches(f"{root}.patch_embed.proj", hidden, patch, frames=frames)
    if kind.positions:
        name = f"{root}.embeddings.position_embedding"
        tensors += fixed("vision", name, (image // patch) ** 2, hidden)
    if kind.conv_norm:
        tensors += norm(f"{root}.post_conv_layernorm", hidden, role="vision")
    tensors += blocks(
        Encoder(
            f"{root}.blocks",
            layers,
            hidden,
            width,
            mlp=("mlp.gate_proj", "mlp.up_proj", "mlp.down_proj"),
            qkv_bias=kind.bias,
            out_bias=kind.bias,
            mlp_bias=kind.bias,
            norm_bias=False,
            qk_norm=("attn.q_norm", "attn.k_norm") if kind.qk_norm else (),
            qk_norm_size=hidden // heads,
        )
    )
    tensors += norm(f"{root}.post_layernorm", hidden, role="vision")
    tensors += fixed("projector", f"{root}.downsample", out, hidden * merge * merge, bias=True)
    tensors += _glm_merger(c, root, kind, out)
    facts = Vision(
        hidden, layers, width, patch, merge, _GLM_MOST_TOKENS,
        video_tokens=_GLM_MOST_VIDEO_TOKENS, frames=frames, gated=True, rotary=True,
        placed=kind.positions,
    )  # fmt: skip
    return Tower(tensors, facts)


__all__ = [
    "GLM4", "GLM5", "QWEN2", "QWEN3", "QWEN3_OMNI", "QWEN25", "Tower", "clip", "depth",
    "glm_vision", "intern_vit", "pixtral", "projector", "qwen_vision", "side", "siglip",
]  # fmt: skip
