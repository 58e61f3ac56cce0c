"""What suits a class of traffic: batch size, speculation and steps, as the load model has them."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Case, Change, Fail, Unknown, Value
from capcheck.accounts import account_of
from capcheck.curves import declared_by, declared_load, load_words, planned
from capcheck.measure import show_count, show_seconds
from capcheck.terms import TermError
from capcheck.workload import concurrency, lengths

LARGEST_BATCH_WITH_SPECULATION = 64  # rule of thumb: beyond it a step is bound by compute
SMALLEST_OF_BATCH_WORK = 64  # rule of thumb: below it weights are read for few tokens
SIZES = (1024, 512, 256, 128, 64)  # of batches that are tried
NEARLY = 0.95  # of what the largest completes: the smaller batch does
WORTH = 1.2  # times the throughput that is worth a larger batch
USUAL_STEP = 8192  # tokens of a step: the most that engines choose on servers by themselves
SMOOTH_STEP = 2048  # tokens of a step that streams are kept smooth with
LONGEST_PAUSE = 0.5  # seconds between two tokens that a reader notices for sure
MIDDLE = ("constant", "p50", "mean", "p90", "p95", "p99", "p999", "max")
RATE = "requests_per_second_replica"


def class_of(case: Case) -> str:
    """The declared class of traffic; "" when there is none."""
    found = case.deployment.text("workload", "class")
    return (found.either("") if found is not None else "") or ""


def _value(case: Case, name: str) -> float | None:
    """An estimate's middle; None where it cannot be made."""
    try:
        return case.value(name, case.terms())
    except (Unknown, TermError):
        return None


def _undrafted(case: Case) -> Case:
    return planned(case, draft=None, draft_tokens=None)


def _load(case: Case) -> str:
    return load_words(declared_load(case), declared_by(case))


def for_batch(case: Case) -> Iterator[Fail]:
    """What costs throughput."""
    plan, named = case.plan, not case.engine.fallback
    if plan.draft is not None:
        yield from _speculation_in_batch(case, plan.draft)
    if named:
        yield from _small_batch(case)
    if plan.prefix_caching.either(True) is False and named:
        yield Fail(plan.prefix_caching, "prefix caching is off for batch work")


def _speculation_in_batch(case: Case, draft: Value[str]) -> Iterator[Fail]:
    """Requests a second at most, with and without; a rule of thumb where nobody knows."""
    message, help = "speculation costs throughput in saturated batch work", (
        "drop the speculative options",
    )  # fmt: skip
    with_it, without = _value(case, RATE), _value(_undrafted(case), RATE)
    if with_it is None or without is None:
        yield Fail(draft, message, help=help)
    elif without > with_it:
        words = f"{with_it:.2f} requests/s at most with it, {without:.2f} without"
        yield Fail(draft, message, words, help)


def _small_batch(case: Case) -> Iterator[Fail]:
    """What a replica completes at its most sequences, and at as many as memory allows."""
    most = case.plan.max_sequences
    if not most.known:
        return
    served = _value(case, RATE)
    message = f"batch work with at most {show_count(most.get())} sequences leaves the device idle"
    if served is None:
        if most.get() < SMALLEST_OF_BATCH_WORK:
            yield Fail(most, message, help=("128 to 256 sequences where memory allows",))
        return
    if most.get() >= SMALLEST_OF_BATCH_WORK and not _at_the_cap(case):
        return
    found = _larger(case, most.get())
    if found is None or found[1] < WORTH * served:
        return
    size, more, limit = found
    edit = case.engine.write(Change("max_sequences", size), case.deployment)
    words = f"{served:.2f} requests/s at most, {more:.2f} with {show_count(size)}"
    help = (edit.words,) if edit is not None else ()
    yield Fail(most, message, f"{words}{f'; {limit}' if limit else ''}", help)


def _at_the_cap(case: Case) -> bool:
    """Whether the declared load asks for as many as may run."""
    asked = _value(case, "saturation")
    return asked is not None and asked >= 1.0


def _larger(case: Case, now: int) -> tuple[int, float, str] | None:
    """The smallest batch that completes nearly as much as any that memory holds: size, rate,
    and the limit where it is the KV cache."""
    found: tuple[int, float, str] | None = None
    peak = 0.0
    for size in (one for one in SIZES if one > now):
        changed = case.what_if(Change("max_sequences", size))
        if changed is None or changed.plan.max_sequences.either(0) != size:
            continue
        rate, room = _value(changed, RATE), _room(changed)
        if rate is None or room is None or room < 0 or rate < NEARLY * peak:
            continue
        peak = max(peak, rate)
        account = account_of(changed, "saturation")
        limit = account.limit_words if account and account.limit == "kv cache" else ""
        found = (size, rate, limit)
    return found


def _room(case: Case) -> float | None:
    """Bytes left beside one request of the full length, at the unfavourable end."""
    try:
        tokens = case.plan.max_request_tokens.get("max_model_len")
        return case.estimate("kv_cache_bytes").low - case.kv().request_bytes(tokens)
    except (Unknown, TermError):
        return None


def for_chat(case: Case) -> Iterator[Fail]:
    """What slows or stalls a stream of tokens."""
    if case.plan.draft is not None:
        yield from _speculation_in_chat(case, case.plan.draft)
    yield from _long_steps(case)


def _speculation_in_chat(case: Case, draft: Value[str]) -> Iterator[Fail]:
    """The time per token with and without; a rule of thumb without an acceptance rate."""
    flight = concurrency(case.deployment)
    batch = flight.either(None) if flight is not None else None
    with_it, without = (_value(one, "tpot_seconds") for one in (case, _undrafted(case)))
    if with_it is None or without is None:
        if (batch or 0.0) > LARGEST_BATCH_WITH_SPECULATION:
            lowers = "speculation no longer lowers the time per token"
            message = f"at {batch:g} requests in flight {lowers}"
            yield Fail(draft, message, help=("measure with and without it",))
        return
    if with_it < without:
        return
    message = f"at {_load(case)} speculation does not lower the time per token"
    words = f"p50 TPOT {show_seconds(with_it)} with it, {show_seconds(without)} without"
    yield Fail(draft, message, words, ("drop the speculative options, or raise the acceptance",))


def _long_steps(case: Case) -> Iterator[Fail]:
    """How long the longest declared prompt holds up everybody's tokens, chunk by chunk."""
    step = case.plan.max_step_tokens
    if not step.known or step.origin.kind != "written" or step.get() <= USUAL_STEP:
        return
    alone = _value(case, "prefill_seconds")
    figures = _figures(case)
    if alone is None or not figures:
        return
    middle = next(figures[key] for key in MIDDLE if key in figures)
    chunk = min(float(step.get()), max(figures.values()))
    pause = alone * chunk / middle
    if pause <= LONGEST_PAUSE or chunk <= SMOOTH_STEP:
        return
    edit = case.engine.write(Change("max_step_tokens", SMOOTH_STEP), case.deployment)
    shorter = show_seconds(alone * SMOOTH_STEP / middle)
    message = f"a long prompt stops every stream for {show_seconds(pause)}"
    words = (
        f"a step of {show_count(chunk)} prompt tokens takes {show_seconds(pause)}, one of "
        f"{show_count(SMOOTH_STEP)} takes {shorter}"
    )
    yield Fail(step, message, words, (edit.words,) if edit is not None else ())


def _figures(case: Case) -> dict[str, float]:
    try:
        return dict(lengths(case.deployment, "prompt_tokens") or {})
    except Unknown:
        return {}
