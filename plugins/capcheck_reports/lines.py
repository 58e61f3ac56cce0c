"""What the formats for people share: colours, paths, a finding's first line."""

from __future__ import annotations

from capcheck import Look, Place, Report
from capcheck.findings import Finding
from capcheck.printable import printable

_RESET = "\x1b[0m"
_CODES = {
    "error": "\x1b[1;31m",
    "warning": "\x1b[1;33m",
    "path": "\x1b[1m",
    "rule": "\x1b[2m",
    "margin": "\x1b[34m",
    "label": "\x1b[1m",
}


class Paint:
    """Colours text, or not. What it is given is already printable."""

    def __init__(self, color: bool) -> None:
        self.color = color

    def __call__(self, text: str, role: str) -> str:
        """The text in the colour of its role: error, warning, path, rule, margin, label."""
        return f"{_CODES[role]}{text}{_RESET}" if self.color and text else text


def shown_place(place: Place, look: Look) -> str:
    """`path:line:column` as the reader sees it; what has no place is the run's own."""
    if not place.file:
        return "capcheck"
    if place.file.startswith("<"):  # standard input, the command line
        path = printable(place.file)
    else:
        path = printable(look.shown_path(place.file))
    return f"{path}:{place.line}:{place.column}" if place.line > 0 else path


def headline(finding: Finding, look: Look, paint: Paint) -> str:
    """`path:line:column: severity: message [rule]`."""
    place = paint(shown_place(finding.place, look), "path")
    severity = paint(finding.severity, finding.severity)
    rule = paint(f"[{printable(finding.rule)}]", "rule")
    return f"{place}: {severity}: {printable(finding.message)} {rule}"


def note_of(finding: Finding, look: Look) -> str:
    """What is marked, and the places that included its file, the nearest first."""
    note = printable(finding.note)
    if not finding.via:
        return note
    places = [f"{printable(look.shown_path(one.file))}:{one.line}" for one in reversed(finding.via)]
    return f"{note} (included from {', '.join(places)})".lstrip()


def shown_findings(report: Report, look: Look) -> list[Finding]:
    """The findings that are to be shown: only errors when quiet."""
    return [one for one in report.findings if one.severity == "error" or not look.quiet]
