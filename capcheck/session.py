"""One run on one screen: read all, merge, resolve, check, judge, decide, report."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from capcheck import __version__, saying
from capcheck.case import Estimate, Workshop
from capcheck.catalogue import Catalogue
from capcheck.checking import Checker, Standing, by_worst
from capcheck.combining import FOUND, Judged, combine
from capcheck.config import OWN_MODELS, Settings, UsageError
from capcheck.decide import checked, decide
from capcheck.deployment import Deployment, Draft
from capcheck.findings import Finding
from capcheck.guard import RAISED, describe
from capcheck.intake import Intake
from capcheck.judge import WORST
from capcheck.notices import NOTICES
from capcheck.own_records import own_shelves
from capcheck.packings import Packings
from capcheck.plugins import Plugins
from capcheck.problems import Problem
from capcheck.remedies import Trials
from capcheck.report import Checked, DeploymentReport, Report
from capcheck.resolve import Resolved, Resolver
from capcheck.schema import BadExtension, Extension, Validator, check_extension
from capcheck.shared import CORE_ESTIMATES, CORE_TERMS
from capcheck.summing import deployment_report, summary
from capcheck.terms import TermBook


class Outcome(NamedTuple):
    """One deployment after its checks: the results behind each rule's verdict."""

    resolved: Resolved
    judged: dict[str, list[Judged]]

    @property
    def deployment(self) -> Deployment:
        """What was checked."""
        return self.resolved.deployment


class Session:
    """Plugins and settings, ready to check paths below one root. Raises UsageError."""

    def __init__(self, plugins: Plugins, settings: Settings, root: Path) -> None:
        self.plugins = plugins
        self.guard = plugins.guard
        self.root = root
        self.rules = plugins.rules()
        ids = {id: rule.id for id, rule in self.rules.items()}
        self.known = {**ids, **{id: id for id in NOTICES}}
        self.settings = settings = checked(settings, self.known)
        self.selected = {
            id: rule for id, rule in self.rules.items() if id == rule.id and settings.selects(id)
        }
        if self.rules and not self.selected:
            raise UsageError("no rule is selected: nothing would be checked")
        engines, formats = plugins.engines(), plugins.formats()
        self.catalogue = Catalogue((*plugins.shelves(), *own_shelves(settings, root)))
        self.intake = Intake(
            root, formats, engines, self.guard, catalogue=self.catalogue,
            assumptions=settings.assume, exclude=(*settings.exclude, OWN_MODELS),
        )  # fmt: skip
        self.packings = Packings(plugins.packings(), self.guard)
        self.validator = Validator(self._extensions())
        self.checker = Checker(plugins, self.rules, self.selected)
        self.resolver = Resolver(
            engines, self.catalogue, plugins.models(), self.packings, self.guard, self._workshop,
            self.intake.model_config, self.intake.local_model,
        )  # fmt: skip
        self.outcomes: list[Outcome] = []

    def _workshop(self, resolver: Resolver) -> Workshop:
        estimates: dict[str, Estimate] = {one.name: one for one in CORE_ESTIMATES}
        for name, one in self.plugins.estimates().items():
            if estimates.setdefault(name, one) is not one:
                self.guard.fault(self.guard.owner(one), f"the estimate {name!r} is the core's")
        return Workshop(
            TermBook((CORE_TERMS, *self.plugins.term_files()), self.guard.fault), estimates,
            self.plugins.platforms(), self.packings, resolver.models.of_name,
            resolver.models.stored, resolver.again, {"settings": self.settings},
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
                self.guard.fault(self.guard.owner(extension), str(wrong))
        return good

    # one deployment

    def resolve(self, draft: Draft) -> Resolved:
        """A draft validated and resolved into its cases."""
        problems = [Problem(*one) for one in draft.problems]
        problems += [Problem(*one) for one in self.validator.problems(draft)]
        resolved = self.resolver.resolve(Deployment(draft))
        return resolved._replace(problems=(*problems, *resolved.problems))

    def check(self, resolved: Resolved) -> Outcome:
        """All alternatives checked, one verdict for each rule, and what would help."""
        by_rule: dict[str, list[Judged]] = {}
        before: dict[int, dict[str, Standing]] = {}
        for case in resolved.cases:
            results = self.checker.results(case)
            before[id(case)] = by_worst(results)
            for result in results:
                by_rule.setdefault(result.rule.id, []).append(Judged(case, result))
        trials = Trials(resolved.cases, before, self.checker.standings)
        judged = {rule: combine(ones) for rule, ones in sorted(by_rule.items())}
        for ones in judged.values():
            first, result = ones[0], ones[0].result
            if result.verdict in FOUND and result.rule.knobs:
                help = (*trials.remedies(result.rule), *result.words.help)
                words = result.words._replace(help=tuple(dict.fromkeys(help)))
                ones[0] = first._replace(result=result._replace(words=words))
        return Outcome(resolved, judged)

    def _outcomes(self, drafts: Iterable[Draft]) -> list[Outcome]:
        """Each deployment's outcome. A fault of ours costs one deployment, and the exit code."""
        found = []
        for draft in drafts:
            try:
                found.append(self.check(self.resolve(draft)))
            except RAISED as error:
                self.guard.fault("capcheck", f"{draft.name}: {describe(error)}")
        return found

    # a whole run

    def run(self, paths: Iterable[Path], stdin: tuple[str, str | bytes] | None = None) -> Report:
        """Read all, merge, resolve, check, judge, decide, report."""
        self.outcomes = self._outcomes(self.intake.read(paths, stdin))
        self._check_fleet()
        findings = self._findings()
        deployments = tuple(self._report(outcome) for outcome in self.outcomes)
        findings += [saying.of_plugin(one) for one in self.guard.errors]
        skipped = {
            id
            for outcome in self.outcomes
            for id, ones in outcome.judged.items()
            if any(one.result.verdict == "skip" for one in ones)
        }
        decided = decide(findings, self.intake.texts, self.settings, self.known, skipped=skipped)
        files = {one.place.file for one in deployments} | set(self.intake.taken)
        closing = summary(
            deployments, decided.findings, decided.suppressed, files=len(files),
            assumed=self._assumed(), unclaimed=len(self.intake.unclaimed), lacks=self._lacks(),
        )  # fmt: skip
        return Report(
            __version__, self.root, closing, deployments, decided.findings, decided.suppressed,
            tuple(sorted(self.intake.taken.items())),
        )  # fmt: skip

    def _check_fleet(self) -> None:
        """Rules over all deployments, each speaking of a deployment's first alternative."""
        outcomes = {id(one.resolved.cases[0]): one for one in self.outcomes}
        cases = [one.resolved.cases[0] for one in self.outcomes]
        for judged in self.checker.fleet(cases) if cases else ():
            ones = outcomes[id(judged.case)].judged
            ones.setdefault(judged.result.rule.id, []).append(judged)

    def _findings(self) -> list[Finding]:
        """Everything that is wrong. What a deployment takes from a base is said once."""
        problems = [saying.of_problem(one, self.rules, self.guard) for one in self.intake.problems]
        found = [one for one in problems if one is not None]
        bases: list[Finding] = []
        for outcome in self.outcomes:
            of_base = outcome.deployment.place in self.intake.bases
            (bases if of_base else found).extend(self._of_outcome(outcome))
        said = {(one.rule, one.place, one.message) for one in found}
        return found + [one for one in bases if (one.rule, one.place, one.message) not in said]

    def _of_outcome(self, outcome: Outcome) -> list[Finding]:
        deployment = outcome.deployment
        problems = (
            saying.of_problem(one, self.rules, self.guard, deployment.name)
            for one in outcome.resolved.problems
        )
        results = (
            saying.of_result(one, deployment)
            for ones in outcome.judged.values()
            for one in ones
            if one.result.verdict in FOUND
        )
        return [*(one for one in problems if one is not None), *results]

    def _report(self, outcome: Outcome) -> DeploymentReport:
        checks = []
        for id, ones in outcome.judged.items():
            worst = max(ones, key=lambda one: WORST.index(one.result.verdict)).result
            checks.append(Checked(id, worst.verdict, worst.reason or None))
        return deployment_report(outcome.resolved, tuple(checks), self.guard)

    def _lacks(self) -> Iterator[str]:
        """Why each skipped check was skipped."""
        for outcome in self.outcomes:
            for ones in outcome.judged.values():
                results = [one.result for one in ones]
                if all(one.verdict == "skip" for one in results):
                    yield results[0].lack or results[0].reason

    def _assumed(self) -> int:
        return sum(
            1
            for one in self.outcomes
            for value in one.deployment.fields.values()
            if value.origin.kind == "assumed"
        )
