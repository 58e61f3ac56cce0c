"""What Gemma 3n and 4 share: KV shared between layers, embeddings of every layer."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Part

from .blocks import (
    Block,
    Heads,
    Tensors,
    attention_cache,
    column,
    linear,
    norm,
    replicated,
    row,
)
from .config import Config
from .decoder import Sizes, embedding
from .style import layer_types


class Kind(NamedTuple):
    """What tells one layer of these families from the next."""

    full: bool  # attends to everything
    shared: bool  # reads the keys and values of an earlier layer
    width: int  # of its feed-forward


def layer_kinds(c: Config, layers: int, widths: tuple[int, ...]) -> list[Kind]:
    """The kind of each layer; the last `num_kv_shared_layers` share. Raises BadConfig."""
    types = layer_types(c, layers, 5)
    first_shared = layers - c.whole("num_kv_shared_layers", default=0)
    return [
        Kind(types[index] == "full_attention", index >= first_shared > 0, widths[index])
        for index in range(layers)
    ]


def head_attention(heads: Heads, *, shared: bool, window: int, one_kv: bool, bias: bool) -> Block:
    """Attention with a norm per head; `one_kv`: keys serve as values too."""
    parts = [Part("self_attn.q_proj", heads.heads * heads.size)]
    if not shared:
        # Engines load the keys a second time where values would be.
        held = 2 if one_kv else 1
        parts.append(Part("self_attn.k_proj", heads.kv_heads * heads.size, heads.kv_heads, held))
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


def per_layer(width: int, hidden: int) -> Tensors:
    """A layer's own embedding of the token, gated into the stream."""
    if not width:
        return ()
    return (
        *replicated("mlp", "per_layer_input_gate", width, hidden),
        *replicated("mlp", "per_layer_projection", hidden, width),
        *norm("post_per_layer_input_norm", hidden),
    )


def per_layer_outer(c: Config, widths: Sizes) -> Tensors:
    """The embedding that every layer takes its own slice of, and its projection."""
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
