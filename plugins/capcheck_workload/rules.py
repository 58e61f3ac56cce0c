"""The rules of declared workloads."""

from __future__ import annotations

from capcheck import Band, Case, Fail, Margin, Pass, Rule, Skip, Terms, Words, rule
from capcheck.findings import Answer
from capcheck.measure import show_count
from capcheck.quantity import Verdict
from capcheck.workload import lengths
from capcheck_workload.fitting import class_of, for_batch, for_chat

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/l40s, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64}
workload:
  class: interactive
  prompt_tokens: {p50: 600, p95: 2000, max: 6000}
  output_tokens: {p50: 200, p95: 600, max: 2000}
  concurrency: 16
objectives:
  ttft: {p50: 2s, p99: 8s}
  tpot: {p50: 60ms, p99: 120ms}
"""
TAILS = ("p90", "p95", "p99", "p999")


@rule(
    "workload/tail-objective",
    title="Objectives name the tail, not only the mean",
    why="Users meet the tail: a mean that is kept says nothing of the slowest request in twenty or "
    "a hundred.",
    fix="Add a p95 or p99 to the objective.",
    fails=SPEC.replace("{p50: 2s, p99: 8s}", "{mean: 2s}"),
    passes=SPEC,
    severity="warning",
)
def tail_objective(case: Case, t: Terms) -> Answer:
    """Each objective has a percentile of the tail."""
    del t
    fails = []
    objectives = case.deployment.under("objectives")
    if not objectives:
        return Skip("no objectives are declared")
    if class_of(case) == "batch":
        return Skip("batch work is judged by its mean")
    for name in dict.fromkeys(path[0] for path in objectives if len(path) > 1):
        keys = {path[1] for path in objectives if path[0] == name and len(path) > 1}
        if not keys & set(TAILS):
            at = case.deployment.place_for("objectives", name)
            stated = " and ".join(sorted(keys))
            fails.append(
                Fail(
                    at,
                    f"the {name} objective is stated as {stated} only",
                    help=(f"add {name}: p99",),
                )
            )
    return tuple(fails) if fails else Pass()


@rule(
    "workload/class-fit",
    title="Batching, speculation and prefix caching suit the class of traffic",
    why="Speculation lowers the time per token at small batches and costs throughput when the "
    "device is saturated; batch work wants large batches and prefix caching; a chat's stream "
    "pauses while a step computes a long chunk of somebody's prompt.",
    fix="Drop speculation and raise the batch for batch work; keep batches and steps moderate for "
    "chat.",
    fails=SPEC.replace("interactive", "batch").replace(
        "max_num_seqs: 64",
        "max_num_seqs: 64, speculative_config: {method: ngram, num_speculative_tokens: 4}",
    ),
    passes=SPEC,
    severity="warning",
)
def class_fit(case: Case, t: Terms) -> Answer:
    """Speculation, batch size and prefix caching against the declared class."""
    del t
    kind = class_of(case)
    if not kind:
        return Skip("no class of traffic is declared")
    check = {"batch": for_batch, "interactive": for_chat}.get(kind)
    return (tuple(check(case)) if check is not None else ()) or Pass()


@rule(
    "workload/request-length",
    title="The declared requests are no longer than the context length",
    why="Engines refuse a prompt that is longer than the context length, and cut short or refuse "
    "what prompt and output exceed together.",
    fix="Raise the context length where memory allows, or declare what clients really send.",
    fails=SPEC.replace("max: 6000", "max: 12000"),
    passes=SPEC,
)
def request_length(case: Case, t: Terms) -> Answer:
    """The longest declared prompt, and with the longest output, against the length."""
    del t
    if case.engine.fallback:
        return Skip("no engine is named: the length is that of the declared requests")
    prompt, output = (_longest(case, name) for name in ("prompt_tokens", "output_tokens"))
    if prompt is None:
        return Skip("no prompt_tokens are declared")
    limit = case.plan.max_request_tokens
    most = limit.get("the context length")
    need = prompt + (output or 0.0)

    def words(verdict: Verdict, left: Band) -> Words:
        del verdict, left
        help = (f"a context length of {show_count(need)} takes them all",)
        if prompt > most:
            message = f"prompts of {show_count(prompt)} tokens are refused"
            return Words(message, f"{show_count(prompt)} > {show_count(most)}", help)
        message = f"requests of up to {show_count(need)} tokens exceed the context length"
        parts = f"{show_count(prompt)} + {show_count(output or 0.0)}"
        return Words(message, f"{parts} = {show_count(need)} > {show_count(most)}", help)

    doubt = "" if prompt > most else "only the longest prompts with the longest outputs"
    return Margin(most, need, "tokens", limit, words, doubt)


def _longest(case: Case, name: str) -> float | None:
    figures = lengths(case.deployment, name)
    return max(figures.values()) if figures else None


ALL: tuple[Rule, ...] = (tail_objective, class_fit, request_length)
