"""Closed and open loops: identities that hold at any constants, and growth that physics demands."""

from __future__ import annotations

import math
from collections.abc import Callable

import physics_models as models
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_constants import LOAD, STEP, server, traffic, work

from capcheck.architecture import Architecture
from capcheck.physics.load import Burst, LoadState, closed_loop, open_loop, ttft_of_prompt
from capcheck.physics.server import Limits, Server, Speculation, Traffic, tokens_per_step
from capcheck.physics.work import Layout

LLAMA, DEEPSEEK = models.llama_8b(), models.deepseek_v3()
HORIZON = 600.0


def test_one_request_alone() -> None:
    state = closed_loop(server(LLAMA), traffic(), 1)
    step = state.parts.seconds
    assert state.tpot_seconds == pytest.approx(step)  # nobody's prompts share its steps
    assert state.ttft_mean_seconds == pytest.approx(5e-3 + state.prefill_seconds + step)
    cycle = state.ttft_mean_seconds + 200 * step
    assert state.output_tokens_per_second == pytest.approx(200 / cycle)
    assert (state.limited_by, state.saturated) == ("", False)
    assert state.binding == "bandwidth"


def test_requests_in_flight_obey_littles_law() -> None:
    state = closed_loop(server(LLAMA), traffic(), 64)
    # what is in flight = rate x (first token + outputs); the wait for prompts ahead is small
    inflight = state.requests_per_second * (state.ttft_mean_seconds + 200 * state.tpot_seconds)
    assert inflight == pytest.approx(64, rel=0.02)
    assert state.decode_batch < 64


def test_prompts_of_others_share_the_steps() -> None:
    state = closed_loop(server(LLAMA), traffic(), 64)
    rate = state.requests_per_second
    prompt = (state.tpot_seconds - state.parts.seconds) / (rate * state.tpot_seconds * 63 / 64)
    assert prompt == pytest.approx(state.prefill_seconds, rel=0.1)


def test_beyond_the_cache_requests_wait() -> None:
    limits = Limits(cache_requests=32.0, max_sequences=256.0, step_tokens=8192.0)
    full, over = (closed_loop(server(LLAMA, limits), traffic(), load) for load in (32, 96))
    assert not full.saturated
    assert over.saturated
    assert over.saturation == pytest.approx(3.0)
    assert (over.limited_by, over.binding) == ("kv cache", "memory capacity")
    assert over.running == 32
    assert over.output_tokens_per_second == pytest.approx(full.output_tokens_per_second, rel=0.02)
    wait = over.ttft_mean_seconds - full.ttft_mean_seconds
    assert wait == pytest.approx(64 / over.requests_per_second, rel=0.05)


def test_max_sequences_limit_too() -> None:
    limits = Limits(cache_requests=500.0, max_sequences=16.0)
    assert closed_loop(server(LLAMA, limits), traffic(), 32).limited_by == "max sequences"


def test_a_small_step_budget_limits_the_batch() -> None:
    limits = Limits(max_sequences=256.0, step_tokens=512.0)
    state = closed_loop(server(LLAMA, limits), traffic(prompt=4000.0), 200)
    assert state.limited_by == "step tokens"
    assert state.running == pytest.approx(512 / (1 + 4000 / 200))


def test_a_serial_front_end_limits_the_rate() -> None:
    slow = LOAD._replace(front_end_seconds=1e-3)
    state = closed_loop(server(LLAMA, load=slow), traffic(), 64)
    assert state.limited_by == "front end"
    assert state.output_tokens_per_second == pytest.approx(1000.0)


def test_a_burst_raises_the_mean_not_the_median() -> None:
    steady = closed_loop(server(LLAMA), traffic(), 64)
    burst = closed_loop(server(LLAMA), traffic(), 64, Burst(640))
    waited = burst.ttft_mean_seconds - steady.ttft_mean_seconds
    assert waited == pytest.approx(0.1 * 64 * steady.prefill_seconds / 2, rel=0.1)
    assert burst.ttft_median_seconds == steady.ttft_median_seconds
    assert burst.tpot_seconds == steady.tpot_seconds


def test_all_at_once_drain_in_waves() -> None:
    limits = Limits(cache_requests=50.0, max_sequences=256.0)
    loop = closed_loop(server(LLAMA, limits), traffic(), 500)
    drain = closed_loop(server(LLAMA, limits), traffic(), 500, Burst(500))
    assert drain.ttft_mean_seconds == pytest.approx(loop.ttft_mean_seconds / 2, rel=0.1)


def test_an_idle_open_loop_is_a_lonely_request() -> None:
    idle = open_loop(server(LLAMA), traffic(), 1e-6, HORIZON)
    alone = closed_loop(server(LLAMA), traffic(), 1)
    assert idle.tpot_seconds == pytest.approx(alone.tpot_seconds, rel=1e-3)
    assert idle.ttft_mean_seconds == pytest.approx(alone.ttft_mean_seconds, rel=1e-3)


def test_open_and_closed_loops_agree_on_the_capacity() -> None:
    limits = Limits(max_sequences=64.0)
    closed = closed_loop(server(LLAMA, limits), traffic(), 64)
    for factor in (0.5, 0.9):
        rate = factor * closed.requests_per_second
        state = open_loop(server(LLAMA, limits), traffic(), rate, HORIZON)
        assert state.saturation == pytest.approx(factor, rel=0.02)
        assert state.requests_per_second == pytest.approx(rate)
        assert state.decode_batch == pytest.approx(rate * 200 * state.tpot_seconds, rel=1e-6)


def test_beyond_the_capacity_a_backlog_grows() -> None:
    limits = Limits(max_sequences=64.0)
    fullest = closed_loop(server(LLAMA, limits), traffic(), 64).requests_per_second
    state = open_loop(server(LLAMA, limits), traffic(), 2 * fullest, HORIZON)
    assert state.saturated
    assert state.limited_by == "max sequences"
    assert state.requests_per_second == pytest.approx(fullest, rel=0.03)
    # after ten minutes at twice the capacity half of them still wait: a quarter of it in the mean
    assert state.ttft_mean_seconds == pytest.approx(HORIZON / 4, rel=0.1)


def test_cached_prefixes_shorten_the_first_token_and_the_steps() -> None:
    cold = closed_loop(server(LLAMA), traffic(4000.0), 64)
    warm = closed_loop(server(LLAMA), traffic(4000.0)._replace(prefix_hit_rate=0.75), 64)
    assert warm.ttft_mean_seconds < 0.6 * cold.ttft_mean_seconds
    assert warm.tpot_seconds < cold.tpot_seconds


@pytest.mark.parametrize(
    ("proposed", "acceptance", "tokens"),
    [(4, 0.8, 3.3616), (5, 0.0, 1.0), (3, 1.0, 4.0), (0, 0.9, 1.0)],
)
def test_tokens_of_a_verified_step(proposed: float, acceptance: float, tokens: float) -> None:
    assert tokens_per_step(proposed, acceptance) == pytest.approx(tokens)


def test_speculation_helps_small_batches_and_hurts_large_ones() -> None:
    plain = server(models.qwen3_32b(), Limits(max_sequences=4096.0))
    draft = work(models.llama_8b())
    speculating = plain._replace(speculation=Speculation(4, 0.6, draft))
    free = plain._replace(speculation=Speculation(4, 0.6))
    few = [closed_loop(one, traffic(100.0), 2).tpot_seconds for one in (plain, speculating, free)]
    many = [closed_loop(one, traffic(100.0), 3000).tpot_seconds for one in (plain, speculating)]
    assert few[2] < few[1] < few[0]
    assert many[1] > many[0]


def test_data_ranks_share_the_load() -> None:
    one = closed_loop(server(LLAMA), traffic(), 16)
    four = closed_loop(server(LLAMA, layout=Layout(data=4)), traffic(), 64)
    assert four.decode_batch == pytest.approx(one.decode_batch, rel=0.02)
    assert four.output_tokens_per_second == pytest.approx(
        4 * one.output_tokens_per_second, rel=0.02
    )


def test_balancing_ranks_costs_steps() -> None:
    state = closed_loop(server(DEEPSEEK, layout=Layout(data=8, expert=8)), traffic(), 8)
    assert state.ttft_mean_seconds > state.prefill_seconds + 11 * state.tpot_seconds


def test_polling_costs_steps() -> None:
    every, rarely = (
        closed_loop(server(LLAMA)._replace(poll_steps=steps), traffic(), 1) for steps in (1.0, 21.0)
    )
    waited = rarely.ttft_mean_seconds - every.ttft_mean_seconds
    assert waited == pytest.approx(0.5 * 20 * every.tpot_seconds, rel=0.01)


def test_stages_raise_throughput_not_the_speed_of_one() -> None:
    one = closed_loop(server(LLAMA), traffic(), 1)
    staged = closed_loop(server(LLAMA, layout=Layout(pipeline=4)), traffic(), 1)
    assert staged.tpot_seconds >= one.tpot_seconds
    wide = Limits(max_sequences=4096.0)
    many = closed_loop(server(LLAMA, wide), traffic(), 2000)
    staged_many = closed_loop(server(LLAMA, wide, Layout(pipeline=4)), traffic(), 2000)
    assert staged_many.output_tokens_per_second > 2 * many.output_tokens_per_second


def test_near_equal_lengths_move_in_waves() -> None:
    waving = LOAD._replace(wave_share=1.0)
    still, wave = (closed_loop(server(LLAMA, load=one), traffic(), 33) for one in (LOAD, waving))
    waited = wave.ttft_median_seconds - still.ttft_median_seconds
    assert waited == pytest.approx(32 * still.prefill_seconds / 2, rel=0.15)


def test_binding_constraints() -> None:
    assert closed_loop(server(LLAMA), traffic(8000.0, 50.0), 64).binding == "compute"
    slow_link = STEP._replace(all_reduce_seconds=500e-6)
    linked = Server(work(LLAMA, Layout(tensor=8)), slow_link, LOAD, Limits())
    assert closed_loop(linked, traffic(), 1).binding == "interconnect"
    costly = STEP._replace(layer_seconds=1e-3)
    assert closed_loop(server(LLAMA)._replace(step=costly), traffic(), 1).binding == "fixed cost"


def test_utilizations_are_shares_of_the_peak() -> None:
    state = closed_loop(server(LLAMA), traffic(), 1)
    weights = 2.0 * (8_030_261_248 - 128256 * 4096)
    cache = 131_072 * 1100
    decoding = state.decode_batch  # the rest of the time is prefill
    expected = (weights + cache) / 3.35e12 / state.tpot_seconds * decoding
    assert state.bandwidth_utilization == pytest.approx(expected / decoding, rel=0.01)
    busy = closed_loop(server(LLAMA), traffic(8000.0, 50.0), 64)
    assert 0.4 < busy.compute_utilization < 0.6  # under the 0.6 that products reach


def test_first_token_of_a_longer_prompt() -> None:
    one, mixed = server(LLAMA), traffic()
    state = closed_loop(one, mixed, 8)
    assert ttft_of_prompt(one, mixed, state, 1000.0) == pytest.approx(state.ttft_median_seconds)
    assert ttft_of_prompt(one, mixed, state, 8000.0) > 4 * state.ttft_median_seconds


@pytest.mark.parametrize(
    "call",
    [
        lambda: closed_loop(server(LLAMA), traffic(), 0),
        lambda: open_loop(server(LLAMA), traffic(), 0, HORIZON),
        lambda: open_loop(server(LLAMA), traffic(), 1, 0),
    ],
)
def test_no_load_raises(call: Callable[[], LoadState]) -> None:
    with pytest.raises(ValueError, match="positive"):
        call()


def _numbers(state: LoadState) -> list[float]:
    return [part for part in state if isinstance(part, float)] + list(state.parts)


loads = st.floats(0.01, 20_000)
prompts = st.floats(0, 200_000)
outputs = st.floats(0, 50_000)
limits = st.builds(
    Limits,
    st.one_of(st.just(math.inf), st.floats(0, 5000)),
    st.one_of(st.just(math.inf), st.floats(1, 5000)),
    st.one_of(st.just(math.inf), st.floats(256, 32_768)),
    st.just(math.inf),
)
shapes = st.builds(
    lambda prompt, output, hit: Traffic(
        prompt, output, prompt + output / 2, prompt * 0.7, 1.5, hit
    ),
    prompts, outputs, st.floats(0, 1),
)  # fmt: skip
layouts = st.sampled_from(
    [Layout(), Layout(tensor=4), Layout(data=4, expert=4), Layout(pipeline=2)]
)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from([LLAMA, DEEPSEEK]), layouts, limits, shapes, loads, st.booleans())
def test_every_state_is_finite_and_never_negative(
    architecture: Architecture,
    layout: Layout,
    bounds: Limits,
    shape: Traffic,
    load: float,
    arriving: bool,
) -> None:
    one = server(architecture, bounds, layout)
    if arriving:
        state = open_loop(one, shape, load, HORIZON)
    else:
        state = closed_loop(one, shape, load, Burst(10 * load))
    assert all(0 <= number < math.inf for number in _numbers(state))
    assert state.compute_utilization <= 1
    assert state.bandwidth_utilization <= 1
    assert state.saturated == (state.saturation > 1)


@settings(max_examples=100, deadline=None)
@given(limits, shapes, loads, st.floats(1, 3))
def test_more_in_flight_never_speeds_a_token_up(
    bounds: Limits, shape: Traffic, load: float, factor: float
) -> None:
    one, shape = server(LLAMA, bounds), shape._replace(output_tokens=shape.output_tokens + 50)
    fewer, more = (closed_loop(one, shape, count) for count in (load, load * factor))
    assert more.tpot_seconds >= fewer.tpot_seconds * (1 - 1e-4)
    assert more.output_tokens_per_second >= 0.98 * fewer.output_tokens_per_second


@settings(max_examples=100, deadline=None)
@given(limits, shapes, st.floats(0.01, 500), st.floats(1, 3))
def test_a_higher_rate_never_shortens_waits(
    bounds: Limits, shape: Traffic, rate: float, factor: float
) -> None:
    one = server(LLAMA, bounds)
    lower, higher = (open_loop(one, shape, each, HORIZON) for each in (rate, rate * factor))
    assert higher.tpot_seconds >= lower.tpot_seconds * (1 - 1e-6)
    assert higher.ttft_mean_seconds >= lower.ttft_mean_seconds * (1 - 1e-3)
    assert higher.saturation >= lower.saturation
