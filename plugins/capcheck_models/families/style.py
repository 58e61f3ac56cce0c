"""What sets one llama-like family apart from the next, as a table row.

Most decoders are the same drawing: norm, attention, norm, feed-forward. A `Style` tells the
biases, the norms, the names and which layers slide; dense and sparse families share it.
"""

from __future__ import annotations

from typing import NamedTuple

from .blocks import (
    SELF_ATTENTION,
    Block,
    Heads,
    Names,
    Tensors,
    attention,
    column,
    gated_mlp,
    norms,
    plain_mlp,
    vector,
)
from .config import Config
from .decoder import Decoder, Sizes, ends, intermediate, layer, sizes, stack, tied
from .rope import ropes


class Bias(NamedTuple):
    """Whether a projection has a bias: a configuration key (none: fixed) and its default."""

    key: str = ""
    default: bool = False

    def read(self, c: Config) -> bool:
        """Raises BadConfig when the key is not true or false."""
        return c.flag(self.key, default=self.default) if self.key else self.default


NO_BIAS = Bias()
ATTENTION_BIAS = Bias("attention_bias")
ALWAYS = Bias("", True)
TWO_NORMS = ("input_layernorm", "post_attention_layernorm")
FOUR_NORMS = (*TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


class Style(NamedTuple):
    """One family's attention, norms, feed-forward and names."""

    qkv_bias: Bias = NO_BIAS
    out_bias: Bias = NO_BIAS
    mlp_bias: Bias = NO_BIAS
    qk_norm: str = ""  # "", "head" or "whole"
    qk_norm_if: Bias = Bias("", True)
    qk_norm_bias: bool = False
    names: Names = SELF_ATTENTION
    sinks: str = ""  # a learned logit per query head
    head_gate: str = ""  # a projection to one gate per query head
    full_gate: str = ""  # a projection to one gate per attended element
    norms: tuple[str, ...] = TWO_NORMS
    norm_bias: bool = False
    gated: bool = True
    mlp: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    mlp_prefix: str = "mlp"
    sliding: str = "types"  # as `types` tell, "all", only when "asked", or "never"
    full_every: int = 0  # without layer types: one full layer in so many, the last of them
    tied: bool = False  # when the configuration does not tell
    partial: float = 1.0
    root: str = "model"
    layers: str = "layers"
    embed: str = "embed_tokens"
    last: str = "norm"
    final_norm: bool = True
    lm_head: str = "lm_head"
    head_bias: Bias = NO_BIAS


LLAMA = Style(ATTENTION_BIAS, ATTENTION_BIAS, Bias("mlp_bias"))


def layer_types(c: Config, layers: int, full_every: int = 0) -> tuple[str, ...]:
    """The kind of each layer: as told, or by a pattern that ends in a full layer, or all full."""
    told = c.per_layer("layer_types", layers)
    if told is not None:
        return told
    every = c.whole("sliding_window_pattern", "_sliding_window_pattern", default=full_every)
    if every <= 1:
        return ("full_attention",) * layers
    return tuple(
        "sliding_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    )


def windows(c: Config, style: Style, layers: int) -> tuple[int, ...]:
    """The sliding window of each layer; 0: it attends to everything."""
    window = c.whole("sliding_window", default=0)
    asked = c.flag("use_sliding_window", default=style.sliding != "asked")
    if not window or not asked or style.sliding == "never":
        return (0,) * layers
    if style.sliding == "all" and not c.has("layer_types"):
        return (window,) * layers
    if c.has("max_window_layers") and not c.has("layer_types"):
        first = c.whole("max_window_layers")
        return tuple(window if index >= first else 0 for index in range(layers))
    types = layer_types(c, layers, style.full_every)
    return tuple(window if kind == "sliding_attention" else 0 for kind in types)


def style_attention(c: Config, style: Style, heads: Heads, window: int) -> Block:
    """The attention of one layer in this style."""
    block = attention(
        heads,
        names=style.names,
        bias=style.qkv_bias.read(c),
        out_bias=style.out_bias.read(c),
        qk_norm=style.qk_norm if style.qk_norm_if.read(c) else "",
        qk_norm_bias=style.qk_norm_bias,
        window=window,
    )
    extra: Tensors = ()
    if style.full_gate:
        extra += column("attention", style.full_gate, heads.heads * heads.value_size, heads.hidden)
    if style.head_gate:
        extra += column("attention", style.head_gate, heads.heads, heads.hidden)
    if style.sinks:
        extra += vector("attention", style.sinks, heads.heads, "column")
    return block._replace(tensors=block.tensors + extra) if extra else block


def style_norms(style: Style, hidden: int) -> Tensors:
    """The norms around attention and feed-forward."""
    return norms(hidden, *style.norms, bias=style.norm_bias)


def style_mlp(c: Config, style: Style, hidden: int, width: int) -> Tensors:
    """The dense feed-forward of one layer in this style."""
    bias = style.mlp_bias.read(c)
    prefix = style.mlp_prefix
    if style.gated:
        return gated_mlp(hidden, width, prefix=prefix, names=style.mlp, bias=bias)
    up, down = (f"{prefix}.{name}" if prefix else name for name in style.mlp[1:])
    return plain_mlp(hidden, width, names=(up, down), bias=bias)


def style_ends(c: Config, style: Style, widths: Sizes) -> Tensors:
    """Embedding, final norm and head in this style."""
    return ends(
        widths,
        tied(c, style.tied),
        root=style.root,
        embed=style.embed,
        last=style.last,
        norm_bias=style.norm_bias,
        final_norm=style.final_norm,
        lm_head=style.lm_head,
        head_bias=style.head_bias.read(c),
    )


def dense(c: Config, style: Style) -> Decoder:
    """A decoder whose every layer has attention and one feed-forward. Raises BadConfig."""
    widths = sizes(c)
    width = intermediate(c)
    around = style_norms(style, widths.hidden)
    feed = style_mlp(c, style, widths.hidden, width)
    layers = stack(
        windows(c, style, widths.layers),
        lambda window: layer(style_attention(c, style, widths.attention(), window), feed, around),
    )
    return Decoder(
        layers=layers,
        outer=style_ends(c, style, widths),
        sizes=widths,
        tied=tied(c, style.tied),
        ropes=ropes(c, widths.head_size, style.partial),
        prefix=f"{style.root}.{style.layers}",
    )
