"""Bytes of encoding images, videos and sound at once, and how many are encoded. Pure.

The encoder sees patches (or positions of sound); some of them become one token of the decoder.
"""

from __future__ import annotations

from math import ceil

ACTIVATION_BYTES = 2.0  # activations are 16 bit


def transient_bytes(
    patches: float,
    hidden: float,
    intermediate: float,
    *,
    tensor: float = 1,
    attention_copies: float,
    gated: bool = False,
    placing_copies: float = 0,
    gathering_copies: float = 0,
    mask_positions: float = 0,
) -> float:
    """Bytes of one pass of an encoder over `patches`, beside its input: its widest moment.

    A block holds the residual, its norm and its result at full width; attention adds
    `attention_copies` of the heads of one device, the feed-forward what goes into the activation
    and what comes out. `placing_copies` of the full width are held where learned positions are
    interpolated, before the first block, `gathering_copies` where hidden states of several blocks
    are put side by side, after the last. A mask has `mask_positions` for each patch.
    """
    full = hidden * ACTIVATION_BYTES
    attention = 3 * full + attention_copies * full / tensor
    feed = 2 * full + (3 if gated else 2) * intermediate * ACTIVATION_BYTES / tensor
    ends = max(placing_copies, gathering_copies) * full
    return patches * (max(attention, feed, ends) + mask_positions * ACTIVATION_BYTES)


def input_bytes(patches: float, patch: float, frames: float, value_bytes: float) -> float:
    """Bytes of the pixels, three colours, that lie on the device while they are encoded."""
    return patches * 3 * frames * patch * patch * value_bytes


def output_bytes(tokens: float, hidden: float, deepstack: int) -> float:
    """Bytes of encoder outputs, with the hidden states of `deepstack` layers beside each."""
    return tokens * hidden * ACTIVATION_BYTES * (1 + deepstack)


def steps_within(tokens: int, one: int, most: int | None = None) -> int:
    """How many steps of `one` token count fit, at least one and at most `most`."""
    fitting = max(1, tokens // max(one, 1))
    return fitting if most is None else min(fitting, most)


def items_within(budget: int, tokens: int, requests: int, per_request: int, *, whole: bool) -> int:
    """How many items of `tokens` a budget encodes at once, at least one.

    `whole`: only those that fit; otherwise the last one may exceed the budget.
    """
    within = budget // tokens if whole else ceil(budget / tokens)
    return max(1, min(within, requests * per_request))
