"""The shipped report formats: text, concise, json."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import ReportFormat, hookimpl


@hookimpl
def capcheck_reports() -> Iterable[ReportFormat]:
    """One format for reading, one for searching, one for programs."""
    from capcheck_reports.concise import ConciseReport
    from capcheck_reports.json_report import JsonReport
    from capcheck_reports.text import TextReport

    return (TextReport(), ConciseReport(), JsonReport())
