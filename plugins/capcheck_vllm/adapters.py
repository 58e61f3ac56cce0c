"""Buffers that vLLM keeps for LoRA adapters: an A and a B for every module that may have one.

Read in vLLM's sources (lora/, 0.8.5 to 0.33.0): each slice of a fused projection has its own A
over the whole input of this rank and its own B of this rank's outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from capcheck import Architecture, Case, Tensor
from capcheck.physics import memory
from capcheck.physics.holding import DTYPE_BYTES
from capcheck.physics.memory import Split
from capcheck.physics.packing import padded

Version = tuple[int, ...]

_ALWAYS = frozenset(("attention", "mlp", "shared_expert"))
_LATER = frozenset(("state", "router", "indexer", "other"))
_LATER_SINCE: Version = (0, 12, 0)  # modules of more than three slices
_EXPERTS_SINCE: Version = (0, 11, 1)
# Experts whose gate and up are one module: one A for both.
_JOINED_EXPERTS = frozenset((
    "gpt_oss", "qwen3_vl_moe", "qwen3_5_moe", "qwen3_5_moe_text", "qwen3_omni_moe",
))  # fmt: skip
# Models whose embedding and head take adapters too.
_ENDS = frozenset((
    "llama", "granite", "exaone", "jamba", "minicpm", "mixtral", "nemotron", "nemotron-nas",
    "phimoe", "phi3", "solar", "bamba", "granitemoe", "granitemoeshared", "glm", "telechat",
))  # fmt: skip
_ENDS_BEFORE_0_15 = frozenset(("mistral", "ministral"))
_ENDS_SINCE_0_11 = frozenset((
    "exaone4", "falcon_h1", "lfm2", "nemotron_h", "granitemoehybrid", "apertus", "ernie4_5",
))  # fmt: skip
_ENDS_SINCE_0_15 = frozenset(("qwen3", "qwen3_moe", "lfm2_moe", "exaone_moe", "jais2"))
_EXTRA_VOCABULARY_BEFORE: Version = (0, 12, 0)
_OLD_PADDING = 256  # rows of the head's B, where adapters may add tokens
_INDEX_BYTES = 8


class Adapters(NamedTuple):
    """What decides the size of the buffers."""

    rank: int
    number: int
    dtype_bytes: float
    sharded: bool  # the halves that are whole by default are cut over devices too
    extra_vocabulary: int  # tokens that each adapter may add


def adapters(case: Case) -> Adapters | None:
    """The adapters that may be loaded at once; None without LoRA. Raises Unknown."""
    extra = case.plan.extra
    if not extra["enable_lora"].get("enable_lora"):
        return None
    asked = extra["lora_dtype"].get("lora_dtype")
    word = {"float16": "fp16", "bfloat16": "bf16", "float32": "fp32"}.get(asked)
    dtype = word or case.plan.weight_dtype.get("dtype")
    old = case.release.version < _EXTRA_VOCABULARY_BEFORE
    return Adapters(
        max(1, extra["max_lora_rank"].get("max_lora_rank")),
        max(1, extra["max_loras"].get("max_loras")),
        DTYPE_BYTES.get(dtype, 2.0),
        extra["fully_sharded_loras"].get("fully_sharded_loras"),
        extra["lora_extra_vocab_size"].get("lora_extra_vocab_size") if old else 0,
    )


def lora_bytes(case: Case, stage: int, sizes: Sequence[int], split: Split) -> float:
    """Bytes of all buffers of one pipeline stage. Raises Unknown."""
    told = adapters(case)
    if told is None:
        return 0.0
    model = case.model.get("model").architecture
    version = case.release.version
    joined = model.family in _JOINED_EXPERTS
    roles = _ALWAYS | (_LATER if version >= _LATER_SINCE else frozenset())
    if version >= _EXPERTS_SINCE:
        roles |= {"expert"}
    total = 0.0
    for layer in memory.stage_layers(model.layers, split.pipeline, stage, sizes):
        for tensor in layer.tensors:
            if tensor.linear and tensor.into and tensor.role in roles:
                total += tensor_bytes(tensor, split, told, joined=joined)
    if takes_ends(model.family, version):
        total += _ends_bytes(model, told, split, stage)
    return total


def tensor_bytes(tensor: Tensor, split: Split, told: Adapters, *, joined: bool = False) -> float:
    """Bytes of the A and B of one fused matrix on one rank, experts included."""
    over = memory.ways(tensor, split)
    cut = over if told.sharded else 1
    outs = [memory.part_out(part, tensor, split) for part in tensor.parts]
    if joined and tensor.role == "expert":
        outs = [sum(outs)]
    rank_of_a, outs_of_b = float(told.rank), [float(out) for out in outs]
    if tensor.split == "column":
        rank_of_a /= cut
    elif tensor.split == "row":
        outs_of_b = [out / cut for out in outs_of_b]
    each = told.number * memory.rank_copies(tensor, split) * told.dtype_bytes
    into = memory.rank_into(tensor, split)
    sizes = [rank_of_a * into * each] * len(outs) + [out * told.rank * each for out in outs_of_b]
    return sum(memory.allocated(size) for size in sizes)


def takes_ends(family: str, version: Version) -> bool:
    """Whether the model's embedding and head take adapters."""
    if family in _ENDS:
        return True
    if family in _ENDS_BEFORE_0_15:
        return version < (0, 15, 0)
    if family in _ENDS_SINCE_0_11:
        return version >= (0, 11, 0)
    return family in _ENDS_SINCE_0_15 and version >= (0, 15, 0)


def _ends_bytes(model: Architecture, told: Adapters, split: Split, stage: int) -> float:
    """Embedding (first stage) and head (last stage); neither is cut over devices."""
    hidden, words = model.hidden, model.vocabulary + told.extra_vocabulary
    each = told.number * told.dtype_bytes
    take: Callable[[float], float] = memory.allocated
    added = told.number * told.extra_vocabulary * hidden * told.dtype_bytes
    total = 0.0
    if stage == 0:
        total += take(words * told.rank * each) + take(hidden * told.rank * each)
        total += take(added) + added / split.tensor  # kept apart, and as rows of the table
    if stage == split.pipeline - 1:
        rows = padded(words, _OLD_PADDING) if told.extra_vocabulary else words
        total += take(rows * told.rank * each) + take(hidden * told.rank * each)
        total += take(added) + added / (split.tensor * told.number)
        if split.tensor > 1:
            total += take(padded(model.vocabulary, memory.VOCABULARY_PADDING) * _INDEX_BYTES)
    return total
