"""What remedies may turn, what each turn costs, and the values worth trying."""

from __future__ import annotations

from typing import Any, Literal

from capcheck.case import Case
from capcheck.engine import Change
from capcheck.values import Value

Cost = Literal["configuration", "lossy", "devices", "replicas"]

COSTS: tuple[Cost, ...] = ("configuration", "lossy", "devices", "replicas")  # the cheapest first
# The mildest first: sequences beyond those in flight cost nothing, more memory is a risk, a shorter
# length refuses requests, smaller steps slow prefill and cap sequences as well.
COST: dict[str, Cost] = {
    "max_sequences": "configuration", "memory_fraction": "configuration",
    "max_request_tokens": "configuration", "max_step_tokens": "configuration",
    "graphs": "configuration", "more_sequences": "configuration",
    "more_step_tokens": "configuration", "smaller_tensor": "configuration", "kv_dtype": "lossy",
    "tensor": "devices", "devices": "devices", "pipeline": "devices", "replicas": "replicas",
}  # fmt: skip
# Knobs that turn a field of another name: upwards what others turn down, and the reverse.
FIELD: dict[str, str] = {
    "more_sequences": "max_sequences", "more_step_tokens": "max_step_tokens",
    "smaller_tensor": "tensor",
}  # fmt: skip
ONE_BY_ONE = frozenset({"tensor", "devices", "pipeline", "smaller_tensor"})  # not monotone

FRACTIONS = (0.9, 0.92, 0.95)
DEVICE_COUNTS = (2, 4, 8, 16)
MOST_RANKS = 64
SHORTEST, PLANNED_SHORTEST, FEWEST_STEP_TOKENS = 1024, 256, 512
MOST_SEQUENCES, MOST_STEP_TOKENS = 1024, 16_384
TIMES_THE_REPLICAS = 128  # at a rate
TIMES_IN_FLIGHT = 16  # requests in flight that are shared by more are few on each
WIDE_KV = ("bf16", "fp16", "fp32")
FIGURES = ((), ("max",), ("p999",), ("p99",), ("p95",), ("p90",), ("p50",), ("mean",))


def round_sizes(below: int, lowest: int) -> list[int]:
    """Sizes that people write, largest first: powers of two and halves between them."""
    sizes = set()
    power = 1
    while power < below:
        sizes |= {power, power + power // 2}
        power *= 2
    return sorted((size for size in sizes if lowest <= size < below), reverse=True)


def _declared(case: Case, name: str) -> float:
    """The largest declared length; 0 when nothing is declared."""
    found = (case.deployment.number("workload", name, *key) for key in FIGURES)
    return max((one.either(0.0) for one in found if one is not None), default=0.0)


def _floor(case: Case, field: str) -> int:
    """The smallest value that leaves the declared traffic untouched.

    Where no engine is named every sequence is reserved at full length: there length and sequences
    are the planner's to choose, whatever is declared.
    """
    planned = case.engine.fallback
    if field == "max_request_tokens":
        if planned:
            return PLANNED_SHORTEST
        lengths = _declared(case, "prompt_tokens") + _declared(case, "output_tokens")
        return int(max(SHORTEST, lengths))
    if field == "max_sequences":
        found = case.deployment.number("workload", "concurrency")
        return 1 if planned or found is None else int(max(1.0, found.either(1.0)))
    return FEWEST_STEP_TOKENS


def turned(case: Case, knob: str, value: Any) -> tuple[Change, ...]:
    """The changes that a knob at a value stands for: a smaller layout gives its devices back."""
    change = Change(FIELD.get(knob, knob), value)
    count = case.deployment.count("hardware", "count")
    if knob != "smaller_tensor" or count is None or not count.known:
        return (change,)
    return (change, Change("devices", max(1, count.get() * value // case.plan.tensor.get())))


def candidates(case: Case, field: str) -> list[Any]:
    """Values to try, the least change first; [] when the field cannot be turned."""
    plan = case.plan
    if field in FIELD or field == "replicas":
        return _of_load(case, field)
    if field in ("max_request_tokens", "max_sequences", "max_step_tokens"):
        value: Value[int] = getattr(plan, field)
        return round_sizes(value.get(), _floor(case, field)) if value.known else []
    if field == "memory_fraction":
        policy = plan.memory.either(None)
        if policy is None or policy.kind != "fraction of total":
            return []
        return [part for part in FRACTIONS if part > policy.amount]
    if field == "kv_dtype":
        return ["fp8_e4m3"] if plan.kv_dtype.either("") in WIDE_KV else []
    if field == "graphs":
        return [False] if plan.graphs.either(False) else []
    return _more_devices(case, field)


def _of_load(case: Case, field: str) -> list[Any]:
    """Values of the knobs that a load is served with."""
    if field == "replicas":
        replicas = case.deployment.count("replicas")
        have = max(1, replicas.either(0)) if replicas is not None else 1
        known = replicas is None or replicas.known
        closed = case.deployment.has("workload", "concurrency")
        times = TIMES_IN_FLIGHT if closed else TIMES_THE_REPLICAS
        return list(range(have + 1, times * have + 1)) if known else []
    value: Value[int] = getattr(case.plan, FIELD[field])
    if not value.known or value.get() < 1:
        return []
    if field == "smaller_tensor":
        return [value.get() // by for by in (2, 4, 8) if value.get() % by == 0]
    most = MOST_SEQUENCES if field == "more_sequences" else MOST_STEP_TOKENS
    return round_sizes(most + 1, value.get() + 1)[::-1]


def _more_devices(case: Case, field: str) -> list[Any]:
    plan = case.plan
    if field == "devices":
        count = case.deployment.count("hardware", "count")
        have = count if count is not None else plan.tensor
        return [many for many in DEVICE_COUNTS if many > have.get()] if have.known else []
    if field not in ("tensor", "pipeline"):
        return []
    size: Value[int] = plan.pipeline if field == "pipeline" else plan.tensor
    if not size.known or size.get() < 1:
        return []
    return [size.get() * by for by in (2, 4, 8) if size.get() * by <= MOST_RANKS]
