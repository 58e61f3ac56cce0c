"""Waiting before service, in closed form. Seconds; loads are shares of the capacity."""

from __future__ import annotations

import math
from typing import NamedTuple

MOST_SLOTS = 1000
NOTHING = 1e-12  # share of a budget: less is none
SHORTEST = 1e-9  # of a step, in ways to the scheduler


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


def slot_wait(
    load: float,
    slots: float,
    seconds: float,
    empty_seconds: float | None = None,
    variation: float = 2.0,
    peak: float = 1.0,
) -> Wait:
    """Waiting for one of `slots`, each held for `seconds` when all are held: Erlang's M/M/c.

    With fewer they are held for less, `empty_seconds` when there are none: births and deaths with
    n / T(n). `variation` is the sum of the squared coefficients of variation of arrivals and
    services, that scales the wait by its half (Allen and Cunneen, 1978); `peak` the peakedness of
    the requests in service, by which slots come in lumps (Hayward; Fredericks, 1980). `load` below
    1. Slots are rounded down; beyond a thousand, they come in lumps too.
    """
    if load <= 0 or slots <= 0 or seconds <= 0:
        return NO_WAIT
    load = min(load, 1.0 - 1e-9)
    count = max(1, min(int(slots / max(peak, 1e-3)), MOST_SLOTS))
    low = seconds if empty_seconds is None else min(max(empty_seconds, 0.0), seconds)
    term, total, rest = 1.0, 0.0, (seconds - low) / seconds
    for busy in range(count, 0, -1):  # probability of one busy slot fewer, over that of all
        share = busy / count
        term *= share / (load * (1.0 - rest + rest * share)) if share < 1.0 else 1.0 / load
        total += term
        if term < 1e-7 * total:
            break
    full = 1.0 / (1.0 - load)
    waiting = full / (full + total)
    mean = waiting * seconds / (max(slots, 1.0) * (1.0 - load)) * max(variation, 0.0) / 2.0
    return Wait(mean, _median_of(mean, waiting))


def growing_wait(load: float, each: float, variation: float, horizon: float) -> float:
    """Mean wait over a time in which nothing waits at first, when one request takes `each`.

    Above a load of 1 the wait grows by load - 1 a second; by chance it grows with the root of time:
    a reflected Brownian motion without drift has the mean sqrt(2 v t / pi), here v = each x the sum
    of the squared coefficients of variation (Harrison, 1985).
    """
    chance = math.sqrt(2.0 * each * max(variation, 0.0) * horizon / math.pi) * 2.0 / 3.0
    return max(0.0, load - 1.0) * horizon / 2.0 + chance


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


def residual_steps(step: float, way: float) -> float:
    """Steps from the end of a step to the next start that finds a request on its way back.

    The way takes an exponential time of mean `way` and steps follow each other: 1 / (1 - e^-s/w).
    """
    if step <= 0 or way <= 0:
        return 1.0
    return 1.0 / -math.expm1(-max(step / way, SHORTEST))


def budget_load(running: float, steps: float, share: float, spread: float) -> float:
    """The share of a step's prompt budget that a closed loop uses.

    Each of `running` requests comes back after `steps` and a queue of spread x u / (1 - u) times
    the `share` of a budget that its prompt takes (Pollaczek and Khinchine in steps). Little's law
    for u is quadratic: u N / share + spread u^2 / (1 - u) = running.
    """
    if share <= NOTHING or running <= 0:
        return 0.0
    length = steps / share
    square, line = spread - length, length + running
    root = math.sqrt(max(line * line + 4.0 * square * running, 0.0))
    return min(2.0 * running / (line + root), 1.0 - 1e-9)


def most_of_poisson(mean: float, count: float) -> float:
    """Mean of the largest of `count` independent Poisson counts: the sum of 1 - F(k)^count."""
    if mean <= 0 or count <= 1:
        return mean
    if mean > 100.0:  # normal, and the largest of so many (Blom)
        return mean + math.sqrt(2.0 * mean * math.log(count))
    term = below = math.exp(-mean)
    total, at = 1.0 - float(below**count), 0
    while below < 1.0 - 1e-9 and at < 1000:
        at += 1
        term *= mean / at
        below = min(below + term, 1.0)
        total += 1.0 - float(below**count)
    return total


def peakedness(arrivals: float, service: float) -> float:
    """Variance over mean of the requests in service, when all that come are served at once.

    `arrivals` and `service` are squared coefficients of variation of the time between requests and
    of their duration. 1 + (ca^2 - 1) x the mean of the survival function's square: 1 for alike
    durations, 1/2 for exponential ones. Whitt, "Heavy-traffic approximations for service systems
    with blocking", 1984.
    """
    return max(0.0, 1.0 + (arrivals - 1.0) / (1.0 + min(service, 1.0)))


def gated_wait(load: float, rate: float, second: float, beside: float = 1.0) -> float:
    """Waiting for the prompts of others where each step takes up all that came in the one before.

    `second` is the mean square of a prompt's seconds. A step lasts S' = D + the prompts that came
    in S: Var S = rate x second x E S / (1 - load^2); one who arrives sees steps by their length,
    half of the one in progress and, in the next, the prompts that came `beside`:
    (1/2 + load) E S^2 / E S. Takagi, "Queueing Analysis", 1991, gated vacations.
    """
    return (0.5 + load * beside) * rate * second / (1.0 - load * load)


def company(expected: float, arrivals: float) -> float:
    """More requests than by chance close to one, on either side of it.

    `expected` come by chance. Far away a renewal process has (ca^2 - 1) / 2 more (Cox, "Renewal
    Theory", 1962); near it, the root of the time is between the gamma processes of shape 1/4 and
    1/2. Regular arrivals have none.
    """
    near = math.sqrt(expected / (expected + 0.3)) if expected > 0 else 0.0
    return max((arrivals - 1.0) / 2.0 * near, -expected)


def cohort_company(
    running: float, share: float, steps: float, variation: float, count: int
) -> float:
    """Requests that come in the step of one's own after a burst, mean over the rounds that follow.

    All `running` begin in `running` x `share` steps; each round spreads them by the deviation of a
    request's `steps`, as wide as an even spread of that variance, but not beyond a round.
    """
    total = 0.0
    for number in range(1, count + 1):
        wide = math.sqrt((running * share) ** 2 + 12.0 * number * variation * steps * steps)
        total += (running - 1.0) / max(1.0, min(wide, max(steps, 1.0)))
    return total / count if count else 0.0
