"""The rules of quantized deployments."""

from __future__ import annotations

import re

from capcheck import Case, Fail, Pass, Rule, Skip, Terms, rule
from capcheck.findings import Answer

PACKED = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-70b-awq
model: {id: meta-llama/Llama-3.1-70B-Instruct, weights: {precision: awq-int4}}
hardware: {accelerator: nvidia/a100-sxm4-80gb, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, dtype: float16}
evaluation:
  tasks:
    gsm8k: {metric: exact_match, baseline: 0.948, candidate: 0.943, samples: 1319}
"""
RELEASED_PACKED = re.compile(
    r"(?i)(?:^|[-_./])(?:awq|gptq|int[48]|fp8|fp4|nvfp4|mxfp[48]|w\d+a\d+|[48]bit|bnb|gguf|quantized)"
)

# Models that were released packed, and the type that keeps what was released, by model_type.
RELEASED_AS = {"gpt_oss": "mxfp4_moe"}


@rule(
    "quantization/supported",
    title="Method, dtypes, accelerator and release go together",
    why="Kernels exist for some combinations only: an engine refuses a method that the device is "
    "too old for, or a dtype that the method does not take.",
    fix="Use a checkpoint, dtype or accelerator that the release supports.",
    fails=PACKED.replace("awq-int4", "nvfp4").replace("a100-sxm4-80gb", "v100-sxm2-32gb")
    .replace("count: 1", "count: 2").replace("args: {", "args: {tensor_parallel_size: 2, "),
    passes=PACKED,
)  # fmt: skip
def supported(case: Case, t: Terms) -> Answer:
    """What the engine, the platform and the quantization method refuse."""
    del t
    if case.engine.fallback:
        return Skip("no engine is named")
    return case.legality("quantization/supported")


@rule(
    "quantization/evidence",
    title="A quantized checkpoint comes with an evaluation",
    why="A quantized model that fits and is fast can be silently worse: only an evaluation after "
    "compression tells.",
    fix="Evaluate the quantized checkpoint against its baseline and state the results under "
    "`evaluation`.",
    fails=PACKED[: PACKED.index("evaluation:")],
    passes=PACKED,
    of_plans=False,
)
def evidence(case: Case, t: Terms) -> Answer:
    """An `evaluation` part, for weights that were quantized after training."""
    del t
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    if scheme is None:
        return Pass("the weights are not quantized")
    if scheme.seen == "config" and not RELEASED_PACKED.search(model.name.rpartition("/")[2]):
        return Pass("the model was released in this format")
    if RELEASED_AS.get(model.architecture.family) == scheme.weight:
        return Pass("the model was released in this format")
    if case.deployment.has("evaluation"):
        return Pass()
    if case.deployment.format != "capcheck/v1":
        return Skip(
            "only a capcheck/v1 spec carries an evaluation; `from:` builds one on this file"
        )
    at = model.scheme if scheme.seen in ("written", "online") else case.model
    message = f"{model.name} is quantized ({scheme.weight}) and no evaluation is given"
    help = ("state what was measured after quantization under `evaluation`",)
    if model.doubt:
        return Fail(at, f"{message}; {model.doubt}", help=help, risk=True)
    return Fail(at, message, help=help)


ALL: tuple[Rule, ...] = (supported, evidence)
