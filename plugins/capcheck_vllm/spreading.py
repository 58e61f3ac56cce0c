"""How vLLM spreads a model over devices: whose experts, which encoders, what is copied."""

from __future__ import annotations

from typing import Any

from capcheck import Architecture, Case, Plan, Value
from capcheck.option_reader import OptionReader
from capcheck.physics.memory import Split
from capcheck_vllm.table import TABLE

Version = tuple[int, ...]

# Shared experts become whole on each device where tokens are spread over the devices before the
# experts: with expert, tensor and data parallelism. Read in the models' sources, 0.11.0 to 0.33.0.
_WHOLE_SHARED_SINCE: Version = (0, 11, 0)
_WHOLE_SHARED = frozenset((
    "deepseek_v2", "deepseek_v3", "deepseek_v32", "kimi_k2", "glm_moe_dsa", "glm4_moe_lite",
    "llama4", "llama4_text", "nemotron_h", "kimi_k25", "kimi_vl",
))  # fmt: skip
_WHOLE_SHARED_LATER = frozenset(("qwen2_moe", "qwen3_next", "qwen3_5_moe", "qwen3_5_moe_text"))
_LATER: Version = (0, 20, 0)
_KEEPS_TOKENS_TOGETHER = frozenset(("pplx", "flashinfer_all2allv", "moonep"))
# Encoders that are Hugging Face's own modules, or written without tensor parallelism.
_WHOLE_ENCODERS = frozenset(("gemma4", "gemma3n"))
_WHOLE_SOUND = frozenset(("qwen2_audio", "qwen2_5_omni", "qwen2_5_omni_thinker", "ultravox"))
_WHOLE_SOUND_BEFORE: tuple[tuple[str, Version], ...] = (
    ("qwen3_omni_moe", (0, 15, 0)),
    ("qwen3_omni_moe_thinker", (0, 15, 0)),
)
_WHOLE_MOONVIT_BEFORE: Version = (0, 11, 1)
_DROPS_ENCODERS: Version = (0, 11, 0)


def options(read: OptionReader, why: str) -> dict[str, Value[Any]]:
    """What decides the spread and the buffers of adapters, beside the plan's own fields."""
    spare = read.count("num_redundant_experts", 0, why)
    nested = read.written_count("eplb_config", "num_redundant_experts")
    balanced = read.flag("enable_eplb", False, why)
    if nested is not None:
        spare = nested
    return {
        "prefill_context": read.count("prefill_context_parallel_size", 1, why),
        "encoder_mode": read.text("mm_encoder_tp_mode", "weights", why),
        "all2all_backend": read.text("all2all_backend", "", why),
        "spare_experts": spare if balanced.either(True) else balanced.map(int),
        "fully_sharded_loras": read.flag("fully_sharded_loras", False, why),
        "lora_dtype": read.text("lora_dtype", "auto", why),
        "lora_extra_vocab_size": read.count("lora_extra_vocab_size", 256, why),
    }


def spread(case: Case) -> Split:
    """The parallel layout. Raises Unknown."""
    plan = case.plan
    tensor = max(1, plan.tensor.get("tensor_parallel_size"))
    expert = max(1, plan.expert.get("expert parallel"))
    model = case.model.either(None)
    architecture = model.architecture if model is not None else None
    return Split(
        tensor=tensor,
        pipeline=max(1, plan.pipeline.get("pipeline_parallel_size")),
        expert=expert * _prefill(plan) if expert > 1 else 1,
        # Without expert parallelism the experts' matrices are cut over all ranks of data too.
        experts_over=tensor * max(1, plan.data.get("data_parallel_size")) * _prefill(plan),
        shared_over=1 if architecture and _whole_shared(case, architecture) else 0,
        towers_over=1 if _whole_encoders(case, architecture) else 0,
        audio_over=1 if architecture and _whole_sound(case, architecture) else 0,
        spare_experts=max(0, plan.extra["spare_experts"].get("num_redundant_experts")),
    )


def _prefill(plan: Plan) -> int:
    return max(1, int(plan.extra["prefill_context"].get("prefill_context_parallel_size")))


def _whole_shared(case: Case, model: Architecture) -> bool:
    plan, version = case.plan, case.release.version
    tokens_spread = (
        plan.expert.get() > 1
        and plan.tensor.get() > 1
        and plan.data.get() > 1
        and plan.extra["all2all_backend"].either("") not in _KEEPS_TOKENS_TOGETHER
    )
    if not tokens_spread or version < _WHOLE_SHARED_SINCE:
        return False
    return model.family in _WHOLE_SHARED or (
        version >= _LATER and model.family in _WHOLE_SHARED_LATER
    )


def _whole_encoders(case: Case, model: Architecture | None) -> bool:
    if case.plan.extra["encoder_mode"].get("mm_encoder_tp_mode") == "data":
        return True
    if model is None:
        return False
    if model.family.startswith("kimi_"):
        return case.release.version < _WHOLE_MOONVIT_BEFORE
    return model.family in _WHOLE_ENCODERS


def _whole_sound(case: Case, model: Architecture) -> bool:
    if model.family in _WHOLE_SOUND:
        return True
    return any(
        model.family == family and case.release.version < until
        for family, until in _WHOLE_SOUND_BEFORE
    )


def keeps_encoders(case: Case) -> bool:
    """Whether encoders of images and sound are loaded: not where no such input is let in."""
    if case.plan.extra["language_model_only"].get():
        return False
    model = case.model.either(None)
    if model is None or case.release.version < _DROPS_ENCODERS:
        return True
    sound = any(tensor.role == "audio" for tensor in model.architecture.towers)
    kinds = ("image", "video", "audio") if sound else ("image", "video")
    read = OptionReader(case.deployment, TABLE, case.release.version)
    return not all(_limit(read, kind) == 0 for kind in kinds)


def _limit(read: OptionReader, kind: str) -> int | None:
    value = read.written_count("limit_mm_per_prompt", kind)
    return value.either(None) if value is not None else None
