"""Which of vLLM's two engines serves: V0, or V1 with what it did not take at first.

From 0.8.0 V1 is the default; until 0.10 what it could not do fell back to V0, and with
VLLM_USE_V1=1 it was refused. Read in the argument code of 0.8.5, 0.9.0 to 0.9.2, 0.10.0 to 0.10.2.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capcheck import Accelerator, Model
from capcheck.option_reader import OptionReader

Version = tuple[int, ...]
V1 = (0, 8, 0)
ONLY_V1 = (0, 11, 0)

# Features that V1 did not take, and the first release that does.
OLD_CAPABILITY_UNTIL = (0, 10, 2)
OLD_DTYPES_UNTIL = (0, 9, 2)
POOLING_UNTIL = (0, 9, 2)
STATES_UNTIL = (0, 10, 2)
MULTI_STEP_UNTIL = (0, 10, 1)
DRAFTS_UNTIL = (0, 10, 0)
OTHER_VENDORS_UNTIL = (0, 9, 0)
PIPELINE_UNTIL = (0, 9, 0)

EARLY_DRAFTS = ("ngram", "[ngram]", "eagle", "eagle3")
LATER_DRAFTS = (*EARLY_DRAFTS, "medusa", "deepseek_mtp")
GENERATES = ("auto", "generate")


class Generation(NamedTuple):
    """The engine, what made it V0 after 0.8, and whether VLLM_USE_V1=1 stands against it."""

    v1: bool
    because: str = ""
    refused: bool = False  # V1 was asked for, and this release's V1 cannot


def generation(
    version: Version, read: OptionReader, accelerator: Accelerator | None, model: Model | None
) -> Generation:
    """What this release starts with these options."""
    if version < V1:
        return Generation(False)
    asked = read.env("VLLM_USE_V1")
    if version >= ONLY_V1:
        return Generation(version >= (0, 12, 0) or asked != "0")
    if asked == "0":
        return Generation(False, "VLLM_USE_V1=0")
    hard = next(_refused(version, read, accelerator, model), "")
    if hard:
        return Generation(False, hard, asked == "1")
    soft = next(_off_by_default(version, read, accelerator, model), "")
    return Generation(asked == "1" or not soft, "" if asked == "1" else soft)


def _refused(
    version: Version, read: OptionReader, accelerator: Accelerator | None, model: Model | None
) -> Iterator[str]:
    """What V1 of this release cannot do at all."""
    if accelerator is not None and accelerator.vendor == "nvidia":
        capability = accelerator.capability
        if version < OLD_CAPABILITY_UNTIL and capability is not None and capability < 8.0:
            yield f"compute capability {capability:g} is below 8.0"
        yield from _cache_dtype(read, capability)
    if version < OLD_DTYPES_UNTIL and read.text("dtype", "auto").either("") in ("float32", "float"):
        yield "dtype float32"
    if version < POOLING_UNTIL and read.text("task", "auto").either("auto") not in GENERATES:
        yield "a task other than generate"
    if version < MULTI_STEP_UNTIL and (read.count("num_scheduler_steps", 1).either(1) or 1) > 1:
        yield "num_scheduler_steps"
    # V1 recomputes by itself: files that ask for it were written for V1.
    if read.text("preemption_mode", "recompute").either("recompute") != "recompute":
        yield "preemption_mode"
    draft = _draft(read)
    known = LATER_DRAFTS if version >= (0, 9, 2) else EARLY_DRAFTS
    if version < DRAFTS_UNTIL and draft and draft not in known:
        yield "this method of speculative decoding"
    if model is not None and any(
        layer.cache is not None and layer.cache.kind == "cross"
        for layer in model.architecture.layers
    ):
        yield "an encoder-decoder model"


def _cache_dtype(read: OptionReader, capability: float | None) -> Iterator[str]:
    """Only FlashAttention 3 read an FP8 cache; any other dtype of its own was not taken."""
    word = read.text("kv_cache_dtype", "auto").either("auto") or "auto"
    if word == "auto":
        return
    if not (word.startswith("fp8") and capability is not None and 9.0 <= capability < 11):
        yield f"kv_cache_dtype {word}"


def _off_by_default(
    version: Version, read: OptionReader, accelerator: Accelerator | None, model: Model | None
) -> Iterator[str]:
    """What V1 does only when it is asked for."""
    if accelerator is not None and version < OTHER_VENDORS_UNTIL and accelerator.vendor != "nvidia":
        yield f"V1 is off by default on {accelerator.vendor}"
    if version < OTHER_VENDORS_UNTIL and _draft(read):
        yield "speculative decoding"
    stages = read.count("pipeline_parallel_size", 1).either(1) or 1
    backend = read.text("distributed_executor_backend", "").either("")
    if version < PIPELINE_UNTIL and stages > 1 and backend != "ray":
        yield "pipeline parallel without Ray"
    if version < STATES_UNTIL and model is not None and _has_states(model):
        yield "a model with recurrent state"


def _has_states(model: Model) -> bool:
    return any(
        layer.cache is not None and layer.cache.kind == "state"
        for layer in model.architecture.layers
    )


def _draft(read: OptionReader) -> str:
    """The method of speculative decoding, or the draft's name; "" for none."""
    for name, more in (
        ("speculative_config", ("method",)),
        ("speculative_config", ("model",)),
        ("speculative_model", ()),
    ):
        found = read.deployment.text(*read.path(name, *more))
        if found is not None:
            return (found.either("") or "a draft").lower()
    return ""
