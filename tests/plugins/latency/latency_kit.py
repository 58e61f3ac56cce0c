"""Deployments whose latencies are taken apart, and their results."""

from __future__ import annotations

from functools import lru_cache

from capcheck import Case
from capcheck.findings import Result
from capcheck.testing import Bench

CHAT = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: MODEL}
hardware: {accelerator: PART, count: COUNT}
engine:
  name: vllm
  version: "0.11.0"
  args: {ARGS}
REPLICASworkload:
  class: CLASS
  prompt_tokens: {p50: 600, p95: 2000, max: 6000}
  output_tokens: {p50: 200, p95: 600, max: 2000}
  LOAD
OBJECTIVES"""


def chat(
    load: str = "concurrency: 16",
    objectives: str = "",
    model: str = "meta-llama/Llama-3.1-8B-Instruct",
    part: str = "nvidia/h100-sxm5-80gb",
    count: str = "1",
    args: str = "max_model_len: 8192, max_num_seqs: 64",
    replicas: int = 0,
    kind: str = "interactive",
) -> str:
    """A chat deployment's spec."""
    filled = {
        "MODEL": model, "PART": part, "COUNT": count, "ARGS": args, "LOAD": load, "CLASS": kind,
        "REPLICAS": f"replicas: {replicas}\n" if replicas else "",
        "OBJECTIVES": f"objectives: {objectives}\n" if objectives else "",
    }  # fmt: skip
    text = CHAT
    for word, value in filled.items():
        text = text.replace(word, value, 1)
    return text


@lru_cache(maxsize=1)
def bench() -> Bench:
    """One set of plugins for all tests."""
    return Bench()


def case_of(text: str) -> Case:
    """The first alternative of a spec."""
    return bench().cases(text)[0]


def results_of(text: str) -> dict[str, Result]:
    """The first result of each rule, with what helps."""
    (outcome,) = bench().outcomes(text)
    assert not bench().session.guard.errors
    return {rule: ones[0].result for rule, ones in outcome.judged.items() if ones}
