"""The rules of decoding under the declared load."""

from __future__ import annotations

from capcheck import Band, Case, Margin, Rule, Skip, Terms, Unknown, Value, Words, rule
from capcheck.accounts import account_of
from capcheck.curves import load_words
from capcheck.findings import Answer
from capcheck.measure import show_count
from capcheck.objectives import objective_margin
from capcheck.quantity import Verdict
from capcheck.workload import concurrency, replicas, request_rate

CHAT = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64}
workload:
  prompt_tokens: {p50: 600, p95: 2000, max: 6000}
  output_tokens: {p50: 200, p95: 600, max: 2000}
  concurrency: 16
objectives:
  tpot: {p50: 40ms, p99: 120ms}
"""
RATE = CHAT.replace("concurrency: 16", "request_rate: 4/s")


@rule(
    "decode/tpot",
    title="The time per output token meets its objective",
    why="Decoding reads all weights and every request's KV cache for each token: bandwidth sets "
    "the floor, concurrency and the prompts of others raise it.",
    fix="Use more bandwidth (devices or quantization), fewer requests per replica, or a smaller "
    "model.",
    fails=CHAT.replace("{p50: 40ms, p99: 120ms}", "{p50: 2ms, p99: 120ms}"),
    passes=CHAT,
    knobs=("max_sequences", "more_step_tokens", "smaller_tensor", "kv_dtype", "tensor",
           "replicas"),
)  # fmt: skip
def tpot(case: Case, t: Terms) -> Answer:
    """The tightest TPOT objective."""
    return objective_margin(case, t, "tpot")


@rule(
    "decode/saturated",
    title="A replica serves the offered load",
    why="When requests arrive faster than they are completed, or more are in flight than may run, "
    "they queue: time to first token grows without bound.",
    fix="Add replicas, raise max_num_seqs where memory allows, or use more devices.",
    fails=RATE.replace("4/s", "900/s"),
    passes=RATE,
    knobs=("more_sequences", "more_step_tokens", "kv_dtype", "tensor", "replicas"),
)
def saturated(case: Case, t: Terms) -> Answer:
    """Offered rate against capacity; requests in flight against what may run at once."""
    rate = request_rate(case.deployment)
    flight = concurrency(case.deployment)
    if flight is not None:
        answer = _in_flight(case, flight, t)
        # Both are declared: more in flight than may run is told first, then the rate.
        if rate is None or not isinstance(answer, Margin) or answer.left < 0:
            return answer
    if rate is None:
        return Skip("traffic: neither concurrency nor request_rate is declared")
    return _arriving(case, rate.highest, t)


def _arriving(case: Case, rate: Value[float], t: Terms) -> Margin:
    """The offered rate of one replica against what it completes."""
    many = replicas(case.deployment)
    offered = rate.get("request_rate") / many
    capacity = case.value("requests_per_second_replica", t)

    def words(verdict: Verdict, left: Band) -> Words:
        does = {"fail": "exceeds", "pass": "is within"}.get(verdict, "may exceed")
        served = Band(*(side + offered for side in left))
        factor = f" {offered / served.mid:.1f} times" if offered > served.mid > 0 else ""
        message = f"the offered rate {does} what a replica serves{factor}"
        divided = f"{rate.get():.2f} / {many:.0f} replicas = " if many > 1 else ""
        ends = " … ".join(f"{max(0.0, side):.1f}" for side in (served.low, served.high))
        parts = [
            f"{divided}{offered:.2f} requests/s offered, {served.mid:.1f} served ({ends})",
            _limits(case),
            f"serves up to {load_words(max(0.0, served.mid * many), 'rate')}",
        ]
        return Words(message, "; ".join(filter(None, parts)))

    return Margin(capacity, offered, "1/s", rate, words)


def _limits(case: Case) -> str:
    """What limits the requests that run, and what binds their tokens."""
    found = account_of(case, "saturation")
    if found is None:
        return ""
    binding = f"bound by {found.binding}" if found.binding else ""
    return ", ".join(filter(None, (found.limit_words, binding)))


def _in_flight(case: Case, flight: Value[float], t: Terms) -> Answer:
    """Requests in flight against max_num_seqs, then against what else admits them."""
    if case.engine.fallback:
        return Skip("no engine is named")
    requests = flight.get("concurrency")
    most = case.plan.max_sequences.get("max_num_seqs")
    ranks = case.plan.data.get("data_parallel_size")
    if requests <= most * ranks:
        return _admitted(case, flight, most * ranks, t)

    def words(verdict: Verdict, left: Band) -> Words:
        del verdict
        allowed = show_count(most * ranks)
        message = f"{show_count(requests)} requests in flight, {allowed} may run"
        each = f" on each of {ranks} ranks" if ranks > 1 else ""
        times = f"{requests / (most * ranks):.1f} times what is admitted"
        return Words(
            message, f"max_num_seqs {show_count(most)}{each}; {-left.mid:.0f} wait, {times}"
        )

    return Margin(float(most * ranks), requests, "requests", flight, words)


def _admitted(case: Case, flight: Value[float], allowed: float, t: Terms) -> Answer:
    """Whether the steps' token budget or a serial front end keeps requests waiting.

    Where it is the KV cache, kv-cache/declared-load says so, once. A loop of so many requests
    slows down, it does not break: a warning.
    """
    requests = flight.get("concurrency")
    try:
        found = account_of(case, "saturation")
        asked = case.value("saturation", t) if found is not None else 0.0
    except Unknown:  # lengths are not declared: max_num_seqs alone was compared
        found, asked = None, 0.0
    alone = requests <= case.plan.data.get("data_parallel_size")  # who waits for nobody
    if found is None or alone or found.limit == "max sequences":
        return _room(flight, allowed)
    if found.limit == "kv cache" and asked > 1.0:
        return Skip("the KV cache limits what runs: kv-cache/declared-load", flight)

    def words(verdict: Verdict, left: Band) -> Words:
        del left
        does = "run at once" if verdict == "pass" else "are more than run at once"
        message = f"{show_count(requests)} requests in flight {does}"
        return Words(message, f"{found.limit_words}; {asked:.2f} times what is admitted")

    return Margin(1.0, asked, "1", flight, words, "requests wait their turn")


def _room(flight: Value[float], allowed: float) -> Margin:
    """No more in flight than max_num_seqs admits."""
    requests = flight.get()

    def words(verdict: Verdict, left: Band) -> Words:
        del verdict, left
        message = f"{show_count(requests)} requests in flight, {show_count(allowed)} may run"
        return Words(message)

    return Margin(allowed, requests, "requests", flight, words)


ALL: tuple[Rule, ...] = (tpot, saturated)
