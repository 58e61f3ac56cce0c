"""Changes that make a rule pass, each verified by re-resolving and re-checking every case."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import NamedTuple

from capcheck.case import Case
from capcheck.changes import edited
from capcheck.checking import Standing
from capcheck.engine import Change, Edit
from capcheck.findings import Rule
from capcheck.guard import RAISED
from capcheck.judge import RANK, judge, worst_of
from capcheck.knobs import COST, COSTS, ONE_BY_ONE, Cost, candidates, turned
from capcheck.quantity import Verdict
from capcheck.values import Unknown

SHOWN: Mapping[Cost, int] = {"configuration": 2, "lossy": 1, "devices": 1, "replicas": 1}
SKIPPED = Standing("skip", 1)
MOST_STEPS = 12  # beyond the least change that passes, when that makes something worse
MOST_DEVICES = 16  # of one server that a remedy asks for, or twice what it has
MOST_TRIES = 64  # changed cases that one finding may cost

Standings = Mapping[str, Standing]
Changes = tuple[Change, ...]


def _is_out_of_reach(changed: Case, before: Case) -> bool:
    """Whether the changed server takes more devices than anybody would give it instead."""
    had, nodes = (before.deployment.count("hardware", one) for one in ("count", "nodes"))
    has = changed.deployment.count("hardware", "count")
    try:
        if had and has and nodes and nodes.get() > 1 and has.get() > had.get():
            return True  # its nodes are as large as they are: more devices are more nodes
        return changed.plan.devices > max(MOST_DEVICES, 2 * before.plan.devices)
    except Unknown:
        return False


class Remedy(NamedTuple):
    """A verified change in the user's own words."""

    edits: tuple[Edit, ...]
    cost: Cost

    def contains_any(self, others: Sequence[Remedy]) -> bool:
        """Whether one of the others does the same with less."""
        return any(set(one.edits) <= set(self.edits) for one in others)

    @property
    def words(self) -> str:
        """A help line: what to write, and what it then needs."""
        lossy = " (needs an evaluation)" if self.cost == "lossy" else ""
        return f"{' with '.join(edit.words for edit in self.edits)} passes{lossy}"


class _Tried(NamedTuple):
    case: Case
    edits: tuple[Edit, ...]


class Trials:
    """Changed cases of one deployment; each is made once, whatever rules ask for it.

    `before` is how the rules stand on each case as it is, by its id, `check_all` tells it of a
    changed one. Nothing depends on time, so the remedies are the same in every run.
    """

    def __init__(
        self,
        cases: Sequence[Case],
        before: Mapping[int, Standings],
        check_all: Callable[[Case], Standings],
    ) -> None:
        self.cases = tuple(cases)
        self.tries = 0
        self._before = before
        self._check_all = check_all
        self._tried: dict[tuple[int, Changes], _Tried | None] = {}
        self._after: dict[tuple[int, Changes], Standings] = {}

    def remedies(self, rule: Rule) -> tuple[str, ...]:
        """Help lines, the cheapest first: two of configuration, one lossy, one of devices."""
        self.tries = 0
        by_cost: dict[Cost, list[str]] = {cost: [] for cost in COSTS}
        for remedy in _Search(self, rule).all():
            by_cost[remedy.cost].append(remedy.words)
        return tuple(
            words
            for cost in COSTS
            for words in dict.fromkeys(by_cost[cost])
            if words in by_cost[cost][: SHOWN[cost]]
        )

    def tried(self, index: int, changes: Changes) -> _Tried | None:
        """A changed case; None when the change has no words, or too much was tried already."""
        key = (index, changes)
        if key not in self._tried:
            if self.tries >= MOST_TRIES:
                return None
            self.tries += 1
            self._tried[key] = _changed(self.cases[index], changes)
        return self._tried[key]

    def is_worse(self, index: int, changes: Changes, changed: Case, but: str) -> bool:
        """Whether any other check is worse off, or can no longer be made."""
        key = (index, changes)
        if key not in self._after:
            self._after[key] = self._check_all(changed)
        after = self._after[key]
        return any(
            _is_worse(before, after.get(rule, SKIPPED))
            for rule, before in self._before[id(self.cases[index])].items()
            if rule != but
        )


def _is_worse(before: Standing, after: Standing) -> bool:
    if before.verdict == "pass" and after.verdict == "skip":
        return True
    found = RANK[after.verdict]
    if found == RANK[before.verdict] > 0:
        return after.results > before.results
    return found > RANK[before.verdict]


def _changed(case: Case, changes: Changes) -> _Tried | None:
    """The changed case. What a plugin raises on a case that nobody wrote is no remedy."""
    try:
        made = edited(case, changes)
        changed = case.workshop.resolve(made[0], case) if made is not None else None
    except RAISED:
        return None
    return _Tried(changed, made[1]) if changed is not None and made is not None else None


class _Search:
    """The search for remedies of one rule."""

    def __init__(self, trials: Trials, rule: Rule) -> None:
        self.trials = trials
        self.rule = rule

    def all(self) -> Iterator[Remedy]:
        """Single changes, a lossy one with what else it takes; pairs when nothing else passes."""
        knobs = [field for field in COST if field in self.rule.knobs]
        by_cost = {cost: [field for field in knobs if COST[field] == cost] for cost in COSTS}
        found: list[Remedy] = []
        for cost in COSTS:
            alone = [remedy for field in by_cost[cost] if (remedy := self.least(field))]
            if not alone and cost == "lossy":
                pairs = self._pairs(by_cost["lossy"], by_cost["configuration"])
                alone = [one for one in pairs if not one.contains_any(found)][:1]
            found += alone
            yield from alone
        if not found:
            for first, second in combinations([one for one in knobs if one != "replicas"], 2):
                yield from self._pairs([first], [second])

    def _pairs(self, firsts: Sequence[str], seconds: Sequence[str]) -> Iterator[Remedy]:
        """The first field at its end, a device count at its least, and the second behind it."""
        for first in firsts:
            values = candidates(self.trials.cases[0], first)
            for value in values[:1] if COST[first] == "devices" else values[-1:]:
                for second in seconds:
                    fixed = turned(self.trials.cases[0], first, value)
                    remedy = self.least(second, fixed, COST[first])
                    if remedy is not None:
                        yield remedy

    def least(
        self, field: str, fixed: Changes = (), fixed_cost: Cost = "configuration"
    ) -> Remedy | None:
        """The least change of one field that passes and makes nothing worse.

        Configuration is monotone and bisected. More devices than it takes may break what fewer
        would not, so counts are tried one by one.
        """
        case, cost = self.trials.cases[0], max(COST[field], fixed_cost, key=COSTS.index)
        steps = [(*fixed, *turned(case, field, value)) for value in candidates(case, field)]
        if field in ONE_BY_ONE:
            return next((made for step in steps if (made := self._remedy(step, cost))), None)
        if not steps or not self.passes(steps[-1]):
            return None
        low, high = 0, len(steps) - 1
        while low < high:
            middle = (low + high) // 2
            if self.passes(steps[middle]):
                high = middle
            else:
                low = middle + 1
        further = steps[low : low + 1 + MOST_STEPS]
        return next((made for step in further if (made := self._remedy(step, cost))), None)

    def passes(self, changes: Changes) -> bool:
        """Whether the rule itself passes on every alternative."""
        for index in range(len(self.trials.cases)):
            tried = self.trials.tried(index, changes)
            if tried is None or self._verdict(tried.case) != "pass":
                return False
        return True

    def _verdict(self, case: Case) -> Verdict:
        try:
            results = judge(case, case.run(self.rule)[0], "none")
        except RAISED:
            return "fail"
        return worst_of([one.verdict for one in results])

    def _remedy(self, changes: Changes, cost: Cost) -> Remedy | None:
        """The change, once it is verified in full."""
        if not self.passes(changes):
            return None
        for index in range(len(self.trials.cases)):
            tried = self.trials.tried(index, changes)
            if tried is None or self.trials.is_worse(index, changes, tried.case, self.rule.id):
                return None
            if _is_out_of_reach(tried.case, self.trials.cases[index]):
                return None
        first = self.trials.tried(0, changes)
        if first is None:
            return None
        return Remedy(first.edits, cost)
