"""The report for reading: each finding with its line, its arithmetic and what helps."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Look, Report, ReportFormat
from capcheck.findings import Finding
from capcheck.printable import printable
from capcheck.report import DeploymentReport
from capcheck_reports.lines import Paint, headline, note_of, shown_findings, shown_place
from capcheck_reports.snippet import snippet

_NUMBER = 5  # columns for the line's number
_VERDICTS = {"pass": "pass", "at risk": "at risk", "fail": "fail", "skip": "skipped"}


class TextReport(ReportFormat):
    """The default."""

    name = "text"
    title = "findings with their lines, for reading"

    def write(self, report: Report, look: Look) -> str:
        """Findings, then what passed if that is asked for."""
        paint = Paint(look.color)
        blocks = ["\n".join(_finding(one, look, paint)) for one in shown_findings(report, look)]
        if look.show_passed and not look.quiet:
            blocks += ["\n".join(_deployment(one, look, paint)) for one in report.deployments]
            blocks += ["\n".join(_suppressed(one, look, paint)) for one in report.suppressed]
        return "\n\n".join(blocks) + "\n" if blocks else ""


def _finding(finding: Finding, look: Look, paint: Paint) -> Iterator[str]:
    yield headline(finding, look, paint)
    note = note_of(finding, look)
    line = look.line(finding.place) if finding.place.file else None
    if line is not None:
        yield from _marked(finding, line, note, paint)
    elif note:
        yield _said("note", note, paint)
    if finding.arithmetic:
        yield _said("arithmetic", printable(finding.arithmetic), paint)
    if finding.help:
        yield _said("help", " · ".join(printable(one) for one in finding.help), paint)


def _marked(finding: Finding, line: str, note: str, paint: Paint) -> Iterator[str]:
    place = finding.place
    end = place.end_column if place.end_line == place.line else None
    shown, indent, carets = snippet(line, place.column, end)
    number = str(place.line).rjust(_NUMBER)
    yield f"{paint(f'{number} |', 'margin')} {shown}".rstrip()
    edge = paint(f"{'':{len(number)}} |", "margin")
    yield f"{edge} {' ' * indent}{paint(carets, finding.severity)} {note}".rstrip()


def _said(label: str, text: str, paint: Paint) -> str:
    return f"   = {paint(f'{label}:', 'label')} {text}"


def _deployment(one: DeploymentReport, look: Look, paint: Paint) -> Iterator[str]:
    """Every check of a deployment with its verdict, and why it was skipped or is at risk."""
    place = paint(shown_place(one.place, look), "path")
    yield f"{place}: {printable(one.name)} ({printable(one.format)})"
    for check in one.checks:
        reason = f": {printable(check.reason)}" if check.reason else ""
        yield f"    {_VERDICTS[check.verdict]:<8}{printable(check.rule)}{reason}"


def _suppressed(finding: Finding, look: Look, paint: Paint) -> Iterator[str]:
    yield headline(finding, look, paint)
    yield _said("suppressed", printable(finding.suppressed), paint)
