"""A decode step and a prompt, against sums done by hand; and what physics says of their growth."""

from __future__ import annotations

import math

import physics_models as models
import pytest
from hypothesis import given
from hypothesis import strategies as st
from physics_constants import H100, STEP, work

from capcheck.physics.prompt import (
    attended_pairs,
    prefill_seconds,
    prefill_share_seconds,
    prompt_attention_seconds,
)
from capcheck.physics.step import (
    decode_step,
    decode_step_seconds,
    exchange_seconds,
    fixed_seconds,
    overlap,
    touched_share,
)
from capcheck.physics.work import Layout

ARCHITECTURES = {
    name: getattr(models, name)() for name in ("llama_8b", "gpt_oss_120b", "deepseek_v3")
}
LAYOUTS = (Layout(), Layout(tensor=8), Layout(data=4, expert=4), Layout(tensor=2, pipeline=2))
names = st.sampled_from(sorted(ARCHITECTURES))
layouts = st.sampled_from(LAYOUTS)
batches = st.floats(0, 4096)
tokens = st.floats(0, 200_000)


def test_overlap_lies_between_the_longer_and_the_sum() -> None:
    assert overlap(3.0, 4.0, 1.0) == pytest.approx(7.0)
    assert overlap(3.0, 4.0, 2.0) == pytest.approx(5.0)
    assert overlap(3.0, 4.0, 200.0) == pytest.approx(4.0)
    assert overlap(0.0, 0.0, 4.0) == 0.0


def test_tokens_touch_distinct_experts() -> None:
    # 8 of 256 experts: one token touches 8, sixteen even ones 102, and in the end all
    assert touched_share(1, 256, 8, 1.0) * 256 == pytest.approx(8.0)
    assert touched_share(16, 256, 8, 1.0) * 256 == pytest.approx(102.0, abs=0.5)
    assert touched_share(1e9, 256, 8, 1.0) == pytest.approx(1.0)
    assert touched_share(16, 256, 8, 0.85) < touched_share(16, 256, 8, 1.0)
    assert touched_share(5, 4, 4, 0.85) == 1.0
    assert touched_share(0, 256, 8, 1.0) == touched_share(5, 0, 0, 1.0) == 0.0


def test_one_request_reads_the_weights_and_its_cache() -> None:
    step = decode_step(work(models.llama_8b()), 1, 1000, STEP)
    weights = 2.0 * (8_030_261_248 - 128256 * 4096) / (3.35e12 * 0.8)
    cache = 131_072 * 1000 / (3.35e12 * 0.7)
    assert step.memory == pytest.approx(weights + cache)
    assert step.overlapped == pytest.approx(weights + cache, rel=1e-4)  # compute hides
    assert step.interconnect == 0.0
    assert step.fixed == pytest.approx(32 * 30e-6 + 100e-6 + 10e-6)
    assert step.seconds == step.overlapped + step.interconnect + step.fixed


def test_a_large_batch_computes() -> None:
    step = decode_step(work(models.llama_8b()), 4000, 10, STEP)
    products = 4000 * 2.0 * (8_030_261_248 - 128256 * 4096 - 65 * 4096) / (989e12 * 0.6)
    assert step.compute == pytest.approx(products, rel=0.02)
    assert step.compute > step.memory


def test_kinds_of_layers_cost_more() -> None:
    step = decode_step(work(models.deepseek_v3(), Layout(tensor=8)), 1, 10, STEP)
    assert step.fixed == pytest.approx(30e-6 * (61 + 58 + 2 * 61) + 110e-6)
    hybrid = decode_step(work(models.qwen3_5_397b(), Layout(tensor=8)), 1, 10, STEP)
    assert hybrid.fixed == pytest.approx(30e-6 * (60 + 60 + 3 * 45) + 110e-6)


def test_tensor_parallel_reduces_twice_a_layer() -> None:
    step = decode_step(work(models.llama_8b(), Layout(tensor=4)), 8, 10, STEP)
    one = 4e-6 + 4 * 1e-6 + 1.5 * 8 * 4096 * 2 / (450e9 * 0.4)
    assert step.interconnect == pytest.approx(2 * 32 * one)


def test_stages_hand_over() -> None:
    one, four = (
        decode_step(work(models.llama_8b(), Layout(pipeline=stages)), 8, 10, STEP)
        for stages in (1, 4)
    )
    hop = 4e-6 + 8 * 4096 * 2 / (450e9 * 0.4)
    assert four.interconnect - one.interconnect == pytest.approx(3 * hop)
    assert four.overlapped == one.overlapped  # a request passes all layers


def test_experts_elsewhere_are_visited() -> None:
    deepseek = models.deepseek_v3()
    within = exchange_seconds(work(deepseek, Layout(tensor=8, expert=8)), 10, STEP)
    assert within == pytest.approx(58 * 15e-6)
    across = exchange_seconds(work(deepseek, Layout(data=8, expert=8)), 10, STEP)
    assert across > within
    assert exchange_seconds(work(deepseek, Layout(tensor=8)), 10, STEP) == 0.0
    assert exchange_seconds(work(models.llama_8b(), Layout(data=2)), 10, STEP) == 0.0


def test_verifying_tokens_reads_the_weights_once() -> None:
    llama = work(models.llama_8b())
    plain, verified = (decode_step(llama, 4, 1000, STEP, many) for many in (1.0, 5.0))
    assert verified.memory == plain.memory
    assert verified.compute == pytest.approx(5 * plain.compute)
    assert verified.seconds < 1.1 * plain.seconds


def test_latent_attention_computes_at_long_contexts() -> None:
    deepseek = work(models.deepseek_v3(), Layout(tensor=1, data=8, expert=8))
    short, long = (decode_step(deepseek, 64, context, STEP) for context in (1000, 100_000))
    flops = 64 * 61 * 2 * 128 * (2 * 512 + 64) * 99_000
    assert long.compute - short.compute == pytest.approx(flops / (989e12 * 0.3))


def test_causal_pairs() -> None:
    assert attended_pairs(100, 0, math.inf) == 5000
    assert attended_pairs(100, 100, math.inf) == 15_000
    assert attended_pairs(100, 0, 10) == 50 + 10 * 90
    assert attended_pairs(100, 100, 10) == 1000


def test_prompt_is_two_flop_for_each_parameter_and_token() -> None:
    llama = work(models.llama_8b())
    seconds = prefill_seconds(llama, 8000, STEP, 8192)
    products = 8000 * 2 * (8_030_261_248 - 2 * 128256 * 4096) / (989e12 * 0.6)
    attention = prompt_attention_seconds(llama, 8000, STEP)
    assert seconds == pytest.approx(products + attention + 32 * 40e-6, rel=0.01)


def test_a_short_prompt_still_reads_the_weights() -> None:
    llama = work(models.llama_8b())
    read = llama.weight_bytes / (3.35e12 * 0.8)
    assert prefill_seconds(llama, 1, STEP) >= read
    assert prefill_seconds(llama, 0, STEP) == 0.0


def test_chunks_read_the_weights_again() -> None:
    llama = work(models.llama_8b())
    whole, chunked = (prefill_seconds(llama, 4096, STEP, chunk) for chunk in (4096, 256))
    assert chunked > whole + 15 * 32 * 40e-6


def test_a_cached_prefix_is_attended_but_not_computed() -> None:
    llama = work(models.llama_8b())
    cold = prefill_seconds(llama, 8000, STEP)
    warm = prefill_seconds(llama, 2000, STEP, cached_tokens=6000)
    alone = prefill_seconds(llama, 2000, STEP)
    assert alone < warm < cold


def test_prompts_of_other_data_ranks_meet_the_same_experts() -> None:
    deepseek = models.deepseek_v3()
    layout = Layout(data=8, expert=8)
    alone = prefill_seconds(work(deepseek, layout), 4000, STEP, 8192)
    shared = prefill_share_seconds(work(deepseek, layout), 4000, STEP, 8192)
    assert shared > alone
    assert prefill_share_seconds(work(deepseek, layout), 0, STEP, 8192) == 0.0


@given(names, layouts, batches, tokens, st.floats(0, 100), st.floats(0, 10_000))
def test_a_step_grows_with_batch_and_context(
    name: str, layout: Layout, batch: float, context: float, more: float, longer: float
) -> None:
    made = work(ARCHITECTURES[name], layout)
    seconds = decode_step_seconds(made, batch, context, STEP)
    assert 0 < seconds < math.inf
    slack = 1 - 1e-12
    assert decode_step_seconds(made, batch + more, context, STEP) >= seconds * slack
    assert decode_step_seconds(made, batch, context + longer, STEP) >= seconds * slack


@given(names, layouts, tokens, st.floats(0, 10_000), st.sampled_from([512, 8192, math.inf]))
def test_a_prompt_grows_with_its_length(
    name: str, layout: Layout, length: float, longer: float, chunk: float
) -> None:
    made = work(ARCHITECTURES[name], layout)
    seconds = prefill_seconds(made, length, STEP, chunk)
    assert 0 <= seconds < math.inf
    assert prefill_seconds(made, length + longer, STEP, chunk) >= seconds * (1 - 1e-9)


@given(names, st.integers(1, 32), st.floats(1, 512), st.floats(1, 100_000))
def test_more_ranks_never_read_the_weights_longer(
    name: str, ranks: int, batch: float, context: float
) -> None:
    fewer, more = (
        decode_step(work(ARCHITECTURES[name], Layout(tensor=size)), batch, context, STEP)
        for size in (ranks, ranks + 1)
    )
    assert more.memory <= fewer.memory * (1 + 1e-12)
    assert more.interconnect >= fewer.interconnect


@given(names, st.floats(0.1, 10))
def test_a_faster_memory_is_never_slower(name: str, factor: float) -> None:
    faster = H100._replace(bandwidth=H100.bandwidth * (1 + factor))
    slow = decode_step_seconds(work(ARCHITECTURES[name]), 8, 1000, STEP)
    assert decode_step_seconds(work(ARCHITECTURES[name], machine=faster), 8, 1000, STEP) < slow


def test_quantizing_activations_and_routing_cost_layers_more() -> None:
    """36 layers, all with 128 experts of which 4 are chosen: the root of 512."""
    built = work(models.gpt_oss_120b())
    plain = fixed_seconds(built, 0.0, STEP)
    layer = 36 * STEP.layer_seconds
    quantized = fixed_seconds(built, 0.0, STEP._replace(quantized_layer_factor=0.25))
    assert quantized - plain == pytest.approx(0.25 * layer)
    routed = fixed_seconds(built, 0.0, STEP._replace(moe_choice_factor=0.02))
    assert routed - plain == pytest.approx(math.sqrt(512) * 0.02 * layer)


def test_the_release_scales_layers_and_step_the_generation_requests_too() -> None:
    built, requests = work(models.llama_8b()), 10 * STEP.request_seconds
    plain = fixed_seconds(built, 10, STEP)
    newer = fixed_seconds(built, 10, STEP._replace(release_factor=0.5))
    assert newer == pytest.approx((plain - requests) / 2 + requests)
    faster = fixed_seconds(built, 10, STEP._replace(generation_factor=0.5))
    assert faster == pytest.approx(plain / 2)


def test_the_busiest_of_expert_ranks_computes_more_but_reads_no_more() -> None:
    spread = work(models.gpt_oss_120b(), Layout(8, expert=8))
    even, uneven = (
        decode_step(spread, 64, 1000, STEP._replace(expert_imbalance=more)).experts
        for more in (0.0, 0.4)
    )
    assert uneven.memory == even.memory
    assert uneven.compute == pytest.approx(1.35 * even.compute)
