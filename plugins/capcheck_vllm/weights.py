"""Weight bytes on the worst rank, as vLLM holds them after loading."""

from __future__ import annotations

from collections.abc import Sequence

from capcheck import Architecture, Case, Layer, Part, Scheme, Tensor
from capcheck.packing import Packed
from capcheck.physics import memory
from capcheck.physics.memory import Split

DTYPE_BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}


class Weighing:
    """Bytes of a model's tensors under one split, dtype and scheme."""

    def __init__(
        self, case: Case, scheme: Scheme | None, split: Split, dtype: str, *, draft: bool = False
    ) -> None:
        self.packing = case.workshop.packing
        self.scheme = scheme
        self.split = split
        self.dtype_bytes = DTYPE_BYTES.get(dtype, 2.0)
        self.draft = draft
        self.case = case
        self.alike = scheme is None or not self.packing.by_layer(scheme)
        self._kernels: dict[Scheme, str] = {}

    def _kernel(self, scheme: Scheme) -> str:
        if scheme not in self._kernels:
            part = self.case.accelerator.get("accelerator")
            self._kernels[scheme] = self.packing.kernel(
                scheme, "vllm", part.vendor, part.capability, self.case.release.version
            )
        return self._kernels[scheme]

    def tensor(self, tensor: Tensor, layer: int | None) -> float:
        """Bytes of one fused tensor on one rank, allocator rounding included."""
        scheme = self.scheme
        if scheme is None or not tensor.linear:
            return memory.allocated(memory.dense_bytes(tensor, self.split, self.dtype_bytes))
        by_scheme: dict[Scheme | None, list[Part]] = {}
        for part in tensor.parts:
            own = self.packing.of_module(scheme, layer, part.name, tensor.role, draft=self.draft)
            by_scheme.setdefault(own, []).append(part)
        return sum(self._packed(tensor, parts, own) for own, parts in by_scheme.items())

    def _packed(self, tensor: Tensor, parts: list[Part], scheme: Scheme | None) -> float:
        if scheme is None:
            plain = tensor._replace(parts=tuple(parts))
            return memory.allocated(memory.dense_bytes(plain, self.split, self.dtype_bytes))
        shard = Packed(
            tuple(memory.part_out(part, tensor, self.split) for part in parts),
            memory.rank_into(tensor, self.split),
            memory.rank_copies(tensor, self.split),
            self.dtype_bytes,
            self._kernel(scheme),
            tensor.split,
        )
        return sum(memory.allocated(size) for size in self.packing.allocations(scheme, shard))

    def layers(self, layers: Sequence[Layer], first: int = 0) -> float:
        """Bytes of consecutive layers; `first` is the number of the first one."""
        return memory.layers_bytes(layers, first, self.tensor, alike=self.alike)

    def outer(self, tensors: Sequence[Tensor]) -> float:
        """Bytes of tensors outside of the layers."""
        return sum(self.tensor(tensor, None) for tensor in tensors)


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
        weigh = Weighing(case, scheme, split, dtype)
        layers = memory.stage_layers(model.layers, split.pipeline, stage, sizes)
        outer = memory.outer_tensors(model, split.pipeline, stage)
        if not towers:
            outer = [one for one in outer if one.role not in ("vision", "audio", "projector")]
        total = weigh.layers(layers, sum(sizes[:stage])) + weigh.outer(outer)
        total += memory.rope_bytes(model.ropes, weigh.dtype_bytes)
        total += memory.absorbed_mla_bytes(layers, split, weigh.dtype_bytes)
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
        weigh = Weighing(case, model.scheme.get("quantization"), split, dtype, draft=True)
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
