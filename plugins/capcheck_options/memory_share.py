"""Rules of the share of memory: on a device of one's own, and on one that others use, too."""

from __future__ import annotations

from collections.abc import Iterator
from math import floor

from capcheck import (
    Band,
    Case,
    Fail,
    Fleet,
    FleetResult,
    Ledger,
    Pass,
    Rule,
    Skip,
    Terms,
    Unknown,
    rule,
)
from capcheck.findings import Answer
from capcheck.measure import show_bytes
from capcheck_options.names import CHAT, NO_ENGINE

HIGHEST = 0.97  # one report: 0.98 failed where 0.97 ran
SHARE = "fraction of total"
PAIR = """\
apiVersion: capcheck/v1
kind: Deployment
name: chat-8b
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1, shared_with: [embeddings]}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64, gpu_memory_utilization: 0.6}
---
apiVersion: capcheck/v1
kind: Deployment
name: embeddings
model: {id: Qwen/Qwen3-Embedding-0.6B}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine:
  name: vllm
  version: "0.11.0"
  args: {max_model_len: 8192, max_num_seqs: 64, gpu_memory_utilization: 0.3}
"""


@rule(
    "options/utilization",
    title="The memory share leaves room",
    why="At 0.97 and above nothing is left for graphs, communication and whatever else runs on the "
    "device: engines fail at start or while serving. vLLM does not start at all when its share "
    "is not free.",
    fix="Stay at 0.95 or below, and below what other processes leave.",
    fails=CHAT.replace("max_num_seqs: 64", "max_num_seqs: 64, gpu_memory_utilization: 0.98"),
    passes=CHAT,
    severity="warning",
)
def utilization(case: Case, t: Terms) -> Answer:
    """The share against 0.97, and the budget against what is free at the start."""
    del t
    if case.engine.fallback:
        return Skip(NO_ENGINE)
    policy = case.plan.memory
    share = policy.get("the memory share")
    if share.kind != SHARE:
        return Skip("memory is not given as a share of the total")
    if share.amount > 1:
        return Skip("no share is larger than all: options/value")
    found = _not_free(case)
    if found is not None:
        return found
    if share.amount < HIGHEST:
        return Pass()
    return Fail(
        policy,
        f"a memory share of {share.amount:g} leaves nothing for what is outside the budget",
        help=("0.95 or below",),
    )


def _not_free(case: Case) -> Fail | None:
    """The budget where it is not free at the start; None where it is, or nobody asks."""
    try:
        ledger = case.ledger(case.terms())
        if ledger.taken is None:
            return None
        band = case.spread_of(lambda terms: _free(case, terms), "free at the start").band
        in_use = case.in_use_bytes
    except Unknown:
        return None
    short = band.high < 0
    if not short and not (band.low < 0 and in_use) and band.mid >= 0:
        return None  # a share near 1 is told in its own words
    words = "is not free" if short else "may not be free"
    return Fail(
        case.plan.memory,
        f"the budget of {show_bytes(ledger.budget)} {words} when the engine starts",
        arithmetic=f"{show_bytes(ledger.visible)} - {show_bytes(ledger.taken)} taken - "
        f"{ledger.budget_words} = {show_bytes(band.mid)} left ({show_bytes(band.low)} … "
        f"{show_bytes(band.high)})",
        help=_largest(ledger, band),
        risk=not short,
        severity="error" if short else None,
    )


def _largest(ledger: Ledger, band: Band) -> tuple[str, ...]:
    """The share that is free even at the unfavourable end."""
    share = floor((ledger.budget + band.low) / ledger.visible * 100) / 100
    return (f"a memory share of {share:.2f} or less",) * (share > 0)


def _free(case: Case, t: Terms) -> float:
    """What is free at the start beyond the budget."""
    ledger = case.ledger(t)
    return ledger.visible - (ledger.taken or 0.0) - ledger.budget


@rule(
    "options/shared-device",
    title="Servers on one device share its memory",
    why="Each server takes its share of the whole device, whatever others hold: the last one to "
    "start finds too little free.",
    fix="Lower the shares until their sum and the servers' own overhead fit.",
    fails=PAIR.replace("utilization: 0.6", "utilization: 0.9"),
    passes=PAIR,
    scope="fleet",
    severity="warning",
)
def shared_device(case: Case, t: Terms) -> Answer:
    """The sum of the shares of all servers on the same devices: `over_all` answers."""
    del t
    return Skip(f"{case.deployment.name} is not judged alone")


def over_all(fleet: Fleet) -> Iterator[FleetResult]:
    """An answer for each deployment."""
    named = {case.deployment.name: case for case in fleet.cases}
    for case in fleet.cases:
        yield FleetResult(shared_device, case, _together(case, named))


def _together(case: Case, named: dict[str, Case]) -> Pass | Fail | Skip:
    others = case.deployment.texts("hardware", "shared_with")
    if others is None:
        return Pass("no other server is declared on the device")
    if not others.known:
        return Skip(others.origin.why)
    missing = [name for name in others.get() if name not in named]
    if missing:
        return Skip(f"{missing[0]} is not among the deployments that are checked")
    group = [case, *(named[name] for name in others.get() if named[name] is not case)]
    shares = []
    for one in group:
        policy = one.plan.memory.either(None)
        if policy is None or policy.kind != SHARE:
            return Skip(f"{one.deployment.name} takes no known share of the memory")
        shares.append(policy.amount)
    total = sum(shares)
    if total <= HIGHEST:
        return Pass()
    return _over(case, group, shares, total)


def _over(case: Case, group: list[Case], shares: list[float], total: float) -> Fail:
    """More than all: refused where an engine asks whether its share is free."""
    words = " + ".join(
        f"{share:g} {one.deployment.name}" for share, one in zip(shares, group, strict=True)
    )
    asks = any(_asks(one) for one in group)
    over = "exceed" if total > 1 else "leave nothing of"
    return Fail(
        case.plan.memory,
        f"the memory shares of {len(group)} servers {over} the device",
        arithmetic=f"{words} = {total:g}",
        help=(f"shares that sum to {HIGHEST - 0.02:g} or less",),
        severity="error" if total > 1 and asks else None,
    )


def _asks(case: Case) -> bool:
    try:
        return case.ledger(case.terms()).taken is not None
    except Unknown:
        return False


ALL: tuple[Rule, ...] = (utilization,)
FLEET: tuple[Rule, ...] = (shared_device,)
