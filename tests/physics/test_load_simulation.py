"""The closed forms of the load against continuous batching, simulated step by step.

Both take the same seconds for a step, so only the law of the load is compared. Tolerances: 10 % on
the time per output token and the throughput, 25 % on the time to first token, unless a case says
why not. Simulated means have a standard error of 1 to 5 %.
"""

from __future__ import annotations

import math
from typing import Any

import physics_models as models
import pytest
from physics_constants import LOAD, server, work
from simulated_rank import Scenario, Shape, fixed, lognormal, uniform
from simulation import Outcome, simulate

from capcheck.physics.lengths import lognormal as declared_lognormal
from capcheck.physics.live import live
from capcheck.physics.load import Burst, LoadState, closed_loop, open_loop
from capcheck.physics.preemption import Room
from capcheck.physics.server import Limits, Server
from capcheck.physics.work import Layout

# What the simulated engine does: it looks for requests between steps, and has no other costs.
IDEAL = LOAD._replace(
    admission_seconds=2e-3, waited_steps=0.5, poll_share=0.0, balance_steps=0.0, wave_share=0.0
)
WAVES = IDEAL._replace(wave_share=1.0)
LLAMA, QWEN, OSS = models.llama_8b(), models.qwen3_32b(), models.gpt_oss_120b()
WIDE = Limits(max_sequences=256.0, step_tokens=8192.0)
ONE = server(LLAMA, WIDE, load=IDEAL)
SERVERS = {
    "8b": ONE,
    "32b tp4": server(QWEN, WIDE, Layout(tensor=4), load=IDEAL),
    "oss tp2": server(OSS, WIDE, Layout(tensor=2), load=IDEAL),
}
CHAT = (lognormal(1000, 0.8), lognormal(200, 0.8))
LONG = (lognormal(8000, 0.5), lognormal(100, 0.5))


def closed(one: Server, lengths: tuple[Shape, Shape], inflight: int, **more: Any) -> Scenario:
    count = max(600, min(12 * inflight, 2400))
    return Scenario(one, *lengths, count, concurrency=inflight)._replace(**more)


def opened(one: Server, lengths: tuple[Shape, Shape], load: float, **more: Any) -> Scenario:
    """At a share of the capacity."""
    found = Scenario(one, *lengths, 3000, rate=1.0)._replace(**more)
    most = closed_loop(one, found.traffic, 1.0).most_requests_per_second
    return found._replace(rate=load * most)


def predicted(scenario: Scenario) -> LoadState:
    one, traffic = scenario.server, scenario.traffic
    if scenario.concurrency is not None:
        burst = Burst(scenario.requests) if scenario.burst else None
        return closed_loop(one, traffic, scenario.concurrency, burst)
    assert scenario.rate is not None
    return open_loop(one, traffic, scenario.rate, scenario.requests / scenario.rate)


def compare(
    scenario: Scenario, *, tpot: float = 0.1, first: float = 0.25, median: float = 0.25
) -> tuple[LoadState, Outcome]:
    state, seen = predicted(scenario), simulate(scenario)
    assert state.tpot_seconds == pytest.approx(seen.tpot_mean, rel=tpot)
    assert state.ttft_mean_seconds == pytest.approx(seen.ttft_mean, rel=first)
    assert state.ttft_median_seconds == pytest.approx(seen.ttft_median, rel=median)
    assert state.requests_per_second == pytest.approx(seen.requests_per_second, rel=0.1)
    assert state.decode_batch == pytest.approx(seen.decode_batch, rel=max(tpot, 0.1))
    return state, seen


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("requests", [1, 2, 16, 64, 256])
def test_chat_in_a_closed_loop(name: str, requests: int) -> None:
    # one mixture of experts alone reads most experts for any prompt: its median is that of a
    # prompt whose time hardly grows with its length
    compare(closed(SERVERS[name], CHAT, requests), median=0.3)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("requests", [4, 32, 128])
def test_long_prompts_in_a_closed_loop(name: str, requests: int) -> None:
    compare(closed(SERVERS[name], LONG, requests), median=0.3)


@pytest.mark.parametrize("name", SERVERS)
@pytest.mark.parametrize("load", [0.1, 0.3, 0.7])
def test_chat_at_a_rate(name: str, load: float) -> None:
    # the experts that few requests touch depend on who is there: an average over their number
    compare(opened(SERVERS[name], CHAT, load), tpot=0.15)


@pytest.mark.parametrize("load", [0.3, 0.7])
def test_long_prompts_at_a_rate(load: float) -> None:
    # prompts come in clusters that the closed form only has in the mean
    compare(opened(ONE, LONG, load), tpot=0.2)


@pytest.mark.parametrize("chunk", [512.0, 2048.0])
def test_a_small_budget_takes_prompts_in_chunks(chunk: float) -> None:
    one = server(LLAMA, Limits(max_sequences=256.0, step_tokens=chunk), load=IDEAL)
    lengths = lognormal(4000, 0.5), lognormal(200, 0.5)
    # a queue of long prompts is more skewed than a lognormal
    compare(closed(one, lengths, 16), median=0.35)
    state, _ = compare(closed(one, lengths, 64), median=0.35)
    assert state.saturated == (chunk == 512.0)
    compare(opened(one, lengths, 0.5))


@pytest.mark.parametrize("requests", [16, 128])
def test_a_test_that_begins_with_a_burst(requests: int) -> None:
    ranged = uniform(800, 1000), uniform(160, 200)
    compare(closed(ONE, ranged, requests, burst=True, requests=10 * requests))
    alike = closed(ONE._replace(load=WAVES), (fixed(1000), fixed(200)), requests)
    compare(alike._replace(burst=True, requests=10 * requests), median=0.35)


def test_waves_of_alike_requests_are_as_large_as_a_step() -> None:
    alike = closed(ONE._replace(load=WAVES), (fixed(1000), fixed(200)), 128)
    state, seen = compare(alike)
    assert seen.ttft_mean > 4 * closed_loop(ONE, alike.traffic, 128).prefill_seconds
    assert state.ttft_mean_seconds < 20 * state.prefill_seconds


def test_few_slots_make_requests_wait() -> None:
    one = server(LLAMA, Limits(max_sequences=8.0, step_tokens=8192.0), load=IDEAL)
    lengths = lognormal(500, 0.8), lognormal(200, 0.8)
    state, _ = compare(closed(one, lengths, 16))
    assert (state.limited_by, state.saturation) == ("max sequences", 2.0)
    # the wait of rare crowds: one run of 12,000 requests is still 30 % uncertain
    compare(opened(one, lengths, 0.8, requests=12_000), first=0.5, median=0.6)


@pytest.mark.parametrize("reserved", [False, True])
@pytest.mark.parametrize("requests", [8, 16, 48, 96])
def test_a_small_cache(reserved: bool, requests: int) -> None:
    tokens, output = 40_000.0, lognormal(400, 0.8)
    half = output.mean * (1.0 + output.variation) / 2.0
    held = 1000.0 + half * (2.0 if reserved else 1.0)
    limits = Limits(tokens / held, 256.0, 8192.0)
    one = server(LLAMA, limits, load=IDEAL)
    scenario = closed(one, (lognormal(1000, 0.5), output), requests, cache_tokens=tokens)
    scenario = scenario._replace(reserved=reserved, requests=max(600, 10 * requests))
    _, seen = compare(scenario)
    assert (seen.preempted > 0) == (not reserved and requests > 24)


def test_preemptions_begin_where_their_probability_rises() -> None:
    prompt, output = lognormal(1000, 0.5), lognormal(400, 0.8)
    one = live(
        declared_lognormal(prompt.median, 0.5, math.inf),
        declared_lognormal(output.median, 0.8, math.inf),
    )
    limits = Limits(40_000.0 / one.mean, 256.0, 8192.0, room=Room(one, 40_000.0))
    replica = server(LLAMA, limits, load=IDEAL)
    chances, seen = [], []
    for requests in (8, 21, 26, 40):
        scenario = closed(replica, (prompt, output), requests, cache_tokens=40_000.0)
        chances.append(predicted(scenario).preemption_probability)
        seen.append(simulate(scenario).preempted)
    assert chances[0] < 1e-3 < chances[1] < 0.1 < chances[2] < 0.9 < chances[3]
    assert seen[0] == 0.0
    assert seen[1] < seen[2] < seen[3]


@pytest.mark.parametrize("router", ["least", "random", "turn"])
def test_ranks_that_serve_alone(router: str) -> None:
    one = server(LLAMA, WIDE, Layout(data=4), load=IDEAL)
    compare(closed(one, CHAT, 64, router=router))
    compare(opened(one, CHAT, 0.6, router=router))


@pytest.mark.parametrize("requests", [64, 256])
def test_ranks_that_share_experts_wait_for_the_busiest(requests: int) -> None:
    one = server(OSS, WIDE, Layout(data=4, expert=4), load=IDEAL)
    state, _ = compare(closed(one, CHAT, requests))
    alone = closed_loop(server(OSS, WIDE, load=IDEAL), closed(one, CHAT, 64).traffic, requests / 4)
    assert state.tpot_seconds > 0.5 * alone.tpot_seconds


@pytest.mark.parametrize("requests", [1, 8, 64])
def test_batches_of_a_pipeline_wait_for_each_other(requests: int) -> None:
    one = server(QWEN, WIDE, Layout(pipeline=4), load=IDEAL)
    compare(closed(one, CHAT, requests), median=0.35)


@pytest.mark.parametrize("burstiness", [0.25, 4.0])
@pytest.mark.parametrize("load", [0.3, 0.7])
def test_bursts_of_requests_wait_for_each_other(burstiness: float, load: float) -> None:
    # arrivals of shape 1/4 cluster: half of them come within a sixth of the mean gap
    scenario = opened(ONE, CHAT, load, burstiness=burstiness)
    state, seen = compare(scenario, tpot=0.15, median=0.35)
    even = predicted(scenario._replace(burstiness=1.0))
    assert (state.ttft_mean_seconds > even.ttft_mean_seconds) == (burstiness < 1)
    assert (seen.ttft_mean > simulate(scenario._replace(burstiness=1.0)).ttft_mean) == (
        burstiness < 1
    )


def test_beyond_the_capacity_the_backlog_grows() -> None:
    scenario = opened(ONE, CHAT, 2.0)
    state, seen = predicted(scenario), simulate(scenario)
    assert state.saturated
    assert state.tpot_seconds == pytest.approx(seen.tpot_mean, rel=0.1)
    # counted are requests from a third to nine tenths of all: 0.617 of the horizon, not a half
    grown = state.ttft_mean_seconds * (1 / 3 + 0.9)
    assert grown == pytest.approx(seen.ttft_mean, rel=0.25)


def test_cached_prefixes() -> None:
    lengths = lognormal(4000, 0.5), lognormal(200, 0.5)
    compare(closed(ONE, lengths, 32, hit=0.5))


def test_the_simulation_obeys_littles_law_and_repeats() -> None:
    scenario = closed(ONE, CHAT, 32)
    seen = simulate(scenario)
    assert seen == simulate(scenario)
    cycle = seen.ttft_mean + 199 * seen.tpot_mean
    assert seen.requests_per_second * cycle == pytest.approx(32, rel=0.05)


def test_one_request_alone_takes_what_its_steps_take() -> None:
    bare = server(LLAMA, WIDE, load=IDEAL._replace(admission_seconds=0.0))
    seen = simulate(closed(bare, (fixed(1000), fixed(100)), 1))
    assert work(LLAMA) == bare.work
    state = closed_loop(bare, closed(bare, (fixed(1000), fixed(100)), 1).traffic, 1)
    assert seen.ttft_mean == pytest.approx(state.prefill_seconds)
    assert seen.tpot_mean == pytest.approx(state.tpot_seconds, rel=1e-3)
