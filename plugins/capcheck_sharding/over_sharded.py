"""Fewer devices that meet every declared limit: what the wider layout costs."""

from __future__ import annotations

from typing import NamedTuple

from capcheck import Case, Change, Fail, Pass, Rule, Skip, Terms, Unknown, rule
from capcheck.findings import Answer
from capcheck.measure import show_seconds
from capcheck.objectives import estimate_of
from capcheck.terms import TermError
from capcheck.workload import objectives

WIDE = """
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {tensor_parallel_size: 1, max_model_len: 8192, max_num_seqs: 64}
workload:
  prompt_tokens: {p50: 600, p95: 2000, max: 6000}
  output_tokens: {p50: 200, p95: 600, max: 2000}
  concurrency: 8
objectives:
  ttft: {p50: 2s, p99: 8s}
  tpot: {p50: 40ms, p99: 120ms}
"""


class Room(NamedTuple):
    """How a layout stands to one limit: what it takes over what there is, at its worst end."""

    limit: str
    share: float
    shown: str


def _objective_rooms(case: Case) -> list[Room]:
    rooms = []
    for latency in ("tpot", "ttft"):
        for one in objectives(case.deployment, latency):
            if one.figure == "p999":
                continue
            target = one.seconds.get(f"the {latency} objective")
            band = case.estimate(estimate_of(latency, one.figure))
            words = f"{one.figure} {latency.upper()} {show_seconds(band.mid)}"
            rooms.append(Room(f"{latency} {one.figure}", band.high / target, words))
    return rooms


def _memory_rooms(case: Case) -> list[Room]:
    """One request of max_model_len, and the declared load, against what is left."""
    left = case.estimate("kv_cache_bytes").low
    layout = case.kv()
    one = layout.request_bytes(case.plan.max_request_tokens.get("max_model_len"))
    rooms = [Room("one request", one / left if left > 0 else 2.0, "")]
    if "kv_demand_tokens" in case.workshop.estimates:
        tokens = case.estimate("kv_demand_tokens").high
        need = tokens * layout.bytes_per_token
        rooms.append(Room("declared load", need / left if left > 0 else 2.0, ""))
    if "saturation" in case.workshop.estimates:
        rooms.append(Room("saturation", case.estimate("saturation").high, ""))
    return rooms


def rooms(case: Case) -> list[Room]:
    """Every limit of a layout. Raises Unknown."""
    return [*_objective_rooms(case), *_memory_rooms(case)]


@rule(
    "sharding/over-sharded",
    title="No smaller layout meets every declared limit",
    why="Each device added to a tensor-parallel group adds communication: beyond what memory and "
    "objectives need, two smaller replicas serve more than one large one.",
    fix="Use the smaller layout, and replicas for the rest.",
    fails=WIDE.replace("count: 1", "count: 8").replace("size: 1", "size: 8"),
    passes=WIDE,
    severity="warning",
)
def over_sharded(case: Case, t: Terms) -> Answer:
    """Halve the tensor-parallel size as long as every limit is met at its unfavourable end."""
    del t
    if case.engine.fallback:
        return Skip("no engine is named")
    size = case.plan.tensor
    tensor = size.get("tensor_parallel_size")
    if not case.deployment.has("objectives"):
        return Skip("no objectives are declared")
    if tensor == 1:
        return Pass("one device")
    smallest: tuple[int, list[Room]] | None = None
    smaller = tensor // 2
    while smaller >= 1:
        changed = case.what_if(Change("tensor", smaller))
        try:
            found = rooms(changed) if changed is not None else []
        except (Unknown, TermError):
            if smallest is None and smaller == tensor // 2:
                raise
            break
        if not found or any(room.share > 1 for room in found):
            break
        smallest = (smaller, found)
        smaller //= 2
    if smallest is None:
        return Pass()
    fewer, found = smallest
    shown = ", ".join(room.shown for room in found if room.shown)
    now = ", ".join(room.shown for room in _objective_rooms(case))
    return Fail(
        size,
        f"tensor parallel {fewer} meets every declared limit, {tensor} devices are used",
        f"tensor parallel {fewer}: {shown}; {tensor}: {now}",
        (f"tensor_parallel_size: {fewer}, and {tensor // fewer} replicas on the same devices",),
    )


ALL: tuple[Rule, ...] = (over_sharded,)
