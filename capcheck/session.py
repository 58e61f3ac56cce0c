"""One run on one screen: read all, merge, resolve, check, judge, decide, report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from capcheck import __version__
from capcheck.case import Case, Estimate, Workshop
from capcheck.catalogue import Catalogue, Shelf
from capcheck.config import Settings
from capcheck.decide import checked, decide
from capcheck.deployment import Deployment, Draft
from capcheck.findings import Finding, Result, Rule
from capcheck.fleet import Fleet
from capcheck.intake import Intake
from capcheck.judge import Fault, Judged, combine, judge
from capcheck.notices import NOTICES
from capcheck.packings import Packings
from capcheck.plugins import PluginError, Plugins
from capcheck.quantity import Verdict
from capcheck.remedies import remedies
from capcheck.report import Checked, DeploymentReport, Report, Summary
from capcheck.resolve import Problem, Resolved, Resolver
from capcheck.schema import BadExtension, Extension, Validator, check_extension
from capcheck.shared import CORE_ESTIMATES
from capcheck.terms import TermBook
from capcheck.values import Place


class Outcome(NamedTuple):
    """One deployment after its checks: verdict by rule, and the results behind them."""

    resolved: Resolved
    judged: dict[str, list[Judged]]


class Session:
    """Plugins and settings, ready to check paths."""

    def __init__(self, plugins: Plugins, settings: Settings, root: Path) -> None:
        self.plugins = plugins
        self.root = root
        self.rules = plugins.rules()
        self.known = {**{id: rule.id for id, rule in self.rules.items()}, **{id: id for id in NOTICES}}
        self.settings = settings = checked(settings, self.known)
        self.selected = {
            id: rule for id, rule in self.rules.items() if id == rule.id and settings.selects(id)
        }
        engines = plugins.engines()
        self.intake = Intake(
            root, plugins.formats(), engines, settings.assume, settings.exclude
        )
        shelves = (*plugins.shelves(), *(Shelf(*one) for one in settings.shelves))
        self.catalogue = Catalogue(shelves)
        self.packings = Packings(plugins.packings())
        self.validator = Validator(self._extensions())
        self.resolver = Resolver(
            engines, self.catalogue, plugins.models(), self.packings, self._workshop,
            self.intake.model_config,
        )  # fmt: skip
        self.outcomes: list[Outcome] = []

    def _workshop(self, resolver: Resolver) -> Workshop:
        estimates: dict[str, Estimate] = {one.name: one for one in CORE_ESTIMATES}
        for name, one in self.plugins.estimates().items():
            if name in estimates:
                self.plugins.errors.append(PluginError(name, f"estimate {name!r} is the core's"))
            else:
                estimates[name] = one
        return Workshop(
            TermBook(self.plugins.term_files()), estimates, self.plugins.platforms(),
            self.packings, resolver.find_model, resolver.stored_scheme, resolver.again, {"settings": self.settings},
        )  # fmt: skip

    def _extensions(self) -> list[Extension]:
        """Every plugin's own part of the schema; a bad one is its plugin's fault."""
        good = []
        for key, extension in self.plugins.extensions().items():
            try:
                if key.startswith("x-"):
                    check_extension(extension)
                Validator([extension])
                good.append(extension)
            except BadExtension as wrong:
                self.plugins.errors.append(PluginError(key, str(wrong)))
        return good

    # one deployment

    def resolve(self, draft: Draft) -> Resolved:
        """A draft validated and resolved into its cases."""
        problems = [Problem(*one) for one in draft.problems]
        problems += [Problem(*one) for one in self.validator.problems(draft)]
        resolved = self.resolver.resolve(Deployment(draft))
        return resolved._replace(problems=(*problems, *resolved.problems))

    def results(self, case: Case) -> Iterator[Result]:
        """Every selected rule's results on one case; faults are collected."""
        answered: set[str] = set()
        for plugin, raws in self.plugins.check(case):
            for raw in raws:
                if raw.rule.id not in self.selected:
                    answered.add(raw.rule.id)
                    continue
                try:
                    yield from judge(case, raw)
                    answered.add(raw.rule.id)
                except Fault as fault:
                    answered.add(raw.rule.id)
                    self.plugins.errors.append(PluginError(plugin, str(fault)))
        crashed = {error.plugin for error in self.plugins.errors}
        for id, rule in self.selected.items():
            if id not in answered and rule.plugin not in crashed:
                message = f"{id} gave no answer for {case.deployment.name}"
                self.plugins.errors.append(PluginError(rule.plugin, message))

    def verdicts(self, case: Case) -> dict[str, Verdict]:
        """Verdict by rule on one case: what remedies are held against."""
        errors = len(self.plugins.errors)
        found: dict[str, Verdict] = {}
        for result in self.results(case):
            have = found.get(result.rule.id)
            if have in (None, "pass", "skip") or result.verdict == "fail":
                found[result.rule.id] = result.verdict
        del self.plugins.errors[errors:]
        return found

    def check(self, resolved: Resolved) -> Outcome:
        """All alternatives checked, and one verdict for each rule."""
        by_rule: dict[str, list[Judged]] = {}
        for case in resolved.cases:
            for result in self.results(case):
                by_rule.setdefault(result.rule.id, []).append(Judged(case, result))
        judged = {id: combine(self.rules[id], ones) for id, ones in sorted(by_rule.items())}
        for id, ones in judged.items():
            first = ones[0].result
            if first.verdict in ("fail", "at risk") and self.rules[id].knobs:
                found = remedies(self.rules[id], resolved.cases, self.verdicts)
                words = first.words._replace(help=(*found, *first.words.help))
                judged[id] = [ones[0]._replace(result=first._replace(words=words)), *ones[1:]]
        return Outcome(resolved, judged)

    # a whole run

    def run(self, paths: Iterable[Path], stdin: tuple[str, str] | None = None) -> Report:
        """Read all, merge, resolve, check, judge, decide, report."""
        drafts = self.intake.read(paths, stdin)
        self.outcomes = [self.check(self.resolve(draft)) for draft in drafts]
        self._check_fleet()
        findings = [self._of_problem(one) for one in self.intake.problems]
        for outcome in self.outcomes:
            findings += self._findings(outcome)
        findings += [self._of_plugin(one) for one in dict.fromkeys(self.plugins.errors)]
        skipped = {
            id
            for outcome in self.outcomes
            for id, ones in outcome.judged.items()
            if any(one.result.verdict == "skip" for one in ones)
        }
        decided = decide(
            findings, self.intake.texts, self.settings, self.known, skipped=skipped
        )
        deployments = tuple(self._report(outcome) for outcome in self.outcomes)
        summary = self._summary(deployments, decided.findings, decided.suppressed)
        return Report(
            __version__, self.root, summary, deployments, decided.findings, decided.suppressed,
            tuple(sorted(self.intake.taken.items())),
        )  # fmt: skip

    def _check_fleet(self) -> None:
        cases = {id(one.resolved.cases[0]): one for one in self.outcomes if one.resolved.cases}
        fleet = Fleet(tuple(one.resolved.cases[0] for one in cases.values()))
        for plugin, found in self.plugins.check_fleet(fleet):
            from capcheck.case import Result as Raw

            for one in found:
                outcome = cases.get(id(one.case))
                if outcome is None or one.rule.id not in self.selected:
                    continue
                try:
                    results = judge(one.case, Raw(one.rule, one.answer, None, one.case.terms()))
                except Fault as fault:
                    self.plugins.errors.append(PluginError(plugin, str(fault)))
                    continue
                outcome.judged[one.rule.id] = [Judged(one.case, result) for result in results]

    # findings

    def _of_problem(self, problem: Problem, deployment: str = "") -> Finding:
        severity = NOTICES[problem.rule].severity
        help = (problem.help,) if problem.help else ()
        verdict: Verdict = "fail" if severity == "error" else "at risk"
        return Finding(
            problem.rule, verdict, severity, problem.message, problem.place, deployment, help=help
        )

    def _of_plugin(self, error: PluginError) -> Finding:
        message = f"plugin {error.plugin}: {error.message}"
        return Finding("capcheck/plugin-error", "fail", "error", message, Place("", 0, 0, 0, 0))

    def _findings(self, outcome: Outcome) -> list[Finding]:
        deployment = outcome.resolved.deployment
        found = [self._of_problem(one, deployment.name) for one in outcome.resolved.problems]
        for ones in outcome.judged.values():
            found += [
                finding_of(one, deployment) for one in ones
                if one.result.verdict in ("fail", "at risk")
            ]  # fmt: skip
        return found

    # the report

    def _report(self, outcome: Outcome) -> DeploymentReport:
        from capcheck.summing import deployment_report

        checks = []
        for id, ones in outcome.judged.items():
            worst = max(ones, key=lambda one: ("skip", "pass", "at risk", "fail").index(one.result.verdict))
            reason = worst.result.reason or None
            checks.append(Checked(id, worst.result.verdict, reason))
        return deployment_report(outcome.resolved, tuple(checks))

    def _summary(
        self,
        deployments: Sequence[DeploymentReport],
        findings: Sequence[Finding],
        suppressed: Sequence[Finding],
    ) -> Summary:
        from capcheck.summing import summary

        errors = sum(1 for one in findings if one.rule == "capcheck/plugin-error")
        files = {one.place.file for one in deployments} | set(self.intake.taken)
        return summary(
            deployments, findings, suppressed, files=len(files), assumed=self._assumed(),
            unclaimed=len(self.intake.unclaimed), plugin_errors=errors,
        )  # fmt: skip

    def _assumed(self) -> int:
        return sum(
            1
            for one in self.outcomes
            for value in one.resolved.deployment.fields.values()
            if value.origin.kind == "assumed"
        )


def finding_of(judged: Judged, deployment: Deployment) -> Finding:
    """A result as a finding at its place, with what is marked and whence it was included."""
    result = judged.result
    severity = result.severity or result.rule.severity
    if result.verdict == "at risk":
        severity = "warning"
    place = result.at or deployment.place
    if place.file == "<command line>":
        place = deployment.place
    notes = [result.word] if result.word else []
    if result.via:
        via = result.via[0]
        notes.append(f"(included from {via.file}:{via.line})")
    if result.assumed:
        notes.append(f"(assumed {'; '.join(result.assumed)})")
    words = result.words
    message = words.message
    if result.reason and result.verdict == "at risk":
        message = f"{message} ({result.reason})"
    return Finding(
        result.rule.id, result.verdict, severity, message, place, deployment.name,
        words.arithmetic, words.help, " ".join(notes),
    )  # fmt: skip


__all__ = ["Outcome", "Rule", "Session", "finding_of"]
