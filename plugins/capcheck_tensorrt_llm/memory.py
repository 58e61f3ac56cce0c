"""Memory on the worst rank: a share of what is free after weights and one profiling step.

At start the PyTorch backend runs one full step beside a small KV cache, notes the peak inside
and outside of PyTorch, and gives `free_gpu_memory_fraction` of the rest to the KV cache; what the
small cache took is counted in again. An engine that is built at start is measured alike, with the
buffers of its own decoder.
"""

from __future__ import annotations

from capcheck import Case, Layer, Ledger, Line, Terms, Unknown
from capcheck.measure import show_bytes
from capcheck.physics.activations import forward_bytes, vision_peak_bytes
from capcheck_tensorrt_llm import defaults
from capcheck_tensorrt_llm.pages import STATES, layout
from capcheck_tensorrt_llm.reading import Options
from capcheck_tensorrt_llm.weights import Stage, draft_bytes, stage_bytes, stages


def worst_stage(case: Case) -> Stage:
    """The stage that leaves the fewest tokens: every rank gets the smallest number."""
    sizes = stages(case)
    found = [Stage(number, sizes) for number in range(len(sizes))]
    if len(found) == 1:
        return found[0]
    visible = case.visible_bytes(case.terms())

    def tokens(stage: Stage) -> float:
        try:
            each = layout(case, stage).bytes_per_token
        except Unknown:
            each = float(stage.sizes[stage.number])
        return (visible - stage_bytes(case, stage)) / max(each, 1.0)

    return min(found, key=tokens)


def _weights(case: Case, t: Terms, stage: Stage) -> list[Line]:
    scheme = case.model.get("model").scheme.get("quantization")
    seen = scheme.seen if scheme is not None else "config"
    factor = t.read("trtllm.weights_factor", scheme=scheme.method if scheme else "none", seen=seen)
    last = stage.number == len(stage.sizes) - 1
    return [
        Line("weights", stage_bytes(case, stage) * factor, "load", True),
        Line("draft model", draft_bytes(case) if last else 0.0, "load", True),
    ]


def _profile(case: Case, t: Terms) -> list[Line]:
    """The peak of a step of max_num_tokens, and the image encoder's."""
    model = case.model.get("model").architecture
    tokens = case.plan.max_step_tokens.get("max_num_tokens")
    tensor = case.plan.tensor.get("tensor_parallel_size")
    shared = case.plan.expert.get("moe_expert_parallel_size") > 1
    forward = forward_bytes(
        tokens,
        model.hidden,
        model.intermediate / tensor,
        experts_per_token=model.experts_per_token,
        expert_intermediate=model.expert_intermediate / (1 if shared else tensor),
    ) * t.read("trtllm.forward_factor")
    lines = [Line("activation", forward, "profile", True, f"one step ({tokens:,} tokens)")]
    if model.vision is not None:
        vision = model.vision
        patches = tokens * max(1, vision.merge) ** 2
        peak = vision_peak_bytes(patches, vision.hidden, vision.intermediate / tensor)
        lines.append(Line("image encoder", peak * t.read("trtllm.vision_factor"), "profile", True))
    return lines


def _runtime(case: Case, t: Terms) -> list[Line]:
    """What is no tensor of the model: context, communication, workspaces, graphs, the decoder."""
    lines = [Line("other", t.read("trtllm.other_bytes"), "profile", True)]
    backend = case.plan.extra["backend"].get("backend")
    batch = case.plan.max_sequences.get("max_batch_size")
    if backend == "tensorrt":
        vocabulary = case.model.get("model").architecture.vocabulary
        size = t.read("trtllm.decoder_bytes_per_logit") * batch * vocabulary
        lines.append(Line("decoder", size, "profile", True, f"{batch:,} sequences"))
    elif case.plan.graphs.get("cuda_graph_config"):
        sizes = captured(case)
        size = t.read("trtllm.graph_bytes") * len(sizes)
        lines.append(Line("CUDA graphs", size, "capture", True, f"{len(sizes)} batch sizes"))
    return lines


def captured(case: Case) -> tuple[int, ...]:
    """Batch sizes that CUDA graphs are captured for, at most max_batch_size."""
    options = Options(case.deployment, case.release.version)
    largest = None
    padding = False
    for name, key in (("cuda_graph_config", "max_batch_size"), ("cuda_graph_max_batch_size", "")):
        largest = largest or options.count(name, *([key] if key else []))
    for name, key in (("cuda_graph_config", "enable_padding"), ("cuda_graph_padding_enabled", "")):
        flag = options.flag(name, *([key] if key else []))
        padding = padding or (flag is not None and flag.get(name))
    most = (largest.get("cuda_graph_config") if largest else 0) or defaults.LARGEST_GRAPH
    batch = case.plan.max_sequences.get("max_batch_size")
    sizes = defaults.graph_sizes(most, padding=padding, listed=options.graph_sizes())
    return tuple(size for size in sizes if size <= batch)


def _layers(case: Case) -> tuple[Layer, ...]:
    return case.model.get("model").architecture.layers


def _stated(case: Case, stage: Stage) -> float | None:
    """The most that is allocated, where it is stated in tokens or bytes."""
    extra = case.plan.extra
    found = []
    if "max_tokens" in extra:
        tokens = extra["max_tokens"].get("max_tokens")
        found += [tokens * layout(case, stage).bytes_per_token] if tokens > 0 else []
    if "max_gpu_total_bytes" in extra:
        size = extra["max_gpu_total_bytes"].get("max_gpu_total_bytes")
        found += [float(size)] if size > 0 else []
    return min(found, default=None)


def ledger(case: Case, t: Terms) -> Ledger:
    """All lines, what is left free on purpose, and a stated pool. Raises Unknown."""
    if case.accelerator.get("accelerator").vendor != "nvidia":
        raise Unknown(case.accelerator.because("TensorRT-LLM runs on NVIDIA devices only"))
    backend = case.plan.extra["backend"].get("backend")
    if backend not in ("pytorch", "tensorrt"):
        raise Unknown(case.plan.extra["backend"].because(f"what {backend} takes was not read"))
    if any(one.cache and one.cache.kind == "state" for one in _layers(case)):
        raise Unknown(case.model.because(STATES))
    stage = case.memo("trtllm stage", t, lambda _: worst_stage(case))
    visible = case.visible_bytes(t)
    share = case.plan.memory.get("free_gpu_memory_fraction").amount
    lines = [*_weights(case, t, stage), *_profile(case, t), *_runtime(case, t)]
    made = Ledger(visible, visible, tuple(lines), show_bytes(visible))
    rest = max(0.0, made.left)
    free = Line(f"left free ({1 - share:.2g} of the rest)", rest * (1 - share), "serve", True)
    made = made._replace(lines=tuple(line for line in (*lines, free) if line.bytes))
    stated = _stated(case, stage)
    return made if stated is None else made._replace(pool=min(made.left, stated))
