"""What vLLM refuses before it loads anything: divisors, lengths, batching, drafts."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from capcheck import GIB, Case, Support, Unknown, Value
from capcheck.measure import show_count
from capcheck.option_reader import OptionReader
from capcheck.physics.memory import VOCABULARY_PADDING
from capcheck_vllm.generation import generation
from capcheck_vllm.plan import NOT_GIVEN
from capcheck_vllm.refused import CHECKS as REFUSED
from capcheck_vllm.table import TABLE
from capcheck_vllm.weights import is_mtp

DIVISIBLE, CONFLICT, CONTEXT = "sharding/divisible", "options/conflict", "options/context-limit"
ENVIRONMENT, VALUE = "options/environment", "options/value"
WITHOUT_SWAP, MOST_SWAP = (0, 18, 0), 0.7
FITTED_LENGTH = (0, 14, 0)  # from here on -1 and auto fit max_model_len to the memory
SIZES = (
    "tensor_parallel_size",
    "pipeline_parallel_size",
    "data_parallel_size",
    "max_model_len",
    "max_num_seqs",
    "max_num_batched_tokens",
)

Check = Callable[[Case], Iterable[Support]]


def _divides(value: Value[int], amount: int, what: str, help: tuple[str, ...] = ()) -> Support:
    size = value.get()
    legal = size > 0 and amount % size == 0
    return Support(
        DIVISIBLE, legal, value, f"tensor parallel {size} does not divide {amount:,} {what}",
        help or _divisors(amount), f"{amount:,} / {size} = {amount / max(size, 1):g}",
    )  # fmt: skip


def _divisors(amount: int) -> tuple[str, ...]:
    sizes = [str(size) for size in (1, 2, 4, 8, 16, 32) if amount % size == 0]
    return (f"use {', '.join(sizes[:-1])} or {sizes[-1]}",) if len(sizes) > 1 else ()


def _reader(case: Case) -> OptionReader:
    return OptionReader(case.deployment, TABLE, case.release.version)


def engine_asked_for(case: Case) -> Iterator[Support]:
    """VLLM_USE_V1=1 with what this release's V1 cannot do."""
    read = _reader(case)
    found = generation(
        case.release.version, read, case.accelerator.either(None), case.model.either(None)
    )
    asked = case.deployment.text("engine", "env", "VLLM_USE_V1")
    if found.refused and asked is not None:
        words = f"VLLM_USE_V1=1, but V1 of {case.release.text} does not take {found.because}"
        yield Support(CONFLICT, False, asked, words, ("leave VLLM_USE_V1 out",))


def swap_space(case: Case) -> Iterator[Support]:
    """Host memory for swapping, tensor parallel devices together, against what the host has.

    Read in the cache configuration of 0.6.6 to 0.17.1: refused above 70 %, told above 40 %.
    """
    host = case.deployment.size("hardware", "host_memory")
    if host is None or case.release.version >= WITHOUT_SWAP:
        return
    stated = _reader(case).number("swap_space", 4.0)
    each, size = stated.get("swap_space"), case.plan.tensor.get("tensor_parallel_size")
    used, most = each * GIB * size, MOST_SWAP * host.get("hardware.host_memory")
    words = f"swap space for {size} devices takes more than 70 % of the host's memory"
    yield Support(
        CONFLICT, used <= most, stated, words, ("swap_space: 0",),
        f"{size} x {each:g} GiB = {used / GIB:g} GiB; 0.7 x {host.get() / GIB:.0f} GiB = "
        f"{most / GIB:.0f} GiB",
    )  # fmt: skip


def sizes(case: Case) -> Iterator[Support]:
    """Options that count something, and count less than one."""
    read = _reader(case)
    for name in SIZES:
        value = read.written_count(name)
        fitted = name == "max_model_len" and case.release.version >= FITTED_LENGTH
        if value is not None and value.known and not (fitted and value.get() == -1):
            words = f"{name}: expected a whole number of at least 1"
            yield Support(VALUE, value.get() >= 1, value, words)


def heads(case: Case) -> Iterator[Support]:
    """Query heads by tensor parallel size; KV heads by it or it by them."""
    model = case.model.get("model").architecture
    tensor = case.plan.tensor
    size = tensor.get("tensor_parallel_size")
    if model.heads:
        yield _divides(tensor, model.heads, "attention heads")
    kv = max((layer.mixer.kv_heads for layer in model.layers), default=0)
    if kv > 1 and size > 0:
        legal = kv % size == 0 if kv >= size else size % kv == 0
        yield Support(
            DIVISIBLE, legal, tensor,
            f"tensor parallel {size} and {kv} KV heads do not divide each other", _divisors(kv),
        )  # fmt: skip


def vocabulary(case: Case) -> Iterator[Support]:
    """The vocabulary, padded to 64."""
    model = case.model.get("model").architecture
    padded = -(-model.vocabulary // VOCABULARY_PADDING) * VOCABULARY_PADDING
    yield _divides(
        case.plan.tensor, padded, "rows of the padded vocabulary", ("use a power of two",)
    )


def vision_heads(case: Case) -> Iterator[Support]:
    """Heads of the image encoder, where it is split too."""
    model = case.model.get("model").architecture
    encoder = model.config.get("vision_config")
    count = encoder.get("num_heads") or encoder.get("num_attention_heads") if encoder else None
    read = _reader(case)
    mode = case.deployment.text(*read.path("mm_encoder_tp_mode"))
    if isinstance(count, int) and count and not (mode is not None and mode.either("") == "data"):
        help = ("mm_encoder_tp_mode: data",) if case.release.version >= (0, 10, 2) else ()
        yield _divides(case.plan.tensor, count, "heads of the vision tower", help)


def experts(case: Case) -> Iterator[Support]:
    """Experts over the devices that share them."""
    model = case.model.get("model").architecture
    size = case.plan.expert.get("expert parallel")
    if model.experts and size > 1:
        yield Support(
            DIVISIBLE, model.experts % size == 0, case.plan.expert,
            f"{model.experts} experts do not divide over {size} devices",
        )  # fmt: skip


def context(case: Case) -> Iterator[Support]:
    """max_model_len against what the configuration supports."""
    length = case.plan.max_request_tokens
    model = case.model.get("model")
    most = model.architecture.max_positions
    if length.origin.kind != "written" or most is None:
        return
    tokens = length.get("max_model_len")
    most = max(most, *(_told(one) for one in model.may_differ), 0)
    override = case.deployment.text("engine", "env", "VLLM_ALLOW_LONG_MAX_MODEL_LEN")
    read = _reader(case)
    scaled = any(read.has(name) for name in ("hf_overrides", "rope_scaling"))
    if scaled:
        return
    allowed = override is not None and override.either("1") not in ("0", "")
    doubt = "VLLM_ALLOW_LONG_MAX_MODEL_LEN lifts the check" if allowed else ""
    if any(_on_length(one) for one in model.may_differ):
        doubt = doubt or "the upload's own config.json may say another length"
    if any(_on_length(one) for one in model.architecture.doubts):
        doubt = doubt or "the length in the catalogue is doubtful"
    yield Support(
        CONTEXT, tokens <= most, length,
        f"max_model_len {show_count(tokens)} is above what {model.name} supports",
        (f"max_model_len: {most}",), f"{show_count(tokens)} > {show_count(most)}", doubt,
    )  # fmt: skip


def _told(remark: str) -> int:
    """The length that an upload's own configuration may have; 0 when the remark tells none."""
    found = re.search(r"position_embeddings may be (\d+)", remark)
    return int(found[1]) if found else 0


def _on_length(remark: str) -> bool:
    """Whether a remark on a record is about the context length."""
    return any(word in remark.lower() for word in ("position", "rope", "length", "config.json"))


def batching(case: Case) -> Iterator[Support]:
    """The token budget of a step against sequences, and against the length without chunking."""
    plan = case.plan
    batched = plan.max_step_tokens
    tokens = batched.get("max_num_batched_tokens")
    sequences = plan.max_sequences.get("max_num_seqs")
    at: Value[Any] = batched if batched.origin.kind == "written" else plan.max_sequences
    yield Support(
        CONFLICT, tokens >= sequences, at,
        f"max_num_batched_tokens {show_count(tokens)} is below max_num_seqs "
        f"{show_count(sequences)}",
        (f"max_num_batched_tokens: {max(2048, sequences)}",),
    )  # fmt: skip
    if not plan.chunked_prefill.get("enable_chunked_prefill"):
        length = plan.max_request_tokens.get("max_model_len")
        yield Support(
            CONFLICT, tokens >= length, at,
            f"without chunked prefill max_num_batched_tokens {show_count(tokens)} must not be "
            f"below max_model_len {show_count(length)}",
            ("enable_chunked_prefill: true", f"max_num_batched_tokens: {length}"),
        )  # fmt: skip


def draft(case: Case) -> Iterator[Support]:
    """A draft model's vocabulary and tensor parallel size."""
    named = case.plan.draft
    if named is None or is_mtp(named.get("draft model")):
        return
    if named.get().lower() in ("ngram", "[ngram]", "suffix", "eagle", "eagle3", "medusa"):
        return
    model, other = case.model.get("model").architecture, case.draft_model()
    if other is not None:
        theirs = other.architecture.vocabulary
        yield Support(
            CONFLICT, theirs == model.vocabulary, named,
            f"the draft's vocabulary of {theirs:,} is not the model's {model.vocabulary:,}",
            ("use a draft of the same family and vocabulary",),
            doubt="; ".join(other.may_differ) and "the draft's own config.json was not seen",
        )  # fmt: skip


def draft_sizes(case: Case) -> Iterator[Support]:
    """Tokens that a draft proposes, and the devices that it runs on."""
    named, tokens = case.plan.draft, case.plan.draft_tokens
    if named is None or is_mtp(named.either("")):
        return
    if named.either("").lower() in ("ngram", "[ngram]"):
        given = tokens is not None and not tokens.origin.why.startswith(NOT_GIVEN)
        yield Support(
            CONFLICT, given, named, f"{named.get()} proposes no tokens: {NOT_GIVEN}",
            ("num_speculative_tokens: 3",),
        )  # fmt: skip
    if tokens is not None and tokens.known:
        words = f"num_speculative_tokens {tokens.get()} is below 1"
        yield Support(CONFLICT, tokens.get() >= 1, tokens, words)
    path = _reader(case).path("speculative_config", "draft_tensor_parallel_size")
    size = case.deployment.count(*path)
    if size is not None:
        own, tensor = size.get("draft_tensor_parallel_size"), case.plan.tensor.get()
        yield Support(
            CONFLICT, own in (1, tensor), size,
            f"the draft's tensor parallel size {own} is neither 1 nor {tensor}",
        )  # fmt: skip


def tools(case: Case) -> Iterator[Support]:
    """Automatic tool choice needs a parser of what the model calls tools with."""
    read = _reader(case)
    chosen = read.flag("enable_auto_tool_choice", False)
    if read.has("enable_auto_tool_choice") and chosen.either(False) and not read.is_open:
        parser = read.has("tool_call_parser")
        yield Support(
            CONFLICT, parser, chosen, "enable_auto_tool_choice needs tool_call_parser",
            ("name the parser of the model's tool calls: hermes, llama3_json, ...",),
        )  # fmt: skip


def service_name(case: Case) -> Iterator[Support]:
    """A Service called vllm injects VLLM_PORT, which vLLM reads as its own."""
    services = case.deployment.fields.get(("runtime", "services"))
    links = case.deployment.flag("runtime", "service_links")
    if (
        services is None
        or not services.known
        or (links is not None and links.either(True) is False)
    ):
        return
    names = case.deployment.text("runtime", "services")
    own = case.deployment.text("engine", "env", "VLLM_PORT")
    clash = names is not None and "vllm" in names.options and own is None
    yield Support(
        ENVIRONMENT, not clash, services,
        "a Service named vllm makes Kubernetes set VLLM_PORT=tcp://..., which vLLM cannot parse",
        ("rename the Service", "enableServiceLinks: false"),
    )  # fmt: skip


CHECKS: tuple[tuple[str, Check], ...] = (
    (VALUE, sizes),
    (DIVISIBLE, heads), (DIVISIBLE, vocabulary), (DIVISIBLE, vision_heads), (DIVISIBLE, experts),
    (CONTEXT, context), (CONFLICT, batching), (CONFLICT, draft), (CONFLICT, draft_sizes),
    (CONFLICT, tools), (CONFLICT, engine_asked_for), (CONFLICT, swap_space),
    (ENVIRONMENT, service_name), *REFUSED,
)  # fmt: skip


def supports(case: Case) -> Iterator[Support]:
    """Everything, check by check: an input that is not known costs only its own check."""
    for rule, check in CHECKS:
        try:
            yield from list(check(case))
        except Unknown as lost:
            yield Support(rule, None, lost.value, lost.why)
