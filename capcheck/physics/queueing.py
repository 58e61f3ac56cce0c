"""Waiting before service, in closed form. Seconds; loads are shares of the capacity."""

from __future__ import annotations

import math
from typing import NamedTuple

MOST_SLOTS = 1000


class Wait(NamedTuple):
    """A wait of an arriving request. Seconds."""

    mean: float
    median: float

    def plus(self, other: Wait) -> Wait:
        """Both waits, one after the other."""
        return Wait(self.mean + other.mean, self.median + other.median)


NO_WAIT = Wait(0.0, 0.0)


def _median_of(mean: float, waiting_share: float) -> float:
    """The median when a share waits, exponentially: 0 unless more than half do."""
    if waiting_share <= 0.5:
        return 0.0
    return mean / waiting_share * math.log(2.0 * waiting_share)


def prompt_wait(load: float, seconds: float, variation: float, most: float) -> Wait:
    """Waiting for the prompts before one's own: Pollaczek and Khinchine, at most `most`.

    `load` is the share of time that prompts are computed, `seconds` a mean prompt's, `variation`
    its squared coefficient of variation.
    """
    if load <= 0 or seconds <= 0 or most <= 0:
        return NO_WAIT
    load = min(load, 1.0)
    raw = load * seconds * (1.0 + max(variation, 0.0)) / 2.0
    if raw <= 0:  # too small for a float
        return NO_WAIT
    # harmonic sum of the stationary wait and the bound: the bound at a load of 1
    rate = (1.0 - load) / raw + 1.0 / most
    mean = 1.0 / rate if rate > 0 else most
    return Wait(mean, min(_median_of(mean, load), mean))


def slot_wait(load: float, slots: float, seconds: float) -> Wait:
    """Waiting for one of `slots`, each held for `seconds`: Erlang's M/M/c.

    `load` below 1. Slots are rounded down; beyond a thousand, the wait is that of a thousand.
    """
    if load <= 0 or slots <= 0 or seconds <= 0:
        return NO_WAIT
    load, count = min(load, 1.0 - 1e-9), max(1, min(int(slots), MOST_SLOTS))
    blocked = 1.0  # Erlang B by its recursion
    for busy in range(1, count + 1):
        blocked = load * count * blocked / (busy + load * count * blocked)
    share = blocked / (1.0 - load * (1.0 - blocked))
    mean = share * seconds / (count * (1.0 - load))
    return Wait(mean, _median_of(mean, share))


def burst_wait(prompts: float, seconds: float, share: float) -> Wait:
    """Waiting when `prompts` arrive at once and are computed one after the other.

    `share` of all requests come in the burst; the others do not wait for it.
    """
    if prompts <= 0 or share <= 0:
        return NO_WAIT
    share = min(share, 1.0)
    whole = prompts * seconds
    return Wait(share * whole / 2.0, whole * max(0.0, 1.0 - 0.5 / share))


def opening_queue(seconds: float, share: float, slots: float) -> Wait:
    """Waiting for slots when a `share` of all requests comes at once, the others one by one.

    A share `slots` of the burst runs at once, the rest of it waits evenly up to `seconds`; every
    later request waits all of it.
    """
    share, slots = min(max(share, 0.0), 1.0), min(max(slots, 0.0), 1.0)
    evenly = share * (1.0 - slots)
    mean = seconds * (1.0 - share + evenly / 2.0)
    if share <= 0.5:
        return Wait(mean, seconds)
    if share * slots >= 0.5:
        return Wait(mean, 0.0)
    return Wait(mean, seconds * (0.5 - share * slots) / evenly)
