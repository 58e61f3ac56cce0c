"""What a run found, in the form that every report format writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from capcheck.findings import Finding
from capcheck.quantity import Band, Verdict
from capcheck.values import Place


class Checked(NamedTuple):
    """One rule's verdict on one deployment. `reason` completes "skipped because"."""

    rule: str
    verdict: Verdict
    reason: str | None = None


class Estimated(NamedTuple):
    """One estimate of one deployment, in its SI unit."""

    band: Band
    unit: str
    basis: str = ""


class DeploymentReport(NamedTuple):
    """What one deployment was read as, and what each rule said of it."""

    name: str
    place: Place
    format: str
    resolved: Mapping[str, Any]  # null: not known, the reason is in `unknown`
    unknown: Mapping[str, str]
    estimates: Mapping[str, Estimated]
    checks: tuple[Checked, ...]
    binding: str = ""  # which constraint binds: memory, bandwidth, compute, interconnect


class Summary(NamedTuple):
    """The closing line's figures."""

    files: int
    deployments: int
    checks: int
    passed: int
    errors: int
    warnings: int
    skipped: int
    suppressed: int
    assumed: int = 0  # assumptions in use
    unclaimed: int = 0  # files that no format reads
    skip_reasons: tuple[tuple[str, int], ...] = ()  # most frequent first
    plugin_errors: int = 0  # these are among the errors


class Report(NamedTuple):
    """A whole run. Findings are sorted by path, line, column, rule; suppressed ones are apart."""

    version: str
    root: Path
    summary: Summary
    deployments: tuple[DeploymentReport, ...]
    findings: tuple[Finding, ...]
    suppressed: tuple[Finding, ...] = ()
    shown_files: tuple[tuple[str, str], ...] = ()  # (file, what it was taken as)


def no_line(place: Place) -> str | None:
    """Where there are no sources, no place has a line."""
    del place
    return None


class Look(NamedTuple):
    """How a report for people is to look. Reports for programs are always complete and plain."""

    color: bool = False
    show_passed: bool = False
    quiet: bool = False  # errors only
    shown_path: Callable[[str], str] = str  # a root-relative path as the reader sees it
    line: Callable[[Place], str | None] = no_line  # the source line where a place starts


class ReportFormat:
    """A report plugin: subclass, fill in, return an instance from `capcheck_reports`."""

    name: str = ""
    title: str = ""

    def write(self, report: Report, look: Look) -> str:
        """The report as text that ends with a line end, or "" when there is nothing to say."""
        raise NotImplementedError


def counted(count: int, one: str, many: str = "") -> str:
    """`1 file`, `3 files`, `1,200 files`; `many` where an s does not make the plural."""
    return f"{count:,} {one if count == 1 else many or f'{one}s'}"


def _skipped(summary: Summary) -> str:
    reasons = [f"{count:,} {reason}" for reason, count in summary.skip_reasons]
    other = summary.skipped - sum(count for _, count in summary.skip_reasons)
    if reasons and other > 0:
        reasons.append(f"{other:,} other")
    return f"{summary.skipped:,} skipped" + (f" ({', '.join(reasons)})" if reasons else "")


def summary_line(summary: Summary) -> str:
    """The closing sentence, without a line end. What did not occur is left out."""
    errors = counted(summary.errors, "error")
    if summary.plugin_errors:
        errors += f" ({summary.plugin_errors:,} of plugins)"
    parts = [
        (summary.checks, counted(summary.checks, "check")),
        (summary.checks, f"{summary.passed:,} passed"),
        (summary.errors, errors),
        (summary.warnings, counted(summary.warnings, "warning")),
        (summary.skipped, _skipped(summary)),
        (summary.suppressed, f"{summary.suppressed:,} suppressed"),
        (summary.assumed, f"{counted(summary.assumed, 'assumption')} in use"),
        (summary.unclaimed, f"{counted(summary.unclaimed, 'file')} in no known format"),
    ]
    said = [text for count, text in parts if count]
    deployments = counted(summary.deployments, "deployment")
    where = f"checked {deployments} in {counted(summary.files, 'file')}"
    return f"{where}: {', '.join(said) or 'nothing to check'}"
