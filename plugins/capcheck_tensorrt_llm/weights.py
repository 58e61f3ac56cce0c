"""Weight bytes on the worst rank, as the PyTorch backend holds them after loading."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Case, Scheme, Unknown
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split, rope_bytes
from capcheck_tensorrt_llm.defaults import stage_sizes
from capcheck_tensorrt_llm.drafts import WITHOUT_MODEL, is_mtp

ROPE_MORE = 2.0  # bytes that an entry of the rotary table takes beyond 16 bit: it is kept in fp32


class Stage(NamedTuple):
    """One pipeline stage: which, and the layers of each."""

    number: int
    sizes: tuple[int, ...]


def split_of(case: Case) -> Split:
    """The layout. With attention data parallelism only the experts are spread. Raises Unknown."""
    plan = case.plan
    tensor = max(1, plan.tensor.get("tensor_parallel_size"))
    ranks = max(1, plan.extra["ranks"].get("tensor_parallel_size"))
    expert = plan.expert.get("moe_expert_parallel_size")
    # Experts that are dealt out to fewer ranks are split among the others: all hold a share.
    return Split(
        tensor,
        max(1, plan.pipeline.get("pipeline_parallel_size")),
        ranks if expert > 1 else 1,
        experts_over=ranks,
    )


def stages(case: Case) -> tuple[int, ...]:
    """Layers of each pipeline stage; pp_partition overrides. Raises Unknown."""
    layers = len(case.model.get("model").architecture.layers)
    count = split_of(case).pipeline
    if count > layers:
        raise Unknown(case.plan.pipeline.because(f"there are only {layers} layers to deal out"))
    return stage_sizes(layers, count)


def _kernel(case: Case, own: Scheme) -> str:
    part = case.accelerator.get("accelerator")
    return case.workshop.packing.kernel(
        own, case.engine.name, part.vendor, part.capability, case.release.version
    )


def _weighing(case: Case, scheme: Scheme | None, split: Split, *, draft: bool = False) -> Weighing:
    dtype = case.plan.weight_dtype.get("dtype")
    packing = case.workshop.packing
    return Weighing(packing, scheme, split, dtype, lambda own: _kernel(case, own), draft=draft)


def stage_bytes(case: Case, stage: Stage) -> float:
    """Bytes of one pipeline stage on one rank. Raises Unknown."""
    model = case.model.get("model")
    split, scheme = split_of(case), model.scheme.get("quantization")
    part = case.accelerator.get("accelerator")
    dtype = case.plan.weight_dtype.get("dtype")
    key = ("trtllm weights", id(model.architecture), scheme, split, stage, dtype, part.id)
    cache = case.workshop.cache
    if key not in cache:
        total = _weighing(case, scheme, split).stage(model.architecture, *stage)
        total += rope_bytes(model.architecture.ropes, ROPE_MORE)
        cache[key] = (total, model)  # the model is kept alive: its id stays its own
    return float(cache[key][0])


def draft_bytes(case: Case) -> float:
    """What speculative decoding adds: a draft model, or the checkpoint's MTP layers."""
    named = case.plan.draft
    if named is None:
        return 0.0
    name, split = named.get("draft model"), split_of(case)
    if is_mtp(name):
        model = case.model.get("model")
        built = model.architecture
        weigh = _weighing(case, model.scheme.get("quantization"), split, draft=True)
        own = [one for one in built.draft_outer if one.role not in ("embedding", "head")]
        return weigh.layers(built.draft, len(built.layers)) + weigh.outer(own)
    if name in WITHOUT_MODEL:
        return 0.0
    draft = case.draft_model()
    if draft is None:
        return 0.0
    whole = split._replace(pipeline=1)
    sizes = (len(draft.architecture.layers),)
    scheme = draft.scheme.get("draft quantization")
    return _weighing(case, scheme, whole).stage(draft.architecture, 0, sizes)
