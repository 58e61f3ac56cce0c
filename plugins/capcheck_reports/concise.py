"""One line for each finding: `path:line:column: severity: message [rule]`."""

from __future__ import annotations

from capcheck import Look, Report, ReportFormat
from capcheck_reports.lines import Paint, headline, shown_findings


class ConciseReport(ReportFormat):
    """For grep, editors and long lists."""

    name = "concise"
    title = "one line for each finding"

    def write(self, report: Report, look: Look) -> str:
        """Each finding on its line."""
        paint = Paint(look.color)
        lines = [headline(one, look, paint) for one in shown_findings(report, look)]
        return "".join(f"{line}\n" for line in lines)
