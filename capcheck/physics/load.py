"""Latencies and throughput of a replica under load, in closed form.

A closed loop keeps a number of requests in flight, an open loop brings them at a rate. No result
is NaN, infinite or negative for finite, positive inputs.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from capcheck.physics.balance import Balance
from capcheck.physics.batching import closed_rhythm, open_rhythm
from capcheck.physics.prompt import prompt_attention_seconds, prompt_products_seconds
from capcheck.physics.queueing import NO_WAIT, Wait, growing_wait
from capcheck.physics.rhythm import Rhythm
from capcheck.physics.server import Limit, Server, Traffic, admitted, places
from capcheck.physics.step import StepConstants, StepParts, decode_step
from capcheck.physics.waits import (
    Full,
    front_end_rate,
    fullest,
    opening_waits,
    preemption_of,
    prompts_together,
    slots_at_rate,
)

Binding = Literal["memory capacity", "bandwidth", "compute", "interconnect", "fixed cost"]


class Burst(NamedTuple):
    """All requests in flight come at once, and this many prompts in all."""

    prompts: float


class LoadState(NamedTuple):
    """A replica under a load. Seconds; batch and requests of each data-parallel rank."""

    decode_batch: float
    running: float  # requests admitted, those that prefill included
    tpot_seconds: float  # mean
    prefill_seconds: float  # the median prompt, idle
    ttft_mean_seconds: float
    ttft_median_seconds: float
    requests_per_second: float  # of the replica
    most_requests_per_second: float  # that the replica completes, as many as it admits running
    output_tokens_per_second: float  # of the replica
    compute_utilization: float  # of the peak FLOP/s
    bandwidth_utilization: float  # of the peak
    binding: Binding
    limited_by: Limit  # what keeps requests waiting; "" nothing
    saturation: float  # demand over what the server admits or completes
    saturated: bool
    parts: StepParts  # of a decode step, before speculation and prompts
    queued: Wait  # for a slot, within the time to first token
    ahead: Wait  # for the prompts of others, within the time to first token
    preemption_probability: float = 0.0  # that running requests outgrow the KV cache


class _Point(NamedTuple):
    """A solved rank and what its requests wait for besides."""

    rhythm: Rhythm
    running: float
    rate: float
    queued: Wait  # for a slot
    ahead: Wait  # for the prompts of a burst
    limited_by: Limit
    saturation: float
    full_rate: float  # requests a second when as many run as can
    preemption: float


def closed_loop(
    server: Server, traffic: Traffic, concurrency: float, burst: Burst | None = None
) -> LoadState:
    """The state with `concurrency` requests in flight on the replica, each re-issued when done.

    Raises ValueError unless the concurrency is positive.
    """
    if concurrency <= 0:
        raise ValueError("the concurrency must be positive")
    inflight = concurrency / server.work.layout.data
    running, _ = places(server)
    most, limit = admitted(server, traffic)
    running = min(inflight, running)
    balance = Balance(server, traffic)
    way = server.load.admission_seconds if inflight <= running else None
    rhythm = closed_rhythm(balance, running, way)
    rounds = 0.0 if burst is None else burst.prompts / concurrency
    together = prompts_together(balance, running, rhythm, rounds)
    if together > 0:
        rhythm = closed_rhythm(balance, running, way, together)
    front = front_end_rate(balance)
    rate = min(rhythm.rate, front)
    queue = max(0.0, inflight / rate - running / rhythm.rate)
    if way is None:  # who waits at least misses the step in progress
        back = closed_rhythm(balance, running, server.load.admission_seconds)
        queue = max(queue, back.first - rhythm.first)
    share = running / inflight
    queued, ahead = opening_waits(balance, rhythm, queue, share, running, rounds)
    limited: Limit = limit if inflight > most else ""
    if rhythm.rate > front:
        limited = "front end"
    full = max(fullest(server, traffic).rate, rate)
    saturation = max(inflight / most, rhythm.rate / front)
    preemption = preemption_of(server, inflight, arriving=False)
    point = _Point(
        rhythm, min(inflight, most), rate, queued, ahead, limited, saturation, full, preemption
    )
    return _state(balance, point)


def open_loop(
    server: Server, traffic: Traffic, requests_per_second: float, horizon_seconds: float
) -> LoadState:
    """The state when requests arrive on the replica at a rate, at random or in bursts.

    Beyond the capacity the backlog grows: waits are means over `horizon_seconds` of that load.
    Raises ValueError unless rate and horizon are positive.
    """
    if requests_per_second <= 0 or horizon_seconds <= 0:
        raise ValueError("rate and horizon must be positive")
    offered = requests_per_second / server.work.layout.data
    balance, full = Balance(server, traffic), fullest(server, traffic)
    saturation = offered / full.rate
    if saturation < 1.0:
        rhythm = open_rhythm(balance, offered, full.rhythm)
        variation = 1.0 / traffic.burstiness + balance.variation
        rhythm = rhythm.within(growing_wait(saturation, rhythm.prompt, variation, horizon_seconds))
    else:
        rhythm = full.rhythm
    queued = slots_at_rate(balance, full, rhythm, saturation, horizon_seconds)
    if saturation < 1.0:
        rhythm, queued = _no_worse(rhythm, queued, full, balance, horizon_seconds)
    decoding = balance.outputs * rhythm.tpot
    rate = min(offered, full.rate)
    inside = full.running
    if saturation < 1.0:
        first = max(rhythm.first - server.load.admission_seconds, 0.0)
        inside = min(rate * (first + decoding), full.running)
    limited: Limit = full.limit if saturation > 1.0 else ""
    preemption = preemption_of(server, inside if saturation < 1.0 else math.inf, arriving=True)
    point = _Point(
        rhythm, inside, rate, queued, NO_WAIT, limited, saturation, full.rate,
        preemption,
    )  # fmt: skip
    return _state(balance, point)


def _no_worse(
    rhythm: Rhythm, queued: Wait, full: Full, balance: Balance, horizon: float
) -> tuple[Rhythm, Wait]:
    """A load below the capacity with waits no longer than those at the capacity."""
    at_capacity = slots_at_rate(balance, full, full.rhythm, 1.0, horizon)
    excess = max(0.0, rhythm.first + queued.mean - full.rhythm.first - at_capacity.mean)
    left = max(0.0, queued.mean - excess)
    excess -= queued.mean - left
    ahead = max(0.0, rhythm.ahead - excess)
    first = rhythm.first - rhythm.ahead + ahead
    return rhythm._replace(first=first, ahead=ahead), Wait(left, min(queued.median, left))


def ttft_of_prompt(
    server: Server, traffic: Traffic, state: LoadState, prompt_tokens: float
) -> float:
    """The median time to first token of requests with a certain prompt, in a solved state."""
    balance = Balance(server, traffic)
    longer = balance.prefill_of(prompt_tokens) - state.prefill_seconds
    own = server.load.own_prefill_factor
    return max(state.ttft_median_seconds + own * longer, balance.prefill_of(prompt_tokens))


def _state(balance: Balance, point: _Point) -> LoadState:
    rhythm, ranks = point.rhythm, balance.server.work.layout.data
    middle = balance.prefill_of(balance.traffic.median_prompt_tokens)
    compute, bandwidth = _utilizations(balance, point)
    median = rhythm.median
    wait = point.queued.plus(point.ahead)
    batch = min(rhythm.batch, point.rate * balance.outputs * rhythm.tpot)
    return LoadState(
        decode_batch=batch,
        running=point.running,
        tpot_seconds=rhythm.tpot,
        prefill_seconds=middle,
        ttft_mean_seconds=max(rhythm.first + wait.mean, 0.0),
        ttft_median_seconds=max(median + wait.median, middle),
        requests_per_second=point.rate * ranks,
        most_requests_per_second=point.full_rate * ranks,
        output_tokens_per_second=point.rate * ranks * balance.outputs,
        compute_utilization=compute,
        bandwidth_utilization=bandwidth,
        binding=_binding(balance, point),
        limited_by=point.limited_by,
        saturation=point.saturation,
        saturated=point.saturation > 1.0,
        parts=balance.parts(rhythm.batch),
        queued=point.queued,
        ahead=Wait(rhythm.ahead, rhythm.ahead).plus(point.ahead),
        preemption_probability=point.preemption,
    )


def _ideal(constants: StepConstants) -> StepConstants:
    return constants._replace(
        weight_efficiency=1.0, expert_efficiency=1.0, cache_efficiency=1.0,
        dense_utilization=1.0, expert_utilization=1.0,
        attention_utilization=1.0, latent_utilization=1.0, expert_imbalance=0.0,
    )  # fmt: skip


def _utilizations(balance: Balance, point: _Point) -> tuple[float, float]:
    """Shares of the peak FLOP/s and of the peak bandwidth that the work done amounts to."""
    work, constants = balance.server.work, _ideal(balance.server.step)
    context, verified = balance.traffic.context_tokens, 1.0 + balance.proposed
    ideal = decode_step(work, point.rhythm.batch / balance.stages, context, constants, verified)
    prompts = balance.prompt
    prefill = prompt_products_seconds(work, prompts, constants)
    prefill += prompt_attention_seconds(work, prompts, constants)
    steps = point.rate * balance.outputs / (balance.gain * max(point.rhythm.batch, 1e-12))
    compute = steps * ideal.compute + point.rate * prefill / balance.stages
    return min(compute, 1.0), min(steps * ideal.memory, 1.0)


def _binding(balance: Balance, point: _Point) -> Binding:
    """What would have to grow for the load to be served faster."""
    if point.limited_by == "kv cache":
        return "memory capacity"
    parts = balance.parts(point.rhythm.batch)
    prompts = point.rhythm.tpot - balance.step(point.rhythm.batch) / balance.gain
    shares: dict[Binding, float] = {
        "bandwidth": parts.memory / balance.gain,
        "compute": parts.compute / balance.gain + max(prompts, 0.0),
        "interconnect": parts.interconnect / balance.gain,
        "fixed cost": parts.fixed / balance.gain,
    }
    return max(shares, key=lambda name: shares[name])
