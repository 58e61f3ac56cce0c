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
    """Start-up, one request of max_model_len, and the declared load against what is left."""
    left = case.estimate("kv_cache_bytes").low
    layout = case.kv()
    one = layout.request_bytes(case.plan.max_request_tokens.get("max_model_len"))
    rooms = [Room("one request", one / left if left > 0 else 2.0, "")]
    spare = case.spread_of(lambda t: _spare(case, t), "spare beside the budget").band.low
    rooms.append(Room("start-up", 0.0 if spare >= 0 else 2.0, ""))
    if "kv_demand_tokens" in case.workshop.estimates:
        tokens = case.estimate("kv_demand_tokens").high
        need = tokens * layout.bytes_per_token
        rooms.append(Room("declared load", need / left if left > 0 else 2.0, ""))
    if "saturation" in case.workshop.estimates:
        rooms.append(Room("saturation", case.estimate("saturation").high, ""))
    return rooms


def _spare(case: Case, t: Terms) -> float:
    """Device memory beside the budget and what is taken outside of it. Bytes."""
    ledger = case.ledger(t)
    return ledger.visible - ledger.budget - ledger.outside


def rooms(case: Case) -> list[Room]:
    """Every limit of a layout. Raises Unknown."""
    return [*_objective_rooms(case), *_memory_rooms(case)]


class Layout(NamedTuple):
    """Ranks of one replica that fewer may do for."""

    tensor: int
    pipeline: int

    @property
    def words(self) -> str:
        """`tensor parallel 2`, with the stages where there are several."""
        stages = f" x pipeline parallel {self.pipeline}" if self.pipeline > 1 else ""
        return f"tensor parallel {self.tensor}{stages}"

    def halves(self) -> tuple[Layout, ...]:
        """Half the stages, which only add latency, then half the tensor-parallel ranks."""
        found = (
            self._replace(pipeline=self.pipeline // 2), self._replace(tensor=self.tensor // 2)
        )  # fmt: skip
        return tuple(one for one in found if one.tensor >= 1 and one.pipeline >= 1)


def _changes(case: Case, layout: Layout) -> tuple[Change, ...]:
    plan = case.plan
    wanted = (("tensor", layout.tensor, plan.tensor), ("pipeline", layout.pipeline, plan.pipeline))
    return tuple(Change(field, to) for field, to, now in wanted if now.get() != to)


def _laid_out(case: Case, layout: Layout) -> Case | None:
    """The deployment in a smaller layout; None where the engine would not run it so."""
    changed = case.what_if(*_changes(case, layout))
    if changed is None:
        return None
    plan = changed.plan
    if (plan.tensor.get(), plan.pipeline.get()) != layout or plan.devices >= case.plan.devices:
        return None
    for rule_id in ("sharding/divisible", "quantization/supported"):
        if any(one.legal is False for one in changed.supports(rule_id)):
            return None
    return changed


def smallest(case: Case, layout: Layout) -> tuple[Layout, Case] | None:
    """Halves the layout as long as every limit is met at its unfavourable end.

    Raises Unknown when not even the first step can be judged.
    """
    found: tuple[Layout, Case] | None = None
    lost: Unknown | TermError | None = None
    steps = layout.halves()
    while steps:
        accepted = None
        for step in steps:
            try:
                changed = _laid_out(case, step)
                if changed is not None and all(room.share <= 1 for room in rooms(changed)):
                    accepted = (step, changed)
                    break
            except (Unknown, TermError) as error:
                lost = lost or error
        if accepted is None:
            break
        found, steps = accepted, accepted[0].halves()
    if found is None and lost is not None:
        raise lost
    return found


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
    """The smallest layout that meets every limit, and what the devices would do as replicas."""
    if case.engine.fallback:
        return Skip("no engine is named")
    size = case.plan.tensor
    now = Layout(size.get("tensor_parallel_size"), case.plan.pipeline.get("pipeline parallel"))
    if not case.deployment.has("objectives"):
        return Skip("no objectives are declared")
    if now == (1, 1):
        return Pass("one device" if case.plan.devices == 1 else "each rank has one device")
    found = smallest(case, now)
    if found is None:
        return Pass()
    layout, changed = found
    used, fewer = case.plan.devices, changed.plan.devices
    edits = [case.engine.write(one, case.deployment) for one in _changes(case, layout)]
    written = " with ".join(edit.words for edit in edits if edit is not None)
    return Fail(
        size,
        f"{layout.words} meets every declared limit, {used} devices are used",
        f"{layout.words}: {_shown(changed)}; {now.words}: {_shown(case)}{_each(case, changed, t)}",
        _help(case, layout, written, fewer, t),
    )


def _shown(case: Case) -> str:
    return ", ".join(room.shown for room in _objective_rooms(case))


def _capacity(case: Case, t: Terms) -> float:
    """Requests a second that one replica completes at most. Raises Unknown."""
    return case.value("requests_per_second_replica", t)


def _each(case: Case, changed: Case, t: Terms) -> str:
    """What a device serves in both layouts."""
    here = _capacity(case, t) / case.plan.devices
    there = _capacity(changed, changed.terms()) / changed.plan.devices
    return f"; a device serves {there:.2g} requests/s in it, {here:.2g} now"


def _help(case: Case, layout: Layout, written: str, fewer: int, t: Terms) -> tuple[str, ...]:
    """The smaller layout, and on all devices as replicas where they meet every limit and serve
    more with the load shared."""
    alone = (f"{written} on {fewer} device{'s' if fewer > 1 else ''}",)
    have = case.deployment.count("replicas")
    many = max(1, have.get("replicas")) if have is not None else 1
    groups = case.plan.devices // fewer
    many *= groups
    changed = case.what_if(*_changes(case, layout), Change("replicas", many))
    if changed is None or any(room.share > 1 for room in rooms(changed)):
        return alone
    whole, now = _capacity(changed, changed.terms()) * groups, _capacity(case, t)
    if whole <= now:
        return alone
    return (
        f"{written}, and {many} replicas on the same devices that share the load: "
        f"{_shown(changed)}; {whole:.3g} requests/s at most instead of {now:.3g}",
    )


ALL: tuple[Rule, ...] = (over_sharded,)
