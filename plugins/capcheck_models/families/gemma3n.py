"""Gemma 3n: alternating updates over parallel streams, shared keys and values."""

from __future__ import annotations

from capcheck.architecture import Layer, Rope

from .blocks import (
    Tensors,
    column,
    gated_mlp,
    norm,
    norms,
    replicated,
    row,
    vector,
)
from .config import Config
from .decoder import Decoder, ends, layer, sizes, stack, tied
from .gemma import Kind, head_attention, layer_kinds, per_layer, per_layer_outer
from .rope import ropes
from .style import FOUR_NORMS


def _altup(c: Config, hidden: int) -> Tensors:
    """Alternating updates: predictions and corrections over a few parallel streams."""
    streams = c.whole("altup_num_inputs", default=4, most=100)
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


def _stream_projections(streams: int, hidden: int) -> Tensors:
    """Into and out of the parallel streams beside the first."""
    return tuple(
        tensor
        for name in ("altup_projections", "altup_unembed_projections")
        for index in range(streams - 1)
        for tensor in column("other", f"model.{name}.{index}", hidden, hidden)
    )


def _ropes(c: Config, size: int) -> tuple[Rope, ...]:
    """Sliding and full layers turn at other speeds: a table for each."""
    tables = ropes(c, size)
    if len(tables) != 1:
        return tables
    full, local = c.number("rope_theta", 1e6), c.number("rope_local_base_freq", 1e4)
    return tuple(tables[0]._replace(base=base) for base in (full, local))


def gemma3n(c: Config) -> Decoder:
    """The text part of Gemma 3n."""
    scalar = {"intermediate_size": 0} if isinstance(c.values.get("intermediate_size"), list) else {}
    widths = sizes(c.with_values(scalar))
    hidden = widths.hidden
    told = _gemma3n_widths(c, widths.layers)
    window = c.whole("sliding_window", default=512)
    own = per_layer(c.size("hidden_size_per_layer_input"), hidden)
    more = norms(hidden, *FOUR_NORMS) + _altup(c, hidden) + own

    def make(kind: Kind) -> Layer:
        block = head_attention(
            widths.attention(),
            shared=kind.shared,
            window=0 if kind.full else window,
            one_kv=False,
            bias=False,
        )
        return layer(block, gated_mlp(hidden, kind.width), more)

    is_tied = tied(c, True)
    streams = _stream_projections(c.whole("altup_num_inputs", default=4, most=100), hidden)
    return Decoder(
        layers=stack(layer_kinds(c, widths.layers, told), make),
        outer=ends(widths, is_tied) + per_layer_outer(c, widths) + streams,
        sizes=widths._replace(intermediate=max(told)),
        tied=is_tied,
        ropes=_ropes(c, widths.head_size),
    )


FAMILIES = {"gemma3n_text": gemma3n}
