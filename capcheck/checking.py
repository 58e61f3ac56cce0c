"""Every selected rule on a case: called plugin by plugin, judged, and held to an answer."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from capcheck.case import Case
from capcheck.case import Result as Raw
from capcheck.combining import Judged
from capcheck.findings import Result, Rule
from capcheck.fleet import Fleet
from capcheck.judge import Fault, Wording, judge, worst_of
from capcheck.plugins import Plugins
from capcheck.quantity import Verdict


class Standing(NamedTuple):
    """How a rule stands: its worst verdict, and how many results have that."""

    verdict: Verdict
    results: int


def by_worst(results: Iterable[Result]) -> dict[str, Standing]:
    """How each rule stands."""
    found: dict[str, list[Verdict]] = {}
    for result in results:
        found.setdefault(result.rule.id, []).append(result.verdict)
    worst = {rule: worst_of(verdicts) for rule, verdicts in found.items()}
    return {rule: Standing(one, found[rule].count(one)) for rule, one in worst.items()}


class Checker:
    """Asks all plugins. What they answer wrongly, or not at all, is their fault."""

    def __init__(
        self, plugins: Plugins, rules: Mapping[str, Rule], selected: Mapping[str, Rule]
    ) -> None:
        self._plugins = plugins
        self._rules = rules
        self._selected = selected

    def results(self, case: Case, wording: Wording = "found") -> list[Result]:
        """Every selected rule's results on one case."""
        answered: set[str] = set()
        found: list[Result] = []
        for plugin, raws in self._plugins.check(case):
            for raw in raws:
                if self._is_sound(plugin, raw, answered):
                    found += self._judged(plugin, case, raw, wording)
        self._demand(answered, "deployment", case.deployment.name)
        return found

    def standings(self, case: Case) -> dict[str, Standing]:
        """How each rule stands on one case that is only tried: faults there are not reported."""
        errors = self._plugins.guard.errors
        before = len(errors)
        found = by_worst(self.results(case, "none"))
        del errors[before:]
        return found

    def fleet(self, cases: Sequence[Case]) -> Iterator[Judged]:
        """The results of rules over all deployments, each with the case it is about."""
        known = {id(case): case for case in cases}
        answered: dict[int, set[str]] = {key: set() for key in known}
        for plugin, found in self._plugins.check_fleet(Fleet(tuple(cases))):
            for one in found:
                case = known.get(id(one.case))
                if case is None:
                    self._fault(plugin, "capcheck_check_fleet: answers for a case of its own")
                    continue
                raw = Raw(one.rule, one.answer, None, case.terms())
                if self._is_sound(plugin, raw, set()):
                    answered[id(case)].add(one.rule.id)
                    for result in self._judged(plugin, case, raw, "found"):
                        yield Judged(case, result)
        for key, case in known.items():
            self._demand(answered[key], "fleet", case.deployment.name)

    def _fault(self, plugin: str, message: str) -> None:
        self._plugins.guard.fault(plugin, message)

    def _is_sound(self, plugin: str, raw: Any, answered: set[str]) -> bool:
        """Whether it is the one answer of a rule that this plugin brought."""
        id = str(getattr(raw.rule, "id", raw.rule))
        rule = self._rules.get(id)
        if rule is None or rule is not raw.rule or rule.plugin != plugin:
            self._fault(plugin, f"answers for {id}, which is no rule of its own")
            return False
        if id in answered:
            self._fault(plugin, f"{id} is answered twice")
            return False
        answered.add(id)
        return id in self._selected

    def _judged(self, plugin: str, case: Case, raw: Raw, wording: Wording) -> list[Result]:
        try:
            return judge(case, raw, wording)
        except Fault as fault:
            self._fault(plugin, str(fault))
            return []

    def _demand(self, answered: set[str], scope: str, name: str) -> None:
        """Every selected rule of a plugin that did not fail has an answer."""
        failed = {error.plugin for error in self._plugins.guard.errors}
        for id, rule in self._selected.items():
            if rule.scope == scope and id not in answered and rule.plugin not in failed:
                self._fault(rule.plugin, f"{id} gave no answer for {name}")
