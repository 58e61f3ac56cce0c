"""What requests wait for besides the steps: a slot, a burst at the start, room in the cache."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.physics.balance import ALIKE, Balance
from capcheck.physics.batching import closed_rhythm
from capcheck.physics.preemption import preemption_probability
from capcheck.physics.queueing import (
    NO_WAIT,
    Wait,
    burst_wait,
    cohort_company,
    growing_wait,
    opening_queue,
    peakedness,
    slot_wait,
)
from capcheck.physics.rhythm import Rhythm
from capcheck.physics.server import Limit, Server, Traffic, admitted, places


class Full(NamedTuple):
    """One rank that runs as many requests as it admits."""

    rhythm: Rhythm
    running: float
    rate: float  # requests a second
    limit: Limit


def front_end_rate(balance: Balance) -> float:
    """Requests a second of one rank that a serial front end, shared by all, lets through."""
    per_token = balance.server.load.front_end_seconds * balance.server.work.layout.data
    return 1.0 / (per_token * balance.outputs) if per_token > 0 else math.inf


def fullest(server: Server, traffic: Traffic) -> Full:
    """A rank that always has requests waiting, and runs as many as it holds."""
    running, _ = places(server)
    balance = Balance(server, traffic)
    rhythm, front = closed_rhythm(balance, running, None), front_end_rate(balance)
    rate, limit = rhythm.rate, admitted(server, traffic)[1]
    return Full(rhythm, running, min(rate, front), "front end" if front < rate else limit)


def preemption_of(server: Server, requests: float, *, arriving: bool) -> float:
    """The probability that `requests` on a rank, those that wait for room included, outgrow it."""
    limits = server.limits
    if limits.room is None:
        return 0.0
    if requests >= limits.max_sequences:
        requests, arriving = limits.max_sequences, False
    if math.isinf(requests):
        return 1.0
    return preemption_probability(limits.room, requests, arriving=arriving)


def prompts_together(balance: Balance, running: float, rhythm: Rhythm, rounds: float) -> float:
    """Prompts of others that come in the step of one's own, more than by chance.

    Requests that began together end together, as far as their outputs are alike; a step takes up
    as many as its budget holds. Alike ones in a steady loop do so or not: `wave_share` of them.
    """
    traffic, load = balance.traffic, balance.server.load
    share = balance.prompt / balance.budget(running)
    most = min(running, 1.0 / share if share > 0 else running) - 1.0
    alike = max(traffic.output_variation, traffic.prompt_variation) < ALIKE
    if alike:  # where prompts go first, no decode parts them: half of all are ahead
        most = max(most, load.prefill_first * (running - 1.0) / 2.0)
        return load.wave_share * max(0.0, most - rhythm.meeting)
    count = min(math.ceil(rounds) - 1, 20)
    if count < 1:
        return 0.0
    beside = cohort_company(running, share, rhythm.steps, traffic.output_variation, count)
    return max(0.0, min(beside, most) - rhythm.meeting)


def opening_waits(
    balance: Balance, rhythm: Rhythm, queue: float, share: float, running: float, rounds: float
) -> tuple[Wait, Wait]:
    """The wait for a slot, and for the prompts of a burst at the start.

    In a burst each request waits for half of the others, and for those that share its step.
    """
    if not rounds:
        return Wait(queue, queue), NO_WAIT
    load, first = balance.server.load, min(1.0, 1.0 / rounds)
    budget = balance.budget(running)
    step = min(running, max(1.0, budget / balance.prompt if balance.prompt > 0 else running))
    each = balance.share * balance.stages
    seconds = load.burst_factor * each + load.arrival_seconds
    opening = burst_wait(running + step - 2.0, seconds, first)
    later = Wait(-first * min(rhythm.ahead, opening.mean / first), 0.0)
    return opening_queue(queue, first, share), opening.plus(later)


def slots_at_rate(
    balance: Balance, full: Full, rhythm: Rhythm, saturation: float, horizon: float
) -> Wait:
    """The wait for a slot of requests at a rate: stationary, or as it grows until the horizon."""
    traffic = balance.traffic
    arrivals, service = 1.0 / traffic.burstiness, traffic.output_variation
    growing = growing_wait(saturation, 1.0 / full.rate, arrivals + service, horizon)
    if saturation >= 1.0:
        return Wait(growing, growing)
    held = full.running / full.rate
    seconds = balance.outputs * rhythm.tpot + balance.prefill
    share = min(rhythm.batch / full.running, 0.999)
    empty = (seconds - share * held) / (1.0 - share)
    peak = peakedness(arrivals, service)
    if full.limit == "kv cache" and balance.server.limits.room is not None:
        one = balance.server.limits.room.one
        peak *= 1.0 + one.variance / one.mean**2
    wait = slot_wait(saturation, full.running, held, empty, arrivals + service, peak)
    if wait.mean <= 0:
        return NO_WAIT
    mean = 1.0 / (1.0 / wait.mean + 1.0 / growing) if growing > 0 else wait.mean
    return Wait(mean, wait.median * mean / wait.mean)
