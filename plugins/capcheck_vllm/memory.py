"""vLLM's start-up memory on the worst rank, line by line."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck import GIB, Case, Ledger, Line, Terms, Unknown
from capcheck.physics.memory import Split, stage_sizes
from capcheck_vllm import activation, graphs
from capcheck_vllm.adapters import lora_bytes
from capcheck_vllm.encoder import deepstack_buffer_bytes
from capcheck_vllm.offloading import loads_whole, offloaded_bytes
from capcheck_vllm.pages import stage_block_bytes
from capcheck_vllm.spreading import keeps_encoders, spread
from capcheck_vllm.weights import draft_bytes, stage_bytes

START_CHECK = (0, 9, 1)


class Stage(NamedTuple):
    """One pipeline stage: which, of what sizes, and its bytes of weights."""

    number: int  # from 0
    sizes: tuple[int, ...]
    weights: float


def split_of(case: Case) -> Split:
    """The parallel layout. Raises Unknown."""
    return spread(case)


def partition(case: Case, layers: int, stages: int) -> tuple[int, ...]:
    """Layers of each stage; VLLM_PP_LAYER_PARTITION overrides."""
    text = case.deployment.text("engine", "env", "VLLM_PP_LAYER_PARTITION")
    stated = text.either(None) if text is not None else None
    if stated:
        parts = [part.strip() for part in stated.split(",")]
        if len(parts) == stages and all(part.isdigit() for part in parts):
            sizes = tuple(int(part) for part in parts)
            if sum(sizes) == layers:
                return sizes
    return stage_sizes(layers, stages)


def keeps_towers(case: Case) -> bool:
    """Whether vision and audio encoders are loaded."""
    return keeps_encoders(case)


def worst_stage(case: Case) -> Stage:
    """The stage that leaves the fewest blocks: the minimum over stages is used everywhere."""
    model = case.model.get("model")
    split = split_of(case)
    layers = len(model.architecture.layers)
    if split.pipeline > layers:
        raise Unknown(case.plan.pipeline.because(f"there are only {layers} layers to deal out"))
    sizes = partition(case, layers, split.pipeline)
    dtype = case.plan.weight_dtype.get("dtype")
    scheme = model.scheme.get("quantization")
    towers = keeps_towers(case)
    stages = [
        Stage(
            index,
            sizes,
            stage_bytes(
                case, model.architecture, scheme, split, index, sizes, dtype, towers=towers
            ),
        )
        for index in range(split.pipeline)
    ]
    if len(stages) == 1:
        return stages[0]
    budget = case.visible_bytes(case.terms()) * _share(case)

    def blocks(stage: Stage) -> float:
        return (budget - stage.weights) / max(stage_block_bytes(case, stage.number, sizes), 1.0)

    return min(stages, key=blocks)


def _share(case: Case) -> float:
    policy = case.plan.memory.get("gpu_memory_utilization")
    return policy.amount if policy.kind == "fraction of total" else 1.0


def weights_line(case: Case, t: Terms, stage: Stage) -> Line:
    """Weights, with what third-party packing leaves uncertain."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    seen = scheme.seen if scheme is not None else "config"
    factor = t.read("vllm.weights_factor", scheme=scheme.method if scheme else "none", seen=seen)
    moved = offloaded_bytes(
        case, scheme, split_of(case), stage.number, stage.sizes, case.plan.weight_dtype.get("dtype")
    )
    return Line("weights", max(0.0, stage.weights * factor - moved), "load", True)


def ledger(case: Case, t: Terms) -> Ledger:
    """Lines as vLLM charges them by release. Raises Unknown."""
    stage = case.memo("vllm stage", t, lambda _: worst_stage(case))
    visible = case.visible_bytes(t)
    policy = case.plan.memory.get("gpu_memory_utilization")
    fixed = policy.kind == "bytes"
    budget = policy.amount if fixed else math.ceil(visible * policy.amount)
    words = "kv_cache_memory_bytes" if fixed else f"{visible / GIB:.1f} GiB x {policy.amount:.2f}"
    lines = [weights_line(case, t, stage), *_more_weights(case, stage)]
    lines += activation.lines(case, t)
    lines += _runtime(case, t, stage)
    if fixed:
        lines = [line._replace(inside_budget=False) for line in lines]
    taken = None if fixed else _taken(case, t)
    kept = tuple(line for line in lines if line.bytes)
    return Ledger(visible, float(budget), kept, words, _stated_pool(case), taken)


def _stated_pool(case: Case) -> float | None:
    """The pool of num_gpu_blocks_override, which replaces what was profiled."""
    blocks = case.plan.extra["num_gpu_blocks_override"].get("num_gpu_blocks_override")
    return blocks * case.kv().block_bytes if blocks else None


def _taken(case: Case, t: Terms) -> float | None:
    """The context, from 0.11.0 the communication too, and what others hold. V1 asks from 0.9.1."""
    if case.release.version < START_CHECK or not case.plan.extra["v1"].get():
        return None
    return case.in_use_bytes + t.read("vllm.context_bytes")


def _more_weights(case: Case, stage: Stage) -> list[Line]:
    split = split_of(case)
    dtype = case.plan.weight_dtype.get("dtype")
    last = stage.number == split.pipeline - 1
    draft = draft_bytes(case, split, dtype) if last else 0.0
    return [
        Line("draft model", draft, "load", True),
        Line("LoRA", lora_bytes(case, stage.number, stage.sizes, split), "load", True),
        Line("deepstack buffer", deepstack_buffer_bytes(case), "load", True),
    ]


def _runtime(case: Case, t: Terms, stage: Stage) -> list[Line]:
    """What is not a tensor of the model: NCCL, workspaces, CUDA graphs."""
    other = t.read("vllm.non_torch_bytes") + t.read("vllm.unaccounted_bytes")
    v1 = bool(case.plan.extra["v1"].get())
    charged = v1 and case.release.version < START_CHECK  # V1 at first counted whatever is in use
    return [
        Line("other processes", case.in_use_bytes * charged, "profile", True),
        Line("other", other, "profile", True),
        *graphs.lines(case, t, stage.sizes[stage.number]),
    ]


def load_peak(case: Case, t: Terms) -> float | None:
    """Bytes while loading, when online quantization reads the checkpoint unquantized first."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    if scheme is None or scheme.seen != "online":
        return None
    if not loads_whole(scheme, case.release.version):
        return None
    split = split_of(case)
    stage = worst_stage(case)
    dtype = case.plan.weight_dtype.get("dtype")
    towers = keeps_towers(case)
    factor = t.read("vllm.weights_factor", scheme="none", seen="config")
    return factor * stage_bytes(
        case, model.architecture, None, split, stage.number, stage.sizes, dtype, towers=towers
    )
