"""What the launcher and its router refuse: lengths, batch budgets, shards."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from capcheck import ARGS, ENV, Case, Support, Unknown, Value
from capcheck.measure import show_count
from capcheck_tgi.reading import Options
from capcheck_tgi.releases import CHUNKING
from capcheck_tgi.table import TABLE

CONFLICT, VALUE, DIVISIBLE = "options/conflict", "options/value", "sharding/divisible"
CONTEXT = "options/context-limit"
SIZES = (
    "num_shard", "max_total_tokens", "max_batch_prefill_tokens", "max_batch_size",
    "validation_workers", "max_concurrent_requests",
)  # fmt: skip
READ_STRICTLY = ("int", "choice")

Check = Callable[[Case], Iterable[Support]]


def _options(case: Case) -> Options:
    return Options(case.deployment, case.release.version)


def _stated(case: Case, *names: str) -> Value[int] | None:
    """The first of these options that is given, as a known number."""
    options = _options(case)
    for name in names:
        if options.has(name):
            value = options.count(name)
            return value if value is not None and value.known else None
    return None


def sizes(case: Case) -> Iterator[Support]:
    """Options that count something, and count less than one."""
    for name in SIZES:
        value = _stated(case, name)
        if value is not None:
            words = f"{name}: expected a whole number of at least 1"
            yield Support(VALUE, value.get() >= 1, value, words)
    share = _options(case).number("cuda_memory_fraction")
    if share is not None and share.known:
        legal = 0 < share.get() <= 1
        yield Support(VALUE, legal, share, "cuda_memory_fraction: expected more than 0, at most 1")


def variables(case: Case) -> Iterator[Support]:
    """Variables that stand for options are read as these are; an argument makes them unread."""
    options, version = _options(case), case.release.version if case.release.known else None
    for (name, *_), value in case.deployment.under(*ENV).items():
        option = name.lower()
        word = case.deployment.text(*ENV, name)
        if option not in TABLE.names or options.path(option) != (*ENV, name) or word is None:
            continue
        if TABLE.shape(option, version).type not in READ_STRICTLY or not word.either(""):
            continue
        number = _stated(case, option) if option in SIZES else None
        expected = TABLE.check_value(option, word.get(name), version)
        if expected and number is None and TABLE.has(option, version):
            yield Support(VALUE, False, value, f"{name}: expected {expected}")


def spelling(case: Case) -> Iterator[Support]:
    """The launcher's own names have dashes; with underscores they are none."""
    for path, value in case.deployment.under(*ARGS).items():
        word = value.origin.word
        if path and word.startswith("--") and "_" in word:
            right = word.replace("_", "-")
            yield Support(VALUE, False, value, f"{word}: the launcher spells it {right}", (right,))


def lengths(case: Case) -> Iterator[Support]:
    """A prompt must be shorter than prompt and answer together."""
    prompt = _stated(case, "max_input_tokens", "max_input_length")
    total = _stated(case, "max_total_tokens")
    planned = case.plan.extra.get("max_input_tokens")
    if case.release.version >= CHUNKING and (prompt is None or total is None):
        return
    at = prompt or total
    if at is None or planned is None:
        return
    longest, whole = planned.get(), case.plan.max_request_tokens.get("max_total_tokens")
    yield Support(
        CONFLICT, longest < whole, at,
        f"max_input_tokens {show_count(longest)} is not below max_total_tokens "
        f"{show_count(whole)}",
        (f"max_total_tokens: {longest + 1} or more",),
    )  # fmt: skip


def context(case: Case) -> Iterator[Support]:
    """max_total_tokens against what the model was made for; nothing at start asks."""
    total = case.plan.max_request_tokens
    model = case.model.get("model")
    most = model.architecture.max_positions
    if most is None or not total.known:
        return
    yield Support(
        CONTEXT, total.get() <= most, total,
        f"max_total_tokens {show_count(total.get())} is above what {model.name} supports",
        (f"max_total_tokens: {most}",), f"{show_count(total.get())} > {show_count(most)}",
        doubt="the launcher does not ask",
    )  # fmt: skip


def both_spellings(case: Case) -> Iterator[Support]:
    """From 2.0 on the old and the new name of the longest prompt exclude each other."""
    options = _options(case)
    if case.release.version >= (2, 0, 0) and options.has("max_input_tokens"):
        old = options.count("max_input_length") if options.has("max_input_length") else None
        if old is not None:
            yield Support(
                CONFLICT, False, old, "max_input_length and max_input_tokens are both given",
                ("remove max_input_length",),
            )  # fmt: skip


def prefill(case: Case) -> Iterator[Support]:
    """Without chunking the prefill step must take the longest prompt; a step takes one batch."""
    step = case.plan.max_step_tokens
    planned = case.plan.extra.get("max_input_tokens")
    at = _stated(case, "max_batch_prefill_tokens", "max_input_tokens", "max_input_length")
    if at is None or planned is None or case.release.version >= CHUNKING:
        return
    tokens, longest = step.get("max_batch_prefill_tokens"), planned.get("max_input_tokens")
    if case.release.version >= (2, 4, 0):
        return  # the router asks whether the kernel chunks
    yield Support(
        CONFLICT, tokens >= longest, at,
        f"max_batch_prefill_tokens {show_count(tokens)} is below max_input_tokens "
        f"{show_count(longest)}",
        (f"max_batch_prefill_tokens: {longest + 50}",),
    )  # fmt: skip


def batch_total(case: Case) -> Iterator[Support]:
    """A stated batch budget must hold one request, and before 3.0 one prefill step."""
    budget = _stated(case, "max_batch_total_tokens")
    if budget is None:
        return
    have = budget.get()
    needs = [("max_total_tokens", case.plan.max_request_tokens)]
    if case.release.version < CHUNKING:
        needs.append(("max_batch_prefill_tokens", case.plan.max_step_tokens))
    elif _stated(case, "max_total_tokens") is None:
        return
    for name, value in needs:
        tokens = value.get(name)
        yield Support(
            CONFLICT, tokens <= have, budget,
            f"max_batch_total_tokens {show_count(have)} is below {name} {show_count(tokens)}",
            (f"max_batch_total_tokens: {tokens}",),
        )  # fmt: skip


def shards(case: Case) -> Iterator[Support]:
    """sharded against num_shard, and formats that cannot be sharded."""
    options = _options(case)
    flag = options.flag("sharded") if options.has("sharded") else None
    size = case.plan.tensor
    if flag is not None and flag.either(False) and size.known:
        yield Support(
            CONFLICT, size.get() > 1, flag, f"sharded is true and num_shard is {size.get()}",
            ("remove sharded", "num_shard: 2 or more"),
        )  # fmt: skip
    packed = options.text("quantize") if options.has("quantize") else None
    if packed is not None and packed.either("") == "exl2":
        words = "exl2 checkpoints cannot be sharded"
        yield Support(CONFLICT, size.get("num_shard") == 1, packed, words, ("num_shard: 1",))


def heads(case: Case) -> Iterator[Support]:
    """Query and KV heads are dealt out whole, and none is held twice."""
    model = case.model.get("model").architecture
    tensor = case.plan.tensor
    size = tensor.get("num_shard")
    for amount, what in ((model.heads, "attention heads"), (model.kv_heads, "KV heads")):
        if amount:
            fitting = [str(one) for one in (1, 2, 4, 8, 16) if amount % one == 0]
            yield Support(
                DIVISIBLE, amount % size == 0, tensor,
                f"num_shard {size} does not divide {amount:,} {what}",
                (f"use {', '.join(fitting)} shards",), f"{amount:,} / {size} = {amount / size:g}",
            )  # fmt: skip


def quantization(case: Case) -> Iterator[Support]:
    """Before 2.0 a packed checkpoint is read as an unpacked one unless `quantize` names it."""
    scheme = case.model.get("model").scheme.get("quantization")
    if scheme is None or case.release.version >= (2, 0, 0) or scheme.is_guess:
        return
    if scheme.method in ("gptq", "awq"):
        given = _options(case).has("quantize")
        yield Support(
            "quantization/supported", given, case.model,
            f"a {scheme.method} checkpoint needs quantize before release 2.0",
            (f"quantize: {scheme.method}",),
        )  # fmt: skip


CHECKS: tuple[tuple[str, Check], ...] = (
    (VALUE, sizes), (VALUE, variables), (VALUE, spelling), (CONTEXT, context), (CONFLICT, lengths),
    (CONFLICT, both_spellings), (CONFLICT, prefill), (CONFLICT, batch_total),
    (CONFLICT, shards), (DIVISIBLE, heads),
    ("quantization/supported", quantization),
)  # fmt: skip


def supports(case: Case) -> Iterator[Support]:
    """Everything, check by check: an input that is not known costs only its own check."""
    for rule, check in CHECKS:
        try:
            yield from list(check(case))
        except Unknown as lost:
            yield Support(rule, None, lost.value, lost.why)
