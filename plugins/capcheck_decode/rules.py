"""The rules of decoding under the declared load."""

from __future__ import annotations

import math

from capcheck import Band, Case, Margin, Rule, Skip, Terms, Words, rule
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
    knobs=("tensor", "kv_dtype"),
)
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
    knobs=("tensor",),
)
def saturated(case: Case, t: Terms) -> Answer:
    """Offered rate against capacity; requests in flight against max_num_seqs."""
    rate = request_rate(case.deployment)
    flight = concurrency(case.deployment)
    if flight is not None:
        answer = _in_flight(case, flight.get("concurrency"))
        # Both are declared: more in flight than may run is told first, then the rate.
        if rate is None or not isinstance(answer, Margin) or answer.left < 0:
            return answer
    if rate is None:
        return Skip("traffic: neither concurrency nor request_rate is declared")
    offered = rate.highest.get("request_rate") / replicas(case.deployment)
    capacity = case.value("requests_per_second_replica", t)

    def words(verdict: Verdict, left: Band) -> Words:
        does = "exceeds" if verdict == "fail" else "may exceed"
        message = f"the offered rate {does} what a replica serves"
        most = " … ".join(f"{side + offered:.1f}" for side in (left.low, left.high))
        arithmetic = f"{offered:.2f} requests/s offered, {capacity:.1f} served ({most})"
        least = left.low + offered  # what a replica serves at the band's unfavourable end
        if least <= 0:
            return Words(message, arithmetic)
        needed = math.ceil(offered * replicas(case.deployment) / least)
        return Words(message, arithmetic, (f"replicas: {needed} serve it",))

    return Margin(capacity, offered, "1/s", rate.highest, words)


def _in_flight(case: Case, requests: float) -> Answer:
    most = case.plan.max_sequences
    if case.engine.fallback:
        return Skip("no engine is named")
    ranks = case.plan.data.get("data_parallel_size")
    allowed = most.get("max_num_seqs") * ranks

    def words(verdict: Verdict, left: Band) -> Words:
        del verdict
        message = f"{show_count(requests)} requests in flight, {show_count(allowed)} may run"
        arithmetic = f"max_num_seqs {show_count(most.get())} x {ranks} ranks; {-left.mid:.0f} wait"
        return Words(message, arithmetic, (f"max_num_seqs: {-(-requests // ranks):.0f}",))

    at = concurrency(case.deployment) or most
    return Margin(float(allowed), requests, "requests", at, words)


ALL: tuple[Rule, ...] = (tpot, saturated)
