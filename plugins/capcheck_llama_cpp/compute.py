"""The compute buffer of one device: the most that one step's graph needs at once. Pure; bytes.

A graph's tensors share one buffer, by when they are alive. The fullest moments are the attention
scores (without flash attention), the gate and up projections, the experts' rows, and the logits.
Values are 32 bits wide; what comes in from other devices is kept beside it, several times where
steps are pipelined. How many rows are alive besides was counted in buffers of builds of each
generation, on models of one or two layers.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

WIDTH = 4.0  # bytes of a value in the graph
HALF = 2.0
PIPELINED = 4  # copies of what comes in
# Of the second generation and of those after it: between builds that were looked at.
FIRST_BUILDS = (2420, 5780, 8030, 9420, 11300)
NARROW_MASK = 4  # from this generation on flash attention's mask comes in at half the width

Generation = Literal[0, 1, 2, 3, 4, 5]


class Rows(NamedTuple):
    """Rows alive beside each moment: as wide as the model, as all queries, as keys and values."""

    hidden: int
    queries: int
    cached: int
    feeds: int  # of a feed-forward network's intermediate width
    beside_feed: int
    beside_logits: int


ROWS: Mapping[Generation, Rows] = {
    0: Rows(1, 1, 0, 2, 2, 1),
    1: Rows(2, 2, 0, 2, 2, 2),
    2: Rows(2, 2, 1, 3, 4, 2),
    3: Rows(3, 2, 1, 3, 4, 3),
    4: Rows(3, 2, 1, 3, 4, 3),
    5: Rows(3, 3, 1, 3, 5, 3),
}


def generation_of(build: int) -> Generation:
    """How a build's graphs keep their tensors."""
    return sum(first <= build for first in FIRST_BUILDS)  # type: ignore[return-value]


class Shape(NamedTuple):
    """What one step works on, and how wide the model is."""

    tokens: int  # of one step
    cells: int  # that a token may look at
    outputs: int  # tokens of a step whose logits are computed
    hidden: int
    heads: int
    head_size: int  # the widest
    cached: int  # values of one token's keys and values in one layer
    feed: int  # intermediate width of a dense layer
    vocabulary: int
    experts_used: int
    expert_feed: int
    expanded: float = 0.0  # bytes of keys and values that are unpacked for all heads


class Duty(NamedTuple):
    """What a device does of it."""

    attends: bool  # some layer of it has attention
    flash: bool
    head: bool  # it computes the logits
    pipelined: bool
    generation: Generation


def moments(of: Shape, duty: Duty) -> dict[str, float]:
    """Bytes alive at each of the moments that may be the fullest, besides what comes in."""
    rows, step = ROWS[duty.generation], of.tokens * WIDTH
    row, queries = of.hidden * step, of.heads * of.head_size * step
    found = {"feed": rows.feeds * of.feed * step + rows.beside_feed * row}
    if duty.attends:
        beside = rows.hidden * row + rows.queries * queries + rows.cached * of.cached * step
        scores = 0.0 if duty.flash else of.cells * of.heads * step
        found["attention"] = scores + _halved(of, duty) + beside + of.expanded
    if of.experts_used:
        found["experts"] = _experts(of, rows, of.experts_used * step, row)
    if duty.head:
        logits = of.vocabulary * of.outputs * WIDTH
        found["logits"] = logits + rows.beside_logits * row
    return found


def _halved(of: Shape, duty: Duty) -> float:
    """The mask at half the width that flash attention reads, where it comes in at the whole."""
    return of.cells * of.tokens * HALF if duty.flash and duty.generation < NARROW_MASK else 0.0


def _experts(of: Shape, rows: Rows, chosen: float, row: float) -> float:
    """Every chosen expert's rows, in and out of it."""
    if rows.feeds == 2:
        return 2 * chosen * (of.hidden + of.expert_feed) + 4 * row
    return chosen * (of.hidden + rows.feeds * of.expert_feed) + rows.beside_feed * row


def mask(of: Shape, duty: Duty) -> float:
    """Bytes of the mask of attention as it comes in."""
    narrow = duty.flash and duty.generation >= NARROW_MASK
    return of.cells * of.tokens * (HALF if narrow else WIDTH) if duty.attends else 0.0


def buffer(of: Shape, duty: Duty, beside_logits: float) -> float:
    """Bytes of the buffer. `beside_logits`: the share of what comes in that logits lie beside."""
    found = moments(of, duty)
    masked = mask(of, duty)
    row = of.hidden * of.tokens * WIDTH
    logits = found.pop("logits", 0.0)
    if logits:
        logits += (masked + row) * beside_logits
    most = max(max(found.values()) + masked, logits)
    if duty.pipelined:
        most += (PIPELINED - 1) * masked + PIPELINED * row
    return most
