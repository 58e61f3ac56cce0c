"""Weight bytes on the worst rank, as vLLM holds them after loading."""

from __future__ import annotations

from collections.abc import Sequence

from capcheck import Architecture, Case, Scheme
from capcheck.option_reader import OptionReader
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split, allocated, stage_layers
from capcheck_vllm.table import TABLE

# Layers that predict more tokens had a head of their own, whatever the checkpoint stores.
_SHARED_DRAFT_HEAD = (0, 15, 0)
_OWN_DRAFT_HEAD = frozenset(("deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe"))
_COUNTS_BLOCKS_ON_AMD = (0, 26, 0)  # from a release between 0.20.0 and this one on
_WITHOUT_MODEL = frozenset(("ngram", "[ngram]", "ngram_gpu", "suffix"))
_INDEX_BYTES = 4.0


def weighing(
    case: Case, scheme: Scheme | None, split: Split, dtype: str, *, draft: bool = False
) -> Weighing:
    """How vLLM holds tensors of one scheme on this accelerator."""

    def kernel(own: Scheme) -> str:
        part = case.accelerator.get("accelerator")
        return case.workshop.packing.kernel(
            own, "vllm", part.vendor, part.capability, case.release.version
        )

    return Weighing(
        case.workshop.packing,
        scheme,
        split,
        dtype,
        kernel,
        draft=draft,
        absorbed="packed",
        measured="reserved" if _asks_the_driver(case) else "allocated",
    )


def _asks_the_driver(case: Case) -> bool:
    """On AMD devices what loading took was what the driver had given away, blocks or not."""
    vendor = case.accelerator.get("accelerator").vendor
    return vendor == "amd" and case.release.version < _COUNTS_BLOCKS_ON_AMD


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
    head = not case.plan.extra["pooling"].get("runner")
    hosted = _keeps_lookups_on_host(case)
    key = (
        "vllm weights", id(model), scheme, split, stage, tuple(sizes), dtype, towers, head, hosted,
        part.vendor, part.capability, case.release.version,
    )  # fmt: skip
    cache = case.workshop.cache
    if key not in cache:
        weigh = weighing(case, scheme, split, dtype)
        total = weigh.stage(model, stage, sizes, towers=towers, head=head)
        if hosted:
            total -= _lookup_bytes(weigh, model, stage, sizes)
        cache[key] = (total, model)  # the model is kept alive: its id stays its own
    return float(cache[key][0]) + index_buffer_bytes(case, model)


def _keeps_lookups_on_host(case: Case) -> bool:
    """Hashed tables lie in pinned host memory unless engram_config says otherwise."""
    read = OptionReader(case.deployment, TABLE, case.release.version)
    stated = case.deployment.flag(*read.path("engram_config", "cpu_offload"))
    return bool(stated.get("engram_config.cpu_offload")) if stated is not None else True


def _lookup_bytes(weigh: Weighing, model: Architecture, stage: int, sizes: Sequence[int]) -> float:
    """Bytes of the hashed tables in one stage's layers."""
    layers = stage_layers(model.layers, weigh.split.pipeline, stage, sizes)
    return sum(
        weigh.tensor(tensor, index)
        for index, layer in enumerate(layers, sum(sizes[:stage]))
        for tensor in layer.tensors
        if tensor.role == "lookup"
    )


def index_buffer_bytes(case: Case, model: Architecture) -> float:
    """What sparse attention keeps from loading on: the chosen tokens of every token of a step."""
    chosen = max((layer.mixer.topk for layer in model.layers if layer.cache), default=0)
    if not chosen:
        return 0.0
    return allocated(case.plan.max_step_tokens.get() * chosen * _INDEX_BYTES)


def draft_bytes(case: Case, split: Split, dtype: str) -> float:
    """Bytes of what speculative decoding adds: a draft model, or the checkpoint's MTP layers."""
    named = case.plan.draft
    if named is None:
        return 0.0
    name, method = named.get("draft model"), _method(case)
    if name.lower() in _WITHOUT_MODEL or method in _WITHOUT_MODEL:
        return 0.0
    if is_mtp(method or name):
        return _prediction_bytes(case, split, dtype)
    draft = case.draft_model()
    if draft is None:
        return 0.0
    own_split = Split(tensor=draft_tensor(case, split.tensor))
    sizes = (len(draft.architecture.layers),)
    scheme = draft.scheme.get("draft quantization")
    return stage_bytes(case, draft.architecture, scheme, own_split, 0, sizes, dtype)


def _method(case: Case) -> str:
    found = case.deployment.text("engine", "args", "speculative_config", "method")
    return ((found.either("") if found is not None else "") or "").lower()


def _prediction_bytes(case: Case, split: Split, dtype: str) -> float:
    """The prediction layers; embedding and head are the main model's wherever both are there."""
    model = case.model.get("model")
    architecture = model.architecture
    weigh = weighing(case, model.scheme.get("quantization"), split, dtype, draft=True)
    own = [one for one in architecture.draft_outer if one.role not in ("embedding", "head")]
    total = weigh.layers(architecture.draft, len(architecture.layers)) + weigh.outer(own)
    if split.pipeline > 1:  # the main model's embedding is on another stage
        total += weigh.outer([one for one in architecture.outer if one.role == "embedding"][:1])
    old = case.release.version < _SHARED_DRAFT_HEAD
    if old and architecture.family in _OWN_DRAFT_HEAD:
        heads = [one for one in architecture.outer if one.role == "head"]
        total += weigh.outer(heads) * len(architecture.draft)
    return total


def is_mtp(name: str) -> bool:
    """Whether a draft is the checkpoint's own multi-token prediction."""
    return name.lower() == "mtp" or name.lower().endswith("_mtp")


def draft_tensor(case: Case, tensor: int) -> int:
    """The draft model's own tensor parallel size."""
    found = case.deployment.count(
        "engine", "args", "speculative_config", "draft_tensor_parallel_size"
    )
    return (found.either(None) if found is not None else None) or tensor
