"""The rules of prefill under the declared load."""

from __future__ import annotations

from capcheck import Case, Rule, Terms, rule
from capcheck.findings import Answer
from capcheck.objectives import objective_margin

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
  ttft: {p50: 1s, p99: 8s}
"""


@rule(
    "prefill/ttft",
    title="The time to first token meets its objective",
    why="Prefill computes two FLOP for each active parameter and prompt token, and waits for the "
    "steps and prompts of others: compute sets the floor, load the rest.",
    fix="Use more compute (devices, FP8), shorter prompts, prefix caching, or fewer requests per "
    "replica.",
    fails=CHAT.replace("{p50: 1s, p99: 8s}", "{p50: 3ms, p99: 8s}"),
    passes=CHAT,
    knobs=("more_sequences", "more_step_tokens", "smaller_tensor", "kv_dtype", "tensor",
           "replicas"),
)  # fmt: skip
def ttft(case: Case, t: Terms) -> Answer:
    """The tightest TTFT objective."""
    return objective_margin(case, t, "ttft")


ALL: tuple[Rule, ...] = (ttft,)
