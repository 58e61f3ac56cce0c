"""Nemotron-NAS: Llama layers that an architecture search has thinned."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Layer, Mixer

from .blocks import (
    Block,
    Heads,
    Tensors,
    attention,
    gated_mlp,
    norm,
    replicated,
)
from .config import MOST_LAYERS, Config
from .decoder import (
    Decoder,
    Sizes,
    ends,
    layer,
    stack,
    tied,
)
from .rope import ropes
from .style import TWO_NORMS


class _Nas(NamedTuple):
    kv_heads: int  # 0: no attention
    linear_attention: bool
    width: int  # 0: no feed-forward
    linear_feed: bool


def _nas_width(told: Config, hidden: int) -> int:
    plain = told.optional("intermediate_size", least=1)
    if plain is not None:
        return plain
    width = int(2 * told.number("ffn_mult", 0.0) * hidden / 3)
    if width <= 0:
        raise told.bad("ffn_mult", "a number above 0")
    return -(-width // 256) * 256


def _nas_kind(told: Config, heads: int, hidden: int) -> _Nas:
    attends, feed = told.section("attention"), told.section("ffn")
    replaced = attends.flag("replace_with_linear")
    kv_heads = 0
    if not attends.flag("no_op") and not replaced:
        kv_heads = attends.multiple(heads, attends.size("n_heads_in_group"), "n_heads_in_group")
    narrowed = feed.flag("replace_with_linear")
    width = 0 if feed.flag("no_op") or narrowed else _nas_width(feed, hidden)
    return _Nas(kv_heads, replaced, width, narrowed)


def nemotron_nas(c: Config) -> Decoder:
    """Llama layers that a search has thinned: attention or feed-forward may be missing."""
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")
    size = c.size("head_dim", default=c.multiple(hidden, heads, "num_attention_heads"))
    kinds = [_nas_kind(told, heads, hidden) for told in c.sections("block_configs")]
    if not kinds or len(kinds) > MOST_LAYERS:
        raise c.bad("block_configs", f"1 to {MOST_LAYERS} blocks")

    def make(kind: _Nas) -> Layer:
        block = Block((), Mixer("none"), None)
        tensors: Tensors = ()
        if kind.kv_heads:
            block = attention(Heads(hidden, heads, kind.kv_heads, size))
        elif kind.linear_attention:
            block = Block(
                replicated("attention", "self_attn.linear_attn", hidden, hidden),
                Mixer("none"), None,
            )  # fmt: skip
        if kind.width:
            tensors = gated_mlp(hidden, kind.width)
        elif kind.linear_feed:
            tensors = replicated("mlp", "mlp.linear_mlp", hidden, hidden)
        first = norm(TWO_NORMS[0], hidden) if block.tensors else ()
        second = norm(TWO_NORMS[1], hidden) if tensors else ()
        return layer(block, tensors, first, second)

    kv_heads = max((kind.kv_heads for kind in kinds), default=0) or heads
    widths = Sizes(
        hidden, len(kinds), heads, kv_heads, size, c.size("vocab_size"),
        max(kind.width for kind in kinds),
    )  # fmt: skip
    is_tied = tied(c, False)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, size),
    )


FAMILIES = {"nemotron-nas": nemotron_nas}
