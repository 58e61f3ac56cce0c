"""The declared load against the KV cache: a quantile of the sum of live tokens."""

from __future__ import annotations

import math

from capcheck import Band, Case, Estimate, Margin, Rule, Skip, Terms, Unknown, Words, estimate, rule
from capcheck.findings import Answer
from capcheck.measure import show_count
from capcheck.physics.lengths import Lengths, LengthsError, constant, fit
from capcheck.physics.live import Live, live, room_factor, sum_quantile
from capcheck.quantity import Verdict
from capcheck.values import Value, unknown
from capcheck.workload import concurrency, lengths, request_rate
from capcheck_kv_cache.arithmetic import gib, ledger_words
from capcheck_kv_cache.rules import FITS, NO_ENGINE, weights_over

QUANTILE = 0.99  # of the sum over requests in flight, at one moment
SIGMA = "kv_cache.length_sigma"  # spread of ln(length) where one figure is declared
LOADED = (
    FITS
    + """workload:
  prompt_tokens: {p50: 800, p95: 3000, max: 6000}
  output_tokens: {p50: 250, p95: 700, max: 2000}
  concurrency: 16
"""
)


def _declared(case: Case, name: str, t: Terms) -> Lengths:
    place = case.deployment.place_for("workload", name)
    figures = lengths(case.deployment, name)
    if figures is None:
        raise Unknown(unknown(place, f"no {name} are declared"), "traffic")
    if "constant" in figures:
        return constant(figures["constant"])
    try:
        return fit(figures, t.read(SIGMA))
    except LengthsError as wrong:
        raise Unknown(unknown(place, f"{name}: {wrong}"), "traffic") from wrong


def _requests(case: Case, t: Terms) -> tuple[float, Value[float]]:
    """Requests in flight on one data-parallel rank, and where that is said."""
    ranks = max(1, case.plan.data.get("data_parallel_size"))
    most = case.plan.max_sequences.get("max_num_seqs")
    flight = concurrency(case.deployment)
    if flight is not None:
        return min(flight.get("concurrency") / ranks, most), flight
    rate = request_rate(case.deployment)
    if rate is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "neither concurrency nor request_rate is declared"), "traffic")
    if "decode_batch" not in case.workshop.estimates:
        raise Unknown(rate.mean.because("requests in flight need the load model"), "traffic")
    return min(case.value("decode_batch", t), most), rate.highest


def _live(case: Case, t: Terms) -> tuple[Live, Lengths, Lengths]:
    prompt, output = _declared(case, "prompt_tokens", t), _declared(case, "output_tokens", t)
    half_page = case.kv().block_tokens / 2
    return live(prompt, output, extra=half_page), prompt, output


@estimate("kv_demand_tokens", unit="tokens", basis="99 % of moments, per rank")
def demand(case: Case, t: Terms) -> float:
    """Live tokens that the declared load stays below at 99 % of moments."""
    one, _, _ = _live(case, t)
    return sum_quantile(one, _requests(case, t)[0], QUANTILE)


def _capacity(case: Case, t: Terms) -> float:
    """Tokens of long contexts that the pool holds on one rank."""
    layout = case.kv()
    return max(0.0, case.ledger(t).kv) / layout.bytes_per_token


def _need(case: Case, tokens: float, requests: float) -> float:
    """Bytes for that many live tokens; windows and states take what a request of them takes."""
    layout = case.kv()
    if not requests:
        return 0.0
    each = tokens / requests
    return requests * layout.request_blocks(max(1, math.ceil(each))) * layout.block_bytes


@rule(
    "kv-cache/declared-load",
    title="The declared traffic fits the KV cache",
    why="When the live tokens of the requests in flight exceed the KV cache, requests are "
    "preempted and computed again, or wait: latency breaks first, throughput next.",
    fix="Use an FP8 KV cache, more memory or devices, fewer requests per replica, or shorter "
    "contexts.",
    fails=LOADED.replace("concurrency: 16", "concurrency: 64").replace("p50: 800", "p50: 2800"),
    passes=LOADED,
    knobs=("memory_fraction", "kv_dtype", "tensor"),
)
def declared_load(case: Case, t: Terms) -> Answer:
    """A quantile of the sum of live tokens against the pool."""
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    if not case.kv().block_bytes:
        return Skip("the model keeps no KV cache")
    requests, at = _requests(case, t)
    if weights_over(case, case.terms()):
        return Skip("the weights alone do not fit: weights/fit")
    tokens = case.value("kv_demand_tokens", t)
    ledger = case.ledger(t)
    need = _need(case, tokens, requests)

    def words(verdict: Verdict, left: Band) -> Words:
        does = "exceeds" if verdict == "fail" else "may exceed"
        one, prompt, output = _live(case, t)
        message = f"the declared load {does} the KV cache"
        arithmetic = (
            f"{requests:.0f} requests x {one.mean:,.0f} live tokens, at 99 % of moments below "
            f"{show_count(tokens)} = {gib(need)} GiB; {ledger_words(ledger)} = "
            f"{gib(ledger.kv)} GiB left, {_distance(case, t, prompt, output, requests)}"
        )
        del left
        return Words(message, arithmetic)

    mean_fits = requests * _live(case, t)[0].mean <= _capacity(case, t)
    doubt = "only peaks exceed it: requests are preempted then" if mean_fits else ""
    return Margin(ledger.kv, need, "B", at, words, doubt)


def _distance(case: Case, t: Terms, prompt: Lengths, output: Lengths, requests: float) -> str:
    """How far the lengths are from where they meet the pool."""
    capacity = _capacity(case, t)
    if capacity <= 0:
        return "nothing is left"
    factor = room_factor(
        prompt, output, requests, QUANTILE, capacity, extra=case.kv().block_tokens / 2
    )
    if factor == math.inf:
        return "the declared maxima never exceed it"
    return f"breaks at {factor - 1:+.0%} mean length"


LOAD_ESTIMATES: tuple[Estimate, ...] = (demand,)
LOAD_RULES: tuple[Rule, ...] = (declared_load,)
