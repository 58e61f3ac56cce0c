"""Round constants and machines for the physics tests: nothing here is fitted."""

from __future__ import annotations

from capcheck.architecture import Architecture
from capcheck.physics.server import Limits, LoadConstants, Server, Traffic
from capcheck.physics.step import StepConstants
from capcheck.physics.work import Layout, Machine, Storage, Work, work_of

# H100 SXM: 3.35 TB/s, 989 TFLOP/s dense bf16, NVLink 450 GB/s one way.
H100 = Machine(3.35e12, 989e12, 450e9)
SIXTEEN_BIT = Storage(lambda tensor: tensor.elements * 2.0, lambda _: 989e12, 2.0)

STEP = StepConstants(
    overlap_norm=4.0,
    expert_norm=4.0,
    weight_efficiency=0.8,
    expert_efficiency=0.7,
    cache_efficiency=0.7,
    dense_utilization=0.6,
    expert_utilization=0.4,
    attention_utilization=0.4,
    latent_utilization=0.3,
    routing_skew=0.85,
    expert_imbalance=0.2,
    layer_seconds=30e-6,
    quantized_layer_factor=0.0,
    moe_layer_factor=1.0,
    moe_choice_factor=0.0,
    latent_layer_factor=2.0,
    recurrent_layer_factor=3.0,
    step_seconds=100e-6,
    request_seconds=10e-6,
    generation_factor=1.0,
    release_factor=1.0,
    all_reduce_seconds=4e-6,
    all_reduce_rank_seconds=1e-6,
    link_efficiency=0.4,
    exchange_seconds=15e-6,
    prompt_layer_seconds=40e-6,
    prompt_moe_layer_seconds=150e-6,
)

LOAD = LoadConstants(
    interference=1.0,
    admission_seconds=5e-3,
    waited_steps=1.0,
    poll_share=0.5,
    balance_steps=10.0,
    own_prefill_factor=1.0,
    wave_share=0.0,
    burst_factor=1.0,
    arrival_seconds=0.0,
    front_end_seconds=0.0,
)


def work(
    architecture: Architecture,
    layout: Layout | None = None,
    *,
    machine: Machine = H100,
    storage: Storage = SIXTEEN_BIT,
) -> Work:
    return work_of(architecture, storage, layout or Layout(), machine)


def server(
    architecture: Architecture,
    limits: Limits | None = None,
    layout: Layout | None = None,
    load: LoadConstants = LOAD,
) -> Server:
    limits = limits or Limits(max_sequences=256.0, step_tokens=8192.0)
    return Server(work(architecture, layout), STEP, load, limits)


def traffic(prompt: float = 1000.0, output: float = 200.0) -> Traffic:
    return Traffic(prompt, output, prompt + output / 2.0, prompt)
