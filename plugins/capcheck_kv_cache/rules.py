"""The rules of the KV cache at start-up."""

from __future__ import annotations

from collections.abc import Callable

from capcheck import Band, Case, Change, Fail, Ledger, Margin, Pass, Rule, Skip, Terms, Words, rule
from capcheck.findings import Answer
from capcheck.measure import show_bytes, show_count
from capcheck.quantity import Verdict
from capcheck_kv_cache.arithmetic import band_words, gib, ledger_words

FITS = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/rtx-4090, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64}
"""
GENERIC = """
apiVersion: capcheck/v1
kind: Deployment
name: planned-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/rtx-4090, count: 2}
workload: {prompt_tokens: 7168, output_tokens: 1024, concurrency: 16}
"""
NO_ENGINE = "no engine is named: kv-cache/full-batch judges"


def weights_over(case: Case, t: Terms) -> bool:
    """Whether the weights alone exceed the budget: weights/fit says so, once."""
    ledger = case.ledger(t)
    loaded = sum(line.bytes for line in ledger.lines if line.phase == "load" and line.inside_budget)
    return loaded > ledger.budget


def nothing_left(case: Case) -> bool:
    """Whether start-up takes more than the budget for sure: kv-cache/startup-peak says so, once."""
    if case.ledger(case.terms()).left >= 0:
        return False
    return (
        case.spread_of(lambda terms: case.ledger(terms).left, "left for the KV cache").band.high < 0
    )


def largest_length(case: Case, available: float) -> int:
    """The longest request that `available` bytes hold, as the engine estimates it."""
    layout = case.kv()
    low, high = 0, case.plan.max_request_tokens.get("max_model_len")
    while low < high:
        middle = (low + high + 1) // 2
        if layout.start_bytes(middle) <= available:
            low = middle
        else:
            high = middle - 1
    return low


def request_margin(case: Case, t: Terms) -> Margin | Skip:
    """Left for the KV cache against one request of max_model_len.

    Where the engine allocates a stated pool, that has to fit, too: the tighter of the two.
    """
    layout = case.kv()
    if not layout.block_bytes:
        return Skip("the model keeps no KV cache")
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    length = case.plan.max_request_tokens
    need = layout.start_bytes(length.get("max_model_len"))
    ledger = case.ledger(t)
    if ledger.pool is not None and ledger.left - ledger.pool < ledger.pool - need:
        return _pool_margin(case, ledger, ledger.pool)
    return Margin(ledger.kv, need, "B", length, _request_words(case, ledger, need), layout.shortens)


def _request_words(case: Case, ledger: Ledger, need: float) -> Callable[[Verdict, Band], Words]:
    layout, tokens = case.kv(), case.plan.max_request_tokens.get()

    def words(verdict: Verdict, left: Band) -> Words:
        does = "does not fit" if verdict == "fail" else "may not fit"
        message = f"one request of {show_count(tokens)} tokens {does} the KV cache"
        rest = Band(*(side + need for side in left))
        room = ledger_words(ledger) if ledger.pool is None else "the KV cache"
        arithmetic = (
            f"{show_count(tokens)} tokens x {show_bytes(layout.bytes_per_token)} = "
            f"{show_bytes(need)}; {room} = {gib(ledger.kv)} GiB"
            f"{' left' if ledger.pool is None else ''}{band_words(rest)}"
        )
        longest = largest_length(case, min(ledger.kv, ledger.left))
        return Words(
            message, arithmetic, (f"about {show_count(longest)} tokens fit",) * bool(longest)
        )

    return words


def _pool_margin(case: Case, ledger: Ledger, pool: float) -> Margin:
    """What is left against the KV cache that the engine allocates."""
    layout = case.kv()
    tokens = layout.logged_tokens(layout.blocks(pool))

    def words(verdict: Verdict, left: Band) -> Words:
        does = "does not fit" if verdict == "fail" else "may not fit"
        message = f"the KV cache of {show_count(tokens)} tokens {does}"
        rest = Band(*(side + pool for side in left))
        arithmetic = (
            f"{show_count(tokens)} tokens = {gib(pool)} GiB; {ledger_words(ledger)} = "
            f"{gib(ledger.left)} GiB left{band_words(rest)}"
        )
        longest = largest_length(case, ledger.left)
        return Words(
            message, arithmetic, (f"about {show_count(longest)} tokens fit",) * bool(longest)
        )

    return Margin(ledger.left, pool, "B", case.plan.max_request_tokens, words)


@rule(
    "kv-cache/one-request",
    title="One request of the maximal length fits the KV cache",
    why="The engine refuses to start when the memory that is left for the KV cache cannot hold a "
    "single request of max_model_len tokens.",
    fix="Lower max_model_len to what requests need, raise the memory share, lower max_num_seqs "
    "where sampling takes the room, use an FP8 KV cache or more devices.",
    fails=FITS.replace("max_model_len: 8192, max_num_seqs: 64", "max_model_len: 131072"),
    passes=FITS,
    knobs=("max_request_tokens", "max_sequences", "max_step_tokens", "memory_fraction",
           "kv_dtype", "tensor"),
)  # fmt: skip
def one_request(case: Case, t: Terms) -> Answer:
    """Left for the KV cache against one request of max_model_len."""
    if not case.engine.fallback:
        if weights_over(case, case.terms()):
            return Skip("the weights alone do not fit: weights/fit")
        if case.kv().block_bytes and nothing_left(case):
            return Skip("start-up takes all that the weights leave: kv-cache/startup-peak")
    return request_margin(case, t)


@rule(
    "kv-cache/startup-peak",
    title="What start-up takes besides weights leaves room",
    why="Activations, sampling, encoders and graphs are measured at start; when they take all that "
    "the weights leave, or more than the device has outside the budget, the engine stops.",
    fix="Lower max_num_seqs and max_num_batched_tokens, limit images per prompt, or use more "
    "devices.",
    fails=FITS.replace("max_model_len: 8192, max_num_seqs: 64",
                       "max_model_len: 4096, max_num_seqs: 4096, max_num_batched_tokens: 8192"),
    passes=FITS,
    knobs=("max_sequences", "max_step_tokens", "memory_fraction", "graphs", "tensor"),
)  # fmt: skip
def startup_peak(case: Case, t: Terms) -> Answer:
    """The budget against its lines where they exceed it, else the device against budget and
    what is outside of it: less than all of the budget is kv-cache/one-request's to judge."""
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    if weights_over(case, case.terms()):
        return Skip("the weights alone do not fit: weights/fit")
    ledger = case.ledger(t)
    inside = ledger.left
    overflows = case.ledger(case.terms()).left < 0
    if not overflows:
        need, have, room = ledger.budget + ledger.outside, ledger.visible, "device"
    else:
        need, have, room = ledger.budget - inside, ledger.budget, "budget"
    at = case.plan.memory if room == "device" else case.plan.max_step_tokens

    def words(verdict: Verdict, left: Band) -> Words:
        does = "exceeds" if verdict == "fail" else "may exceed"
        if room == "device":
            message = f"what is captured outside the memory budget {does} the device"
            lines = [line for line in ledger.lines if not line.inside_budget]
            parts = "".join(f" - {gib(line.bytes)} {line.name}" for line in lines)
            arithmetic = (
                f"{gib(ledger.visible)} GiB - {gib(ledger.budget)} budget{parts} = "
                f"{gib(have - need)} GiB left{band_words(left)}"
            )
        else:
            message = f"the start-up peak {does} what the weights leave"
            arithmetic = f"{ledger_words(ledger)} = {gib(ledger.left)} GiB left{band_words(left)}"
        return Words(message, arithmetic)

    return Margin(have, need, "B", at, words)


@rule(
    "kv-cache/context-unset",
    title="The context length is chosen, not inherited",
    why="Without max_model_len the engine reserves for the model's full length, often 128K and "
    "more: the commonest reason for a start that fails, and for a KV cache that serves few.",
    fix="Set max_model_len to the longest request that is expected.",
    fails=FITS.replace("max_model_len: 8192, ", ""),
    passes=FITS,
    severity="warning",
)
def context_unset(case: Case, t: Terms) -> Answer:
    """The length is absent, and one request of the full length does not fit for sure."""
    length = case.plan.max_request_tokens
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    if length.origin.kind != "default":
        return Pass("the length is given") if length.known else Skip(length.origin.why)
    if weights_over(case, case.terms()):
        return Skip("the weights alone do not fit: weights/fit")
    margin = request_margin(case, t)
    if isinstance(margin, Skip):
        return margin
    band = case.spread_of(lambda terms: _left(case, terms), "one request left").band
    if band.low >= 0:
        return Pass("the full length fits")
    tokens, name = length.get(), _length_option(case)
    return Fail(
        length,
        f"{name} is not set: the full length of {show_count(tokens)} tokens decides",
        help=(f"set {name} to the longest request that is expected",),
    )


def _length_option(case: Case) -> str:
    """The engine's own name of the length of a request."""
    edit = case.engine.write(Change("max_request_tokens", 8192), case.deployment)
    return edit.path[-1] if edit is not None else "the context length"


def _left(case: Case, t: Terms) -> float:
    margin = request_margin(case, t)
    return margin.left if isinstance(margin, Margin) else 0.0


@rule(
    "kv-cache/full-batch",
    title="Without an engine: weights, the full batch's KV cache and the rest fit",
    why="A planner's estimate: every sequence at full length at once, a quarter of the weights for "
    "activations, and a margin on the sum. Name the engine for its own accounting.",
    fix="Use more devices, an FP8 KV cache, a shorter length or fewer sequences.",
    fails=GENERIC.replace("count: 2", "count: 1"),
    passes=GENERIC,
    knobs=("max_request_tokens", "max_sequences", "kv_dtype", "devices"),
)
def full_batch(case: Case, t: Terms) -> Answer:
    """Visible memory of all devices against the generic estimate."""
    if not case.engine.fallback:
        return Pass("the engine's own accounting judges")
    if weights_over(case, case.terms()):
        return Skip("the weights alone do not fit: weights/fit")
    plan = case.plan
    tokens = plan.max_request_tokens.get("the length of a request")
    sequences = plan.max_sequences.get("the number of sequences")
    ledger = case.ledger(t)
    devices = plan.devices
    need = sum(line.bytes for line in ledger.lines) * devices
    have = ledger.visible * devices

    def words(verdict: Verdict, left: Band) -> Words:
        does = "do not fit" if verdict == "fail" else "may not fit"
        several = "s" if sequences != 1 else ""
        batch = f"{show_count(sequences)} sequence{several} of {show_count(tokens)} tokens"
        message = f"the weights and {batch} {does} {devices} x {case.accelerator.get().name}"
        parts = " + ".join(f"{gib(line.bytes * devices)} {line.name}" for line in ledger.lines)
        arithmetic = (
            f"{parts} = {gib(need)} GiB; {devices} x {gib(ledger.visible)} = {gib(have)} GiB, "
            f"{gib(have - need)} left{band_words(left)}"
        )
        return Words(message, arithmetic)

    return Margin(have, need, "B", plan.max_sequences, words)


ALL: tuple[Rule, ...] = (one_request, startup_peak, context_unset, full_batch)
