"""Changes that make a rule pass, each verified by re-resolving and re-checking the case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from capcheck.case import Case, edit_of
from capcheck.engine import Change
from capcheck.findings import Rule
from capcheck.judge import RANK
from capcheck.quantity import Verdict
from capcheck.values import Unknown, Value

MOST_SHOWN = 3
MOST_TRIES = 48  # cases that one finding may cost

CONFIGURATION, LOSSY, DEVICES = 0, 1, 2
COST = {
    "max_request_tokens": CONFIGURATION, "max_sequences": CONFIGURATION,
    "max_step_tokens": CONFIGURATION, "memory_fraction": CONFIGURATION, "graphs": CONFIGURATION,
    "kv_dtype": LOSSY, "precision": LOSSY, "tensor": DEVICES, "pipeline": DEVICES,
    "devices": DEVICES,
}  # fmt: skip
HIGHEST_FRACTION = 0.95

Verdicts = Mapping[str, Verdict]
CheckAll = Callable[[Case], Verdicts]


class Remedy(NamedTuple):
    """A verified change, in the user's own words."""

    words: str
    cost: int


def round_sizes(below: int, lowest: int) -> list[int]:
    """Sizes that people write, largest first: powers of two and halves between them."""
    sizes = set()
    power = 1
    while power < below:
        sizes |= {power, power + power // 2}
        power *= 2
    return sorted((size for size in sizes if lowest <= size < below), reverse=True)


def _declared(case: Case, *path: str) -> float:
    """The largest declared length; 0 when nothing is declared."""
    deployment = case.deployment
    largest = 0.0
    for key in ((), ("max",), ("p99",), ("p95",), ("p50",), ("mean",)):
        found = deployment.number(*path, *key)
        largest = max(largest, (found.either(0.0) if found is not None else 0.0) or 0.0)
    return largest


def _floor(case: Case, field: str) -> int:
    """The smallest value that leaves the declared traffic untouched."""
    if field == "max_request_tokens":
        lengths = _declared(case, "workload", "prompt_tokens")
        lengths += _declared(case, "workload", "output_tokens")
        return int(max(1024, lengths))
    if field == "max_sequences" and not case.engine.fallback:
        found = case.deployment.number("workload", "concurrency")
        return int(max(1, (found.either(1.0) if found is not None else 1.0) or 1.0))
    return 1 if field == "max_sequences" else 512


def _candidates(case: Case, field: str) -> list[Any]:
    """Values to try, least change first; [] when the field cannot be turned."""
    plan = case.plan
    if field in ("max_request_tokens", "max_sequences", "max_step_tokens"):
        value: Value[int] = getattr(plan, field)
        if not value.known:
            return []
        return list(round_sizes(value.get(), _floor(case, field)))
    if field == "memory_fraction":
        policy = plan.memory.either(None)
        if policy is None or policy.kind != "fraction of total":
            return []
        return [part for part in (0.9, 0.92, HIGHEST_FRACTION) if part > policy.amount]
    if field == "kv_dtype":
        word = plan.kv_dtype.either("")
        return ["fp8_e4m3"] if word in ("bf16", "fp16", "fp32") else []
    if field == "graphs":
        return [False] if plan.graphs.either(False) else []
    return _more_devices(case, field)


def _more_devices(case: Case, field: str) -> list[Any]:
    plan = case.plan
    value: Value[int] = plan.pipeline if field == "pipeline" else plan.tensor
    if not value.known:
        return []
    if field == "devices":
        return [count for count in (2, 4, 8, 16) if count > value.get()]
    return [value.get() * factor for factor in (2, 4, 8) if value.get() * factor <= 64]


class Search:
    """The search for remedies of one rule on one deployment's cases."""

    def __init__(self, rule: Rule, cases: Sequence[Case], check_all: CheckAll) -> None:
        self.rule = rule
        self.cases = cases
        self.check_all = check_all
        self.before = [check_all(case) for case in cases]
        self.tries = 0

    def _worse(self, before: Verdicts, after: Verdicts) -> bool:
        return any(
            RANK[after.get(rule, "skip")] > RANK[verdict]
            or (verdict == "pass" and after.get(rule) == "skip")
            for rule, verdict in before.items()
            if rule != self.rule.id
        )

    def passes(self, changes: Sequence[Change]) -> bool:
        """Whether the rule passes on every alternative and no other check gets worse."""
        for case, before in zip(self.cases, self.before, strict=True):
            if self.tries >= MOST_TRIES:
                return False
            self.tries += 1
            try:
                changed = case.what_if(*changes)
            except Unknown:
                return False
            if changed is None:
                return False
            after = self.check_all(changed)
            if after.get(self.rule.id) != "pass" or self._worse(before, after):
                return False
        return True

    def single(self, field: str, fixed: Sequence[Change] = ()) -> Change | None:
        """The least change of one field that passes; bisected, since fields are monotone."""
        values = _candidates(self.cases[0], field)
        if not values or not self.passes([*fixed, Change(field, values[-1])]):
            # More devices than it takes may break what fewer would not: try each.
            if COST[field] == DEVICES:
                return next(
                    (
                        Change(field, value)
                        for value in values[:-1]
                        if self.passes([*fixed, Change(field, value)])
                    ),
                    None,
                )
            return None
        low, high = 0, len(values) - 1
        while low < high:
            middle = (low + high) // 2
            if self.passes([*fixed, Change(field, values[middle])]):
                high = middle
            else:
                low = middle + 1
        return Change(field, values[low])

    def words(self, changes: Sequence[Change]) -> str:
        case = self.cases[0]
        edits = [edit_of(case.engine, change, case.deployment) for change in changes]
        return " with ".join(edit.words for edit in edits if edit is not None)

    def all(self) -> Iterator[Remedy]:
        """Single changes, cheapest first; pairs only when no single one passes."""
        knobs = sorted(self.rule.knobs, key=lambda field: COST.get(field, DEVICES))
        found = False
        for field in knobs:
            change = self.single(field)
            if change is not None:
                found = True
                yield Remedy(self.words([change]), COST[field])
        if found:
            return
        for first, second in combinations(knobs, 2):
            fixed = _candidates(self.cases[0], first)
            # The milder knob is set to its end, the other bisected behind it.
            for value in fixed[-1:] if COST[first] != DEVICES else fixed[:1]:
                change = self.single(second, [Change(first, value)])
                if change is not None:
                    changes = [Change(first, value), change]
                    yield Remedy(self.words(changes), max(COST[first], COST[second]))


def remedies(rule: Rule, cases: Sequence[Case], check_all: CheckAll) -> tuple[str, ...]:
    """At most three verified changes as help lines, cheapest first; bounded by count."""
    if not rule.knobs or not cases:
        return ()
    search = Search(rule, cases, check_all)
    found = sorted(search.all(), key=lambda remedy: remedy.cost)[:MOST_SHOWN]
    return tuple(f"{remedy.words} passes" for remedy in found if remedy.words)
