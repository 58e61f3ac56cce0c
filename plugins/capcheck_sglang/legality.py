"""What SGLang refuses before it loads anything: divisors, lengths, batching, drafts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from capcheck import Case, Support, Unknown, Value
from capcheck.measure import show_count
from capcheck.option_reader import OptionReader
from capcheck_sglang import shapes
from capcheck_sglang.drafting import LOOKUP, OWN
from capcheck_sglang.pool import page_tokens
from capcheck_sglang.table import TABLE

DIVISIBLE, CONFLICT, CONTEXT = "sharding/divisible", "options/conflict", "options/context-limit"
VALUE, SUPPORTED = "options/value", "quantization/supported"
SIZES = ("tp_size", "pp_size", "dp_size", "ep_size", "context_length", "max_running_requests",
         "page_size", "max_total_tokens")  # fmt: skip
OLDEST_CAPABILITY = 7.5

Check = Callable[[Case], Iterable[Support]]


def _reader(case: Case) -> OptionReader:
    return OptionReader(case.deployment, TABLE, case.release.version)


def _divisors(amount: int) -> tuple[str, ...]:
    found = [str(size) for size in (1, 2, 4, 8, 16, 32) if amount % size == 0]
    return (f"use {', '.join(found[:-1])} or {found[-1]}",) if len(found) > 1 else ()


def sizes(case: Case) -> Iterator[Support]:
    """Options that count something, and count less than one; a share that is none."""
    read = _reader(case)
    for name in SIZES:
        value = read.written_count(name)
        if value is not None and value.known:
            words = f"{name}: expected a whole number of at least 1"
            yield Support(VALUE, value.get() >= 1, value, words)
    for name in ("mem_fraction_static", "swa_full_tokens_ratio"):
        share = read.number(name, 0.5)
        if read.has(name) and share.known:
            most = 1.0 if name == "swa_full_tokens_ratio" else 0.9999
            words = f"{name}: expected a share between 0 and 1"
            yield Support(VALUE, 0.0 < share.get() <= most, share, words)


def requests(case: Case) -> Iterator[Support]:
    """More requests at once than the token pool is stated to have tokens."""
    read = _reader(case)
    pool, most = read.written_count("max_total_tokens"), read.written_count("max_running_requests")
    fits = pool is None or most is None or pool.get() >= most.get()
    at = most if most is not None else case.plan.max_sequences
    yield Support(CONFLICT, fits, at, "max_running_requests exceeds max_total_tokens")


def heads(case: Case) -> Iterator[Support]:
    """Query heads by the devices of one attention rank; KV heads by them or they by them."""
    model = case.model.get("model").architecture
    tensor = case.plan.tensor
    size = tensor.get("tp_size")
    if model.heads:
        yield Support(
            DIVISIBLE, model.heads % size == 0, tensor,
            f"tensor parallel {size} does not divide {model.heads:,} attention heads",
            _divisors(model.heads), f"{model.heads:,} / {size} = {model.heads / size:g}",
        )  # fmt: skip
    kv = max((layer.mixer.kv_heads for layer in model.layers), default=0)
    if kv > 1:
        legal = kv % size == 0 if kv >= size else size % kv == 0
        yield Support(
            DIVISIBLE, legal, tensor,
            f"tensor parallel {size} and {kv} KV heads do not divide each other", _divisors(kv),
        )  # fmt: skip


def experts(case: Case) -> Iterator[Support]:
    """Experts over the devices that share them, and these over all."""
    model = case.model.get("model").architecture
    expert, tensor = case.plan.expert, case.plan.extra["all_tensor"]
    size, devices = expert.get("ep_size"), tensor.get("tp_size")
    if model.experts and size > 1:
        yield Support(
            DIVISIBLE, devices % size == 0, expert,
            f"expert parallel {size} does not divide tensor parallel {devices}",
            _divisors(devices),
        )  # fmt: skip
        spare = _reader(case).count("ep_num_redundant_experts", 0).get()
        yield Support(
            DIVISIBLE, (model.experts + spare) % size == 0, expert,
            f"{model.experts + spare} experts do not divide over {size} devices",
        )  # fmt: skip


def attention_ranks(case: Case) -> Iterator[Support]:
    """Ranks of data-parallel attention divide tensor parallelism, and are several."""
    ranks, tensor = case.plan.extra["attention_ranks"], case.plan.extra["all_tensor"]
    read = _reader(case)
    asked = read.flag("enable_dp_attention", False)
    count = ranks.get("dp_size")
    if asked.either(False) and count == 1 and case.release.version >= (0, 4, 4):
        old = case.release.version < (0, 5)
        yield Support(
            CONFLICT, not old, asked, "enable_dp_attention needs a dp_size above 1", ("dp_size: 2",)
        )
    if count > 1:
        size = tensor.get("tp_size")
        yield Support(
            DIVISIBLE, size % count == 0, ranks,
            f"{count} data-parallel ranks of attention do not divide tensor parallel {size}",
        )  # fmt: skip


def context(case: Case) -> Iterator[Support]:
    """context_length against what the configuration supports."""
    length, model = case.plan.max_request_tokens, case.model.get("model")
    most = model.architecture.max_positions
    if length.origin.kind != "written" or most is None:
        return
    tokens = length.get("context_length")
    override = case.deployment.text("engine", "env", "SGLANG_ALLOW_OVERWRITE_LONGER_CONTEXT_LEN")
    lifted = override is not None and override.either("1") not in ("0", "false", "")
    scaled = _reader(case).has("json_model_override_args")
    # Releases before 0.4.6 only warned.
    doubt = "" if case.release.version >= (0, 4, 6) else "this release only warns"
    if model.may_differ or model.architecture.doubts:
        doubt = doubt or "the upload's own config.json may say another length"
    if not (lifted or scaled):
        yield Support(
            CONTEXT, tokens <= most, length,
            f"context_length {show_count(tokens)} is above what {model.name} supports",
            (f"context_length: {most}",), f"{show_count(tokens)} > {show_count(most)}", doubt,
        )  # fmt: skip


def chunks(case: Case) -> Iterator[Support]:
    """A chunk is whole pages."""
    read = _reader(case)
    chunk, page = read.written_count("chunked_prefill_size"), read.written_count("page_size")
    if chunk is None or not chunk.known or chunk.get() <= 0 or case.release.version < (0, 4, 4):
        return
    size = page_tokens(case)
    at: Value[Any] = page if page is not None and page.known else chunk
    doubt = "" if page is not None else "the attention backend may choose another page size"
    yield Support(
        CONFLICT, chunk.get() % size == 0, at,
        f"chunked_prefill_size {chunk.get():,} is no multiple of page_size {size}",
        (f"chunked_prefill_size: {max(1, chunk.get() // size) * size}",), doubt=doubt,
    )  # fmt: skip


def nodes(case: Case) -> Iterator[Support]:
    """Tensor x pipeline parallelism over nodes; plain data parallelism stays on one."""
    read, plan = _reader(case), case.plan
    count = read.written_count("nnodes")
    if count is None or not count.known or count.get() < 2:
        return
    size = plan.extra["all_tensor"].get("tp_size") * plan.pipeline.get("pp_size")
    words = f"tp_size x pp_size = {size} does not divide over {count.get()} nodes"
    yield Support(CONFLICT, size % count.get() == 0, count, words)
    ranks = read.written_count("dp_size")
    if ranks is not None and ranks.known:
        alone = ranks.get() == 1 or plan.extra["attention_ranks"].get() > 1
        words = "data parallelism over several nodes needs enable_dp_attention"
        yield Support(CONFLICT, alone, ranks, words, ("enable_dp_attention: true",))


def pipeline(case: Case) -> Iterator[Support]:
    """Pipeline parallelism excludes speculation and mixed chunks."""
    stages, draft = case.plan.pipeline, case.plan.draft
    if stages.get("pp_size") < 2:
        return
    # From 0.5.6 on some pairs are allowed.
    doubt = "" if case.release.version < (0, 5, 6) else "newer releases allow some of these"
    words = "pipeline parallelism does not go with speculative decoding"
    yield Support(CONFLICT, draft is None, stages, words, ("pp_size: 1",), doubt=doubt)
    mixed = case.plan.extra["enable_mixed_chunk"]
    words = "pipeline parallelism does not go with enable_mixed_chunk"
    yield Support(CONFLICT, not mixed.get(), mixed, words, doubt=doubt)


def draft(case: Case) -> Iterator[Support]:
    """A draft has the model's vocabulary; its three sizes come together; no mixed chunks."""
    named = case.plan.draft
    if named is None:
        return
    read = _reader(case)
    three = ("speculative_num_steps", "speculative_eagle_topk", "speculative_num_draft_tokens")
    given = [name for name in three if read.has(name)]
    eagle = case.plan.extra["speculative_algorithm"].get() in ("EAGLE", "EAGLE3")
    if eagle and 0 < len(given) < len(three) and "speculative_num_steps" not in given:
        missing = ", ".join(name for name in three if name not in given)
        words = f"{given[0]} is given without {missing}"
        yield Support(CONFLICT, False, named, words, doubt="some releases fill the others in")
    mixed = case.plan.extra["enable_mixed_chunk"]
    words = "speculative decoding does not go with enable_mixed_chunk"
    yield Support(CONFLICT, not mixed.get(), mixed, words, ("enable_mixed_chunk: false",))
    standalone = case.plan.extra["speculative_algorithm"].get() == "STANDALONE"
    if named.get("draft model") in (OWN, LOOKUP) or not standalone:
        return
    model, other = case.model.get("model").architecture, case.draft_model()
    if other is not None:
        theirs = other.architecture.vocabulary
        yield Support(
            CONFLICT, theirs == model.vocabulary, named,
            f"the draft's vocabulary of {theirs:,} is not the model's {model.vocabulary:,}",
            ("use a draft of the same family and vocabulary",),
            doubt=(other.may_differ and "the draft's own config.json was not seen") or "",
        )  # fmt: skip


def dense_split(case: Case) -> Iterator[Support]:
    """moe_dense_tp_size is 1 or absent; captured graphs exclude one mode of DeepEP."""
    read = _reader(case)
    size = read.written_count("moe_dense_tp_size")
    if size is not None and size.known:
        words = f"moe_dense_tp_size {size.get()} is not 1, the only size there is"
        doubt = "" if case.release.version < (0, 5, 10) else "newer releases may take others"
        yield Support(
            CONFLICT, size.get() == 1, size, words, ("moe_dense_tp_size: 1",), doubt=doubt
        )
    mode = case.deployment.text(*read.path("deepep_mode"))
    if mode is not None and mode.known and case.release.version < (0, 4, 7):
        captured = case.plan.graphs.get() and mode.get() == "normal" and not _graphs_off(case)
        words = "DeepEP's normal mode cannot be captured in CUDA graphs"
        doubt = "releases from 0.4.6 turn the graphs off by themselves"
        yield Support(CONFLICT, not captured, mode, words, ("disable_cuda_graph: true",),
                      doubt=doubt)  # fmt: skip


def _graphs_off(case: Case) -> bool:
    return _reader(case).flag("disable_cuda_graph", False).either(False)


def device(case: Case) -> Iterator[Support]:
    """NVIDIA devices below compute capability 7.5 are refused."""
    part = case.accelerator.get("accelerator")
    if part.vendor == "nvidia" and part.capability is not None:
        words = f"SGLang needs compute capability 7.5, {part.name} has {part.capability:g}"
        legal = part.capability >= OLDEST_CAPABILITY
        yield Support(SUPPORTED, legal, case.accelerator, words)


def packed(case: Case) -> Iterator[Support]:
    """Blocks and groups of packed weights over the devices."""
    yield from shapes.supports(case)


CHECKS: Mapping[Check, str] = {
    sizes: VALUE, heads: DIVISIBLE, experts: DIVISIBLE, attention_ranks: DIVISIBLE,
    context: CONTEXT, chunks: CONFLICT, nodes: CONFLICT, pipeline: CONFLICT, draft: CONFLICT,
    dense_split: CONFLICT, requests: CONFLICT, device: SUPPORTED, packed: DIVISIBLE,
}  # fmt: skip


def supports(case: Case) -> Iterator[Support]:
    """Everything, check by check: an input that is not known costs only its own check."""
    for check, rule in CHECKS.items():
        try:
            yield from list(check(case))
        except Unknown as lost:
            yield Support(rule, None, lost.value, lost.why)
