"""Results and problems as findings: severities, places, and what led there."""

from __future__ import annotations

from collections.abc import Mapping

from capcheck.combining import Judged
from capcheck.deployment import Deployment
from capcheck.findings import Finding, Rule
from capcheck.guard import Guard, PluginError
from capcheck.notices import NOTICES
from capcheck.problems import Problem
from capcheck.quantity import Severity, Verdict
from capcheck.selection import PLUGIN_ERROR
from capcheck.values import COMMAND_LINE, Place

NO_PLACE = Place("", 0, 0, 0, 0)


def of_plugin(error: PluginError) -> Finding:
    """A plugin's fault as a finding without a place."""
    message = f"plugin {error.plugin}: {error.message}"
    return Finding(PLUGIN_ERROR, "fail", "error", message, NO_PLACE)


def of_problem(
    problem: Problem, rules: Mapping[str, Rule], guard: Guard, deployment: str = ""
) -> Finding | None:
    """A fault of the input as a finding; None for an id that is nobody's."""
    page = NOTICES.get(problem.rule) or rules.get(problem.rule)
    if page is None:
        guard.fault("a format", f"reports {problem.rule!r}, which is no rule: {problem.message}")
        return None
    severity: Severity = page.severity
    verdict: Verdict = "fail" if severity == "error" else "at risk"
    help = (problem.help,) if problem.help else ()
    return Finding(
        page.id, verdict, severity, problem.message, problem.place, deployment, help=help
    )


def of_result(judged: Judged, deployment: Deployment) -> Finding:
    """A result as a finding at its place, with what is marked and whence it was included.

    What stands on the command line is marked at the deployment's header.
    """
    result = judged.result
    severity = result.severity or result.rule.severity
    if result.verdict == "at risk":
        severity = "warning"
    place = result.at or deployment.place
    if place.file == COMMAND_LINE:
        place = deployment.place
    notes = [result.word] if result.word else []
    if result.assumed:
        notes.append(f"(assumed {'; '.join(result.assumed)})")
    words = result.words
    message = f"{words.message} ({result.reason})" if result.reason else words.message
    return Finding(
        result.rule.id, result.verdict, severity, message, place, deployment.name,
        words.arithmetic, words.help, " ".join(notes), via=result.via,
    )  # fmt: skip
