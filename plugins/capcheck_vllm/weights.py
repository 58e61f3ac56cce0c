"""Weight bytes on the worst rank, as vLLM holds them after loading."""

from __future__ import annotations

from collections.abc import Sequence

from capcheck import Architecture, Case, Layer, Scheme
from capcheck.physics import memory
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split


def weighing(
    case: Case, scheme: Scheme | None, split: Split, dtype: str, *, draft: bool = False
) -> Weighing:
    """How vLLM holds tensors of one scheme on this accelerator."""

    def kernel(own: Scheme) -> str:
        part = case.accelerator.get("accelerator")
        return case.workshop.packing.kernel(
            own, "vllm", part.vendor, part.capability, case.release.version
        )

    return Weighing(case.workshop.packing, scheme, split, dtype, kernel, draft=draft)


def stage_bytes(
    case: Case,
    model: Architecture,
    scheme: Scheme | None,
    split: Split,
    stage: int,
    sizes: Sequence[int],
    dtype: str,
    *,
    towers: bool = True,
) -> float:
    """Bytes of one pipeline stage on one rank: layers, outer tensors, ropes, absorbed MLA."""
    part = case.accelerator.get("accelerator")
    key = (
        "vllm weights", id(model), scheme, split, stage, tuple(sizes), dtype, towers,
        part.vendor, part.capability, case.release.version,
    )  # fmt: skip
    cache = case.workshop.cache
    if key not in cache:
        weigh = weighing(case, scheme, split, dtype)
        total = weigh.stage(model, stage, sizes, towers=towers)
        cache[key] = (total, model)  # the model is kept alive: its id stays its own
    return float(cache[key][0])


def draft_bytes(case: Case, split: Split, dtype: str) -> float:
    """Bytes of what speculative decoding adds: a draft model, or the checkpoint's MTP layers."""
    named = case.plan.draft
    if named is None:
        return 0.0
    name = named.get("draft model")
    if name.lower() in ("ngram", "[ngram]", "suffix"):
        return 0.0
    if is_mtp(name):
        model = case.model.get("model")
        architecture = model.architecture
        weigh = weighing(case, model.scheme.get("quantization"), split, dtype, draft=True)
        # Embedding and head are shared with the main model even where the checkpoint repeats them.
        own = [one for one in architecture.draft_outer if one.role not in ("embedding", "head")]
        return weigh.layers(architecture.draft, len(architecture.layers)) + weigh.outer(own)
    draft = case.draft_model()
    if draft is None:
        return 0.0
    own_split = Split(tensor=draft_tensor(case, split.tensor))
    sizes = (len(draft.architecture.layers),)
    scheme = draft.scheme.get("draft quantization")
    return stage_bytes(case, draft.architecture, scheme, own_split, 0, sizes, dtype)


def is_mtp(name: str) -> bool:
    """Whether a draft is the checkpoint's own multi-token prediction."""
    return name.lower() in ("mtp", "deepseek_mtp", "qwen3_next_mtp", "glm4_moe_mtp", "ernie_mtp",
                            "mimo_mtp", "qwen3_5_mtp", "longcat_flash_mtp")  # fmt: skip


def draft_tensor(case: Case, tensor: int) -> int:
    """The draft model's own tensor parallel size."""
    found = case.deployment.count(
        "engine", "args", "speculative_config", "draft_tensor_parallel_size"
    )
    return (found.either(None) if found is not None else None) or tensor


def lora_bytes(case: Case, layers: Sequence[Layer], split: Split) -> float:
    """LoRA buffers: rank x (in + out) of every linear layer, for each loaded adapter."""
    extra = case.plan.extra
    if not extra["enable_lora"].get():
        return 0.0
    rank, adapters = extra["max_lora_rank"].get(), extra["max_loras"].get()
    features = 0.0
    for layer in layers:
        for tensor in layer.tensors:
            if tensor.linear and tensor.role in ("attention", "mlp", "shared_expert"):
                into = memory.rank_into(tensor, split)
                outs = [memory.part_out(part, tensor, split) for part in tensor.parts]
                features += len(outs) * into + sum(outs)
    return float(features * rank * adapters * 2.0)
