"""Closed and open loops: what holds for every server and traffic."""

from __future__ import annotations

import math

import physics_models as models
from hypothesis import given, settings
from hypothesis import strategies as st
from physics_constants import H100, server, work

from capcheck.architecture import Architecture
from capcheck.physics.load import Burst, closed_loop, open_loop
from capcheck.physics.server import Limits, Traffic
from capcheck.physics.work import Layout

LLAMA, DEEPSEEK = models.llama_8b(), models.deepseek_v3()
HORIZON = 600.0


def _numbers(record: object) -> list[float]:
    """All figures of a record, those of the records in it included."""
    if isinstance(record, tuple):
        return [number for part in record for number in _numbers(part)]
    return [record] if isinstance(record, float) else []


loads = st.floats(0.01, 20_000)
prompts = st.floats(0, 200_000)
outputs = st.floats(0, 50_000)
limits = st.builds(
    lambda cache, sequences, tokens, chunk: Limits(cache, sequences, tokens, chunk),
    st.one_of(st.just(math.inf), st.floats(0, 5000)),
    st.one_of(st.just(math.inf), st.floats(1, 5000)),
    st.one_of(st.just(math.inf), st.floats(512, 32_768)),
    st.one_of(st.just(math.inf), st.floats(512, 32_768)),
)
shapes = st.builds(
    lambda prompt, output, hit, spread, bursts: Traffic(
        prompt, output, prompt + output * (1 + spread) / 2, prompt * 0.7, 1.5, hit, spread, bursts
    ),
    prompts, outputs, st.floats(0, 1), st.floats(0, 3), st.floats(0.1, 10),
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
    # a lone prompt in chunks hides its products behind reads; with decodes it does not
    if load >= 2:
        assert more.output_tokens_per_second >= 0.98 * fewer.output_tokens_per_second


@settings(max_examples=100, deadline=None)
@given(limits, shapes, st.floats(0.01, 500), st.floats(1, 3))
def test_a_higher_rate_never_shortens_waits(
    bounds: Limits, shape: Traffic, rate: float, factor: float
) -> None:
    # at random: what a cluster of prompts does to its own decodes fades as load joins clusters
    one = server(LLAMA, bounds)
    shape = shape._replace(output_tokens=shape.output_tokens + 50, burstiness=1.0)
    lower, higher = (open_loop(one, shape, each, HORIZON) for each in (rate, rate * factor))
    assert higher.tpot_seconds >= lower.tpot_seconds * (1 - 2e-2)
    assert higher.ttft_mean_seconds >= lower.ttft_mean_seconds * (1 - 1e-2)
    assert higher.saturation >= lower.saturation


@settings(max_examples=80, deadline=None)
@given(
    st.sampled_from([LLAMA, DEEPSEEK]), layouts, shapes, st.floats(0.1, 2000), st.floats(1, 4),
    st.sampled_from(["bandwidth", "attention_flops", "link_bandwidth"]), st.booleans(),
)  # fmt: skip
def test_a_faster_machine_is_never_slower(
    architecture: Architecture, layout: Layout, shape: Traffic, load: float, factor: float,
    part: str, arriving: bool,
) -> None:  # fmt: skip
    states = []
    for machine in (H100, H100._replace(**{part: getattr(H100, part) * factor})):
        one = server(architecture, None, layout)
        one = one._replace(work=work(architecture, layout, machine=machine))
        shape = shape._replace(burstiness=1.0)
        if arriving:
            states.append(open_loop(one, shape, load, HORIZON))
        else:
            states.append(closed_loop(one, shape, load))
    slow, fast = states
    assert fast.output_tokens_per_second >= slow.output_tokens_per_second * (1 - 2e-2)
    assert fast.most_requests_per_second >= slow.most_requests_per_second * (1 - 2e-2)
    if arriving:
        assert fast.tpot_seconds <= slow.tpot_seconds * (1 + 2e-2)


@settings(max_examples=100, deadline=None)
@given(limits, shapes, loads, st.booleans())
def test_no_more_is_served_than_the_capacity(
    bounds: Limits, shape: Traffic, load: float, arriving: bool
) -> None:
    one = server(LLAMA, bounds)
    state = open_loop(one, shape, load, HORIZON) if arriving else closed_loop(one, shape, load)
    assert state.requests_per_second <= state.most_requests_per_second * (1 + 1e-9)
    assert state.running <= max(load, bounds.max_sequences)
    assert state.decode_batch <= state.running + 1e-6 or arriving
