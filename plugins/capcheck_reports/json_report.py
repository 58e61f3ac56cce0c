"""The report for programs, as schemas/report.schema.json describes it."""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from capcheck import Look, Report, ReportFormat
from capcheck.findings import Finding
from capcheck.report import DeploymentReport, Estimated, Summary

FORM = 1  # counts up when a field changes its meaning
_DIGITS = 12  # beyond them a float holds only the order of its sums


class JsonReport(ReportFormat):
    """Complete whatever the look: paths relative to the root, plain ASCII."""

    name = "json"
    title = "one JSON object, for programs"

    def write(self, report: Report, look: Look) -> str:
        """The whole report, whatever the look."""
        del look
        whole = {
            "capcheck": report.version,
            "report": FORM,
            "summary": _summary(report.summary),
            "deployments": [_deployment(one) for one in report.deployments],
            "findings": [_finding(one) for one in report.findings],
            "suppressed": [
                {**_finding(one), "reason": one.suppressed} for one in report.suppressed
            ],
        }
        return json.dumps(whole, indent=2, allow_nan=False) + "\n"


def _summary(summary: Summary) -> dict[str, Any]:
    return {
        "files": summary.files,
        "deployments": summary.deployments,
        "checks": summary.checks,
        "passed": summary.passed,
        "errors": summary.errors,
        "warnings": summary.warnings,
        "skipped": summary.skipped,
        "suppressed": summary.suppressed,
        "assumed": summary.assumed,
        "unclaimed": summary.unclaimed,
        "plugin_errors": summary.plugin_errors,
    }


def _deployment(one: DeploymentReport) -> dict[str, Any]:
    estimates = {
        name: _estimate(made)
        for name, made in one.estimates.items()
        if all(isfinite(value) for value in made.band)
    }
    found: dict[str, Any] = {
        "name": one.name,
        "path": one.place.file,
        "line": one.place.line,
        "format": one.format,
        "resolved": dict(one.resolved),
        "unknown": dict(one.unknown),
        "estimates": estimates,
        "checks": [
            {"rule": check.rule, "verdict": check.verdict, "reason": check.reason}
            for check in one.checks
        ],
    }
    return {**found, "binding": one.binding} if one.binding else found


def _estimate(made: Estimated) -> dict[str, Any]:
    low, mid, high = (float(f"{value:.{_DIGITS}g}") for value in made.band)
    return {"low": low, "mid": mid, "high": high, "unit": made.unit, "basis": made.basis}


def _finding(finding: Finding) -> dict[str, Any]:
    place = finding.place
    return {
        "rule": finding.rule,
        "verdict": finding.verdict,
        "severity": finding.severity,
        "message": finding.message,
        "arithmetic": finding.arithmetic,
        "help": list(finding.help),
        "deployment": finding.deployment,
        "path": place.file,
        "line": place.line,
        "column": place.column,
        "end_line": place.end_line,
        "end_column": place.end_column,
        "spec_path": list(place.path),
        "included_from": [
            {"path": one.file, "line": one.line, "column": one.column} for one in finding.via
        ],
    }
