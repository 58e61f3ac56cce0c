"""Closed and open loops: identities that hold at any constants, and growth that physics demands."""

from __future__ import annotations

from collections.abc import Callable

import physics_models as models
import pytest
from physics_constants import LOAD, STEP, server, traffic, work

from capcheck.physics.lengths import lognormal
from capcheck.physics.live import live
from capcheck.physics.load import Burst, LoadState, closed_loop, open_loop, ttft_of_prompt
from capcheck.physics.preemption import Room
from capcheck.physics.server import Limits, Server, Speculation, tokens_per_step
from capcheck.physics.work import Layout

LLAMA, DEEPSEEK = models.llama_8b(), models.deepseek_v3()
HORIZON = 600.0


def test_one_request_alone() -> None:
    state = closed_loop(server(LLAMA), traffic(), 1)
    step = state.parts.seconds
    assert state.tpot_seconds == pytest.approx(step)  # nobody's prompts share its steps
    # nobody's step is in progress either: the request comes to an idle scheduler
    assert state.ttft_mean_seconds == pytest.approx(5e-3 + state.prefill_seconds)
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
    # who comes after ten minutes at twice the capacity waits ten minutes more: half in the mean
    assert state.ttft_mean_seconds == pytest.approx(HORIZON / 2, rel=0.1)


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
        closed_loop(server(LLAMA)._replace(poll_steps=steps), traffic(), 2) for steps in (1.0, 21.0)
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


def test_rooms_and_preemption() -> None:
    one = live(lognormal(800.0, 0.5, 8000.0), lognormal(200.0, 0.8, 4000.0))
    limits = Limits(50.0, 256.0, 8192.0, room=Room(one, 50.0 * one.mean))
    few, half, many = (
        closed_loop(server(LLAMA, limits), traffic(), count).preemption_probability
        for count in (10, 50, 100)
    )
    assert few == 0.0
    assert half == pytest.approx(0.5, abs=0.05)
    assert many == pytest.approx(1.0, abs=1e-6)
    rate = 0.9 * closed_loop(server(LLAMA, limits), traffic(), 50).requests_per_second
    random = open_loop(server(LLAMA, limits), traffic(), rate, HORIZON)
    assert 0.0 < random.preemption_probability < 0.5
    assert (
        open_loop(server(LLAMA, limits), traffic(), 3 * rate, HORIZON).preemption_probability > 0.9
    )
    reserved = limits._replace(room=None)  # guaranteed not to be evicted
    assert closed_loop(server(LLAMA, reserved), traffic(), 100).preemption_probability == 0.0
