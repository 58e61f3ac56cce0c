"""Latencies and throughput of a replica under load, in closed form.

A closed loop keeps a number of requests in flight, an open loop brings them at a rate. No result
is NaN, infinite or negative for finite, positive inputs.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from capcheck.physics.prompt import prompt_attention_seconds, prompt_products_seconds
from capcheck.physics.queueing import Wait, burst_wait, opening_queue, prompt_wait, slot_wait
from capcheck.physics.server import Balance, Limit, Server, Traffic, admitted
from capcheck.physics.step import StepConstants, StepParts, decode_step

Binding = Literal["memory capacity", "bandwidth", "compute", "interconnect", "fixed cost"]

BISECTIONS = 50
NEAR_FULL = 0.995  # load at which a stationary wait is read when the demand exceeds the capacity


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


class _Loop(NamedTuple):
    """A closed loop's requests, and the wait for a slot."""

    concurrency: float  # of the replica
    running: float  # on each rank
    queue: float  # seconds


class _Point(NamedTuple):
    """A solved balance of one rank."""

    batch: float
    running: float
    rate: float
    wait: Wait  # for a slot, prompts ahead and bursts
    limited_by: Limit
    saturation: float


def _front_end_rate(balance: Balance) -> float:
    """Requests a second of one rank that a serial front end, shared by all, lets through."""
    per_token = balance.server.load.front_end_seconds * balance.server.work.layout.data
    return 1.0 / (per_token * balance.outputs) if per_token > 0 else math.inf


def closed_loop(
    server: Server, traffic: Traffic, concurrency: float, burst: Burst | None = None
) -> LoadState:
    """The state with `concurrency` requests in flight on the replica, each re-issued when done.

    Raises ValueError unless the concurrency is positive.
    """
    if concurrency <= 0:
        raise ValueError("the concurrency must be positive")
    inflight = concurrency / server.work.layout.data
    most, limit = admitted(server, traffic)
    running = min(inflight, most)
    balance = Balance(server, traffic, running)
    others = max(running - 1.0, 0.0) * balance.share
    arrivals = max(running - 1.0, 0.0) * server.load.arrival_seconds
    wave = server.load.wave_share * (others + arrivals) / 2.0
    batch = balance.batch_of(running, wave)
    served, front = balance.rate(batch), _front_end_rate(balance)
    rate = min(served, front)
    first = balance.first_token_seconds(batch, balance.prefill)
    queue = max(0.0, inflight / rate - wave - first - balance.outputs * balance.tpot(batch))
    variation = traffic.prompt_variation
    ahead = prompt_wait(balance.prompt_load(batch), balance.share, variation, others)
    wait = _opening(balance, _Loop(concurrency, running, queue), burst).plus(ahead)
    limited: Limit = "front end" if served > front else (limit if inflight > most else "")
    saturation = max(inflight / most, served / front)
    wait = wait.plus(Wait(wave, wave))
    return _state(balance, _Point(batch, running, rate, wait, limited, saturation))


def _opening(balance: Balance, loop: _Loop, burst: Burst | None) -> Wait:
    """The wait for a slot, and for the prompts of a burst at the start."""
    if burst is None:
        return Wait(loop.queue, loop.queue)
    first = min(1.0, loop.concurrency / max(burst.prompts, 1.0))
    load = balance.server.load
    seconds = load.burst_factor * balance.share + load.arrival_seconds
    opening = burst_wait(loop.running, seconds, first)
    slots = min(1.0, loop.running * balance.server.work.layout.data / loop.concurrency)
    return opening.plus(opening_queue(loop.queue, first, slots))


def open_loop(
    server: Server, traffic: Traffic, requests_per_second: float, horizon_seconds: float
) -> LoadState:
    """The state when requests arrive at random at a rate on the replica.

    Beyond the capacity the backlog grows: waits are means over `horizon_seconds` of that load.
    Raises ValueError unless rate and horizon are positive.
    """
    if requests_per_second <= 0 or horizon_seconds <= 0:
        raise ValueError("rate and horizon must be positive")
    offered = requests_per_second / server.work.layout.data
    balance = Balance(server, traffic)
    full = _fullest(server, traffic)
    most, limit = full.running, full.limit
    saturation = offered / full.rate
    rate = min(offered, full.rate)
    batch = _batch_at(balance, rate, full.batch)
    running = min(most, rate * (balance.prefill + balance.outputs * balance.tpot(batch)))
    service = balance.prefill + balance.outputs * balance.tpot(batch)
    slots = slot_wait(min(saturation, NEAR_FULL), most, service)
    ahead = prompt_wait(
        rate * balance.share, balance.share, traffic.prompt_variation, most * balance.share
    )
    backlog = max(0.0, 1.0 - 1.0 / saturation) * horizon_seconds / 2.0
    wait = Wait(slots.mean + ahead.mean + backlog, slots.median + ahead.median + backlog)
    point = _Point(batch, running, rate, wait, limit if saturation > 1.0 else "", saturation)
    return _state(balance, point)


def ttft_of_prompt(
    server: Server, traffic: Traffic, state: LoadState, prompt_tokens: float
) -> float:
    """The median time to first token of requests with a certain prompt, in a solved state."""
    balance = Balance(server, traffic)
    longer = balance.prefill_of(prompt_tokens) - state.prefill_seconds
    own = server.load.own_prefill_factor
    return max(state.ttft_median_seconds + own * longer, balance.prefill_of(prompt_tokens))


class _Full(NamedTuple):
    """One rank that runs as many requests as it admits."""

    running: float
    batch: float
    rate: float  # requests a second
    limit: Limit


def _fullest(server: Server, traffic: Traffic) -> _Full:
    balance = Balance(server, traffic)
    most, limit = admitted(server, traffic)
    batch = balance.batch_of(most)
    rate, front = balance.rate(batch), _front_end_rate(balance)
    return _Full(most, batch, min(rate, front), "front end" if front < rate else limit)


def _batch_at(balance: Balance, rate: float, fullest: float) -> float:
    """The decode batch that completes `rate` requests a second, by bisection."""
    low, high = 0.0, fullest
    for _ in range(BISECTIONS):
        middle = (low + high) / 2.0
        if balance.rate(middle) < rate:
            low = middle
        else:
            high = middle
    return high


def _state(balance: Balance, point: _Point) -> LoadState:
    batch, ranks = point.batch, balance.server.work.layout.data
    middle = balance.prefill_of(balance.traffic.median_prompt_tokens)
    compute, bandwidth = _utilizations(balance, point)
    mean = balance.first_token_seconds(batch, balance.prefill) + point.wait.mean
    median = balance.first_token_seconds(batch, middle) + point.wait.median
    return LoadState(
        decode_batch=batch,
        running=point.running,
        tpot_seconds=balance.tpot(batch),
        prefill_seconds=middle,
        ttft_mean_seconds=mean,
        ttft_median_seconds=median,
        requests_per_second=point.rate * ranks,
        most_requests_per_second=_fullest(balance.server, balance.traffic).rate * ranks,
        output_tokens_per_second=point.rate * ranks * balance.outputs,
        compute_utilization=compute,
        bandwidth_utilization=bandwidth,
        binding=_binding(balance, point),
        limited_by=point.limited_by,
        saturation=point.saturation,
        saturated=point.saturation > 1.0,
        parts=balance.parts(batch),
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
    ideal = decode_step(work, point.batch / balance.stages, context, constants, verified)
    prompts = balance.prompt
    prefill = prompt_products_seconds(work, prompts, constants)
    prefill += prompt_attention_seconds(work, prompts, constants)
    steps = point.rate * balance.outputs / (balance.gain * max(point.batch, 1e-12))
    compute = steps * ideal.compute + point.rate * prefill / balance.stages
    return min(compute, 1.0), min(steps * ideal.memory, 1.0)


def _binding(balance: Balance, point: _Point) -> Binding:
    """What would have to grow for the load to be served faster."""
    if point.limited_by == "kv cache":
        return "memory capacity"
    parts = balance.parts(point.batch)
    shares: dict[Binding, float] = {
        "bandwidth": parts.memory / balance.gain,
        "compute": parts.compute / balance.gain + balance.interference(point.batch),
        "interconnect": parts.interconnect / balance.gain,
        "fixed cost": parts.fixed / balance.gain,
    }
    return max(shares, key=lambda name: shares[name])
