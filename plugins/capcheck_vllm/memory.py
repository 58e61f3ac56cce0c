"""vLLM's start-up memory on the worst rank, line by line."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck import GIB, Case, Ledger, Line, Terms, Unknown
from capcheck.physics.memory import Split, stage_layers, stage_sizes
from capcheck_vllm import activation, defaults
from capcheck_vllm.pages import stage_block_bytes
from capcheck_vllm.weights import draft_bytes, lora_bytes, stage_bytes


class Stage(NamedTuple):
    """One pipeline stage: which, of what sizes, and its bytes of weights."""

    number: int  # from 0
    sizes: tuple[int, ...]
    weights: float


def split_of(case: Case) -> Split:
    """The parallel layout. Raises Unknown."""
    plan = case.plan
    return Split(
        max(1, plan.tensor.get("tensor_parallel_size")),
        max(1, plan.pipeline.get("pipeline_parallel_size")),
        max(1, plan.expert.get("expert parallel")),
    )


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
    return not case.plan.extra["language_model_only"].get()


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
    offload = case.plan.extra["cpu_offload_gb"].get() * GIB
    return Line("weights", max(0.0, stage.weights * factor - offload), "load", True)


def ledger(case: Case, t: Terms) -> Ledger:
    """Lines as vLLM charges them by release. Raises Unknown."""
    stage = case.memo("vllm stage", t, lambda _: worst_stage(case))
    visible = case.visible_bytes(t)
    policy = case.plan.memory.get("gpu_memory_utilization")
    fixed = policy.kind == "bytes"
    budget = policy.amount if fixed else math.ceil(visible * policy.amount)
    words = "kv_cache_memory_bytes" if fixed else f"{visible / GIB:.1f} GiB x {policy.amount:.2f}"
    lines = [weights_line(case, t, stage), *_more_weights(case, stage)]
    lines += activation.lines(case, t, stage.sizes[stage.number])
    lines += _runtime(case, t, stage)
    if fixed:
        lines = [line._replace(inside_budget=False) for line in lines]
    return Ledger(visible, float(budget), tuple(line for line in lines if line.bytes), words)


def _more_weights(case: Case, stage: Stage) -> list[Line]:
    split = split_of(case)
    model = case.model.get("model").architecture
    layers = stage_layers(model.layers, split.pipeline, stage.number, stage.sizes)
    dtype = case.plan.weight_dtype.get("dtype")
    last = stage.number == split.pipeline - 1
    draft = draft_bytes(case, split, dtype) if last else 0.0
    return [
        Line("draft model", draft, "load", True),
        Line("LoRA", lora_bytes(case, layers, split), "load", True),
    ]


def _runtime(case: Case, t: Terms, stage: Stage) -> list[Line]:
    """What is not a tensor of the model: NCCL, workspaces, CUDA graphs."""
    version = case.release.version
    other = t.read("vllm.non_torch_bytes") + t.read("vllm.unaccounted_bytes")
    lines = [Line("other", other, "profile", True)]
    sizes = captured(case)
    if sizes:
        graphs = t.read("vllm.graph_base_bytes")
        graphs += t.read("vllm.graph_bytes_per_layer") * sizes * stage.sizes[stage.number]
        flag = case.deployment.text("engine", "env", "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS")
        inside = defaults.graphs_in_budget(version, flag.either(None) if flag else None)
        lines.append(Line("CUDA graphs", graphs, "capture", inside, f"{sizes} batch sizes"))
    return lines


def captured(case: Case) -> int:
    """Batch sizes that CUDA graphs are captured for; 0 when eager."""
    if not case.plan.graphs.get("enforce_eager"):
        return 0
    accelerator = case.accelerator.get("accelerator")
    if accelerator.vendor not in ("nvidia", "amd"):
        return 0
    sequences = case.plan.max_sequences.get("max_num_seqs")
    count = defaults.capture_sizes(case.release.version, sequences, accelerator.capability)
    most = case.deployment.count("engine", "args", "max_cudagraph_capture_size")
    limit = most.either(None) if most is not None else None
    if limit is not None:
        count = min(count, 3 + min(limit, 256) // 8 + max(0, limit - 256) // 16)
    return count


def load_peak(case: Case, t: Terms) -> float | None:
    """Bytes while loading, when online quantization reads the checkpoint unquantized first."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    if scheme is None or scheme.seen != "online":
        return None
    split = split_of(case)
    stage = worst_stage(case)
    dtype = case.plan.weight_dtype.get("dtype")
    towers = keeps_towers(case)
    factor = t.read("vllm.weights_factor", scheme="none", seen="config")
    return factor * stage_bytes(
        case, model.architecture, None, split, stage.number, stage.sizes, dtype, towers=towers
    )
