"""The rules of the weights."""

from __future__ import annotations

from capcheck import GIB, Band, Case, Margin, Pass, Rule, Terms, Words, rule
from capcheck.findings import Answer
from capcheck.quantity import Verdict

BIG = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-70b
model: {id: meta-llama/Llama-3.1-70B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 2}
engine:
  name: vllm
  version: "0.11.0"
  args: {tensor_parallel_size: 2, max_model_len: 8192}
"""


EVALUATED = (
    BIG.replace("args: {", "args: {quantization: fp8, ")
    + """\
evaluation:
  tasks:
    gsm8k: {metric: exact_match, baseline: 0.948, candidate: 0.943, samples: 1319}
"""
)


def gib(value: float) -> str:
    """Bytes as GiB with one decimal."""
    return f"{value / GIB:.1f}"


def _around(band: Band) -> str:
    return "" if band.is_exact else f" ({gib(band.low)} … {gib(band.high)})"


def _parts(case: Case, t: Terms) -> tuple[float, str]:
    ledger = case.ledger(t)
    found = [(line.name, line.bytes) for line in ledger.lines if line.phase == "load"]
    words = " + ".join(f"{gib(size)} {name}" for name, size in found if size)
    return sum(size for _, size in found), words


@rule(
    "weights/fit",
    title="A device holds its share of the weights",
    why="Weights that exceed the memory the engine may use end in an out-of-memory error while "
    "loading: nothing else can make up for it.",
    fix="Use more devices (tensor_parallel_size), a quantized checkpoint, or devices with more "
    "memory.",
    fails=BIG.replace("count: 2", "count: 1").replace("tensor_parallel_size: 2, ", ""),
    passes=BIG,
    knobs=("memory_fraction", "tensor", "pipeline", "devices"),
)
def fit(case: Case, t: Terms) -> Answer:
    """The budget of one device against weights, drafts and adapters."""
    ledger = case.ledger(t)
    need, parts = _parts(case, t)
    model = case.model.get("model")
    policy = case.plan.memory.either(None)
    have = ledger.visible if policy and policy.kind == "bytes" else ledger.budget

    def words(verdict: Verdict, left: Band) -> Words:
        does = "do not fit" if verdict == "fail" else "may not fit"
        part = case.accelerator.get()
        message = f"the weights of {model.name} {does} {part.name}"
        room = total = f"{gib(have)} GiB"
        if ledger.budget_words and ledger.budget_words != total:
            room = f"{ledger.budget_words} = {total}"
        each = f" on each of {case.plan.devices} devices" if case.plan.devices > 1 else ""
        arithmetic = f"{parts}{each}; {room}"
        return Words(message, f"{arithmetic}, {gib(have - need)} left{_around(left)}")

    return Margin(have, need, "B", case.model, words)


@rule(
    "weights/load-peak",
    title="Loading needs no more memory than the device has",
    why="Quantization at load time reads the unquantized checkpoint first: the peak while loading "
    "is higher than what serving needs.",
    fix="Use a checkpoint that is already quantized, or more devices.",
    fails=EVALUATED.replace("h100-sxm5-80gb, count: 2", "gh200-96gb, count: 1").replace(
        "tensor_parallel_size: 2, ", ""
    ),
    passes=EVALUATED,
    knobs=("tensor", "devices"),
)
def load_peak(case: Case, t: Terms) -> Answer:
    """Visible memory against the unquantized weights, where they are packed while loading."""
    peak = case.engine.load_peak(case, t)
    if peak is None:
        return Pass("nothing is quantized while loading")
    visible = case.visible_bytes(t)

    def words(verdict: Verdict, left: Band) -> Words:
        does = "does not fit" if verdict == "fail" else "may not fit"
        message = f"loading before quantization {does} the device"
        arithmetic = (
            f"{gib(peak)} GiB unquantized; {gib(visible)} GiB visible, "
            f"{gib(visible - peak)} left{_around(left)}"
        )
        return Words(message, arithmetic)

    return Margin(visible, peak, "B", case.plan.extra.get("quantization", case.model), words)


ALL: tuple[Rule, ...] = (fit, load_peak)
