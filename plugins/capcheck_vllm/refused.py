"""Drafts, values and checkpoints that vLLM refuses only once it builds its configuration.

Each with the releases whose source refuses it: read in 0.6.6 to 0.33.0.
"""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Case, Support
from capcheck.option_reader import OptionReader
from capcheck_vllm.table import TABLE

CONFLICT, DIVISIBLE, VALUE = "options/conflict", "sharding/divisible", "options/value"

# "Speculative decoding with draft model is not supported yet": raised by 0.10.0 to 0.14.1,
# by V0 and V1 alike; gone from 0.16.0. 0.15 was not looked at.
NO_DRAFTS, DRAFTS_AGAIN = (0, 10, 0), (0, 15, 0)
DRAFTS_INSTEAD = (
    "use a method without a draft model: ngram, or an eagle or medusa head of this model",
    "0.16.0 takes draft models again",
)
# What a model's own class makes a multi-token prediction of, when it is named as the draft.
PREDICTS = ("deepseek", "pangu", "mimo", "glm", "ernie", "qwen3_next", "exaone", "longcat")
HEADS = ("eagle", "medusa", "speculator", "mtp", "mistral-large-3", "ngram", "suffix")

DCP_CHECKED = (0, 26, 0)  # from here on refused by name; before, ranks cannot be laid out
STORED_ONLY = ("awq", "awq_marlin", "gptq", "gptq_marlin")  # methods that look for their file
GRAPHS_NAMED = (0, 10, 2)
GRAPH_MODES = ("NONE", "PIECEWISE", "FULL", "FULL_DECODE_ONLY", "FULL_AND_PIECEWISE")
ITEMS_COUNTED = (0, 14, 0)  # limit_mm_per_prompt is checked from here on


def _reader(case: Case) -> OptionReader:
    return OptionReader(case.deployment, TABLE, case.release.version)


def plain_draft(case: Case) -> Iterator[Support]:
    """A causal model as the draft, in releases that take none. Unknown drafts stay unknown."""
    read = _reader(case)
    named = case.deployment.text(*read.path("speculative_config", "model"))
    release = case.release
    if named is None or not release.known or not NO_DRAFTS <= release.version < DRAFTS_AGAIN:
        return
    method = case.deployment.text(*read.path("speculative_config", "method"))
    if method is not None and method.get("method") not in ("", "draft_model"):
        return
    name = named.get("speculative_config.model").lower()
    if any(word in name for word in HEADS):
        return
    draft = case.draft_model()
    if draft is None or any(word in draft.architecture.family for word in (*PREDICTS, *HEADS)):
        return
    yield Support(
        CONFLICT, False, named,
        f"vllm {release.text} does not take a draft model for speculative decoding",
        DRAFTS_INSTEAD, "vllm 0.10 to 0.14 raise NotImplementedError",
        doubt="; ".join(draft.may_differ) and "the draft's own config.json was not seen",
    )  # fmt: skip


def decode_context(case: Case) -> Iterator[Support]:
    """Decode context parallel reuses the ranks of tensor parallel, in groups of its size."""
    read = _reader(case)
    size = read.written_count("decode_context_parallel_size")
    if size is None or read.has("prefill_context_parallel_size"):
        return
    own, tensor = size.get("decode_context_parallel_size"), case.plan.tensor.get()
    if own < 1 or tensor % own == 0:
        return
    ranks = tensor * case.plan.pipeline.get() * max(1, case.plan.data.get())
    if case.release.version >= DCP_CHECKED or ranks % own:
        yield Support(
            DIVISIBLE, False, size,
            f"decode context parallel {own} does not divide tensor parallel {tensor}",
            (), f"{tensor} / {own} = {tensor / own:g}",
        )  # fmt: skip


def stored_quantization(case: Case) -> Iterator[Support]:
    """AWQ and GPTQ are read from quantized checkpoints; nothing is quantized while loading."""
    read = _reader(case)
    word = case.deployment.text(*read.path("quantization"))
    told = any(read.has(name) for name in ("hf_overrides", "quantization_config"))
    if word is None or told or word.get("quantization") not in STORED_ONLY:
        return
    model = case.model.get("model")
    if model.scheme.get("quantization") is not None:
        return
    seen = model.how == "exact" or model.how.startswith("alias of ")
    yield Support(
        CONFLICT, False, word, f"{model.name} is not quantized: there is nothing of {word.get()} "
        "to load",
        (f"name an {word.get().partition('_')[0].upper()} upload of the model",
         "quantization: fp8 quantizes while loading"),
        f"vllm: Cannot find the config file for {word.get()}",
        doubt="" if seen and not model.may_differ else "the checkpoint's own files were not seen",
    )  # fmt: skip


def memory_values(case: Case) -> Iterator[Support]:
    """Amounts that leave no cache at all, for models that keep one."""
    read = _reader(case)
    if case.plan.extra["pooling"].get("pooling"):
        return
    share = case.deployment.number(*read.path("gpu_memory_utilization"))
    exact = read.written_count("kv_cache_memory_bytes")
    blocks = read.written_count("num_gpu_blocks_override")
    if share is not None and share.known and exact is None and blocks is None:
        words = "gpu_memory_utilization: expected a number above 0 and at most 1"
        yield Support(VALUE, share.get() > 0, share, words)
    if exact is not None and exact.known:
        words = "kv_cache_memory_bytes: expected a whole number of at least 1"
        yield Support(VALUE, exact.get() >= 0, exact, words)  # 0 is as if it were not given
    if blocks is not None and blocks.known:
        words = "num_gpu_blocks_override: expected a whole number of at least 1"
        yield Support(VALUE, blocks.get() >= 1, blocks, words)


def graph_mode(case: Case) -> Iterator[Support]:
    """compilation_config.cudagraph_mode is one of an enumeration's names, in any case."""
    mode = case.deployment.text(*_reader(case).path("compilation_config", "cudagraph_mode"))
    if mode is None or not mode.known or case.release.version < GRAPHS_NAMED:
        return
    word = mode.get().upper()
    legal = word in GRAPH_MODES or word.isdigit()  # a number stands for a mode, too
    words = f"compilation_config.cudagraph_mode: expected one of {', '.join(GRAPH_MODES)}"
    yield Support(VALUE, legal, mode, words)


def item_limits(case: Case) -> Iterator[Support]:
    """Items of a kind in one prompt: not below 0."""
    if not case.release.known or case.release.version < ITEMS_COUNTED:
        return
    read = _reader(case)
    for kind in ("image", "video", "audio"):
        count = case.deployment.count(*read.path("limit_mm_per_prompt", kind))
        if count is not None and count.known:
            words = f"limit_mm_per_prompt.{kind}: expected a whole number of at least 0"
            yield Support(VALUE, count.get() >= 0, count, words)


CHECKS = (
    (CONFLICT, plain_draft), (DIVISIBLE, decode_context), (CONFLICT, stored_quantization),
    (VALUE, memory_values), (VALUE, graph_mode), (VALUE, item_limits),
)  # fmt: skip
