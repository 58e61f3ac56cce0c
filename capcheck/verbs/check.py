"""`capcheck PATH...`: check files and folders and report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from capcheck.cli import exit_code, session_at, tell
from capcheck.config import UsageError
from capcheck.merging import merged, prefix_of
from capcheck.report import Look, Report, ReportFormat, summary_line
from capcheck.verbs.reading import STDIN, by_root, standard_input

if TYPE_CHECKING:
    from capcheck.session import Session
    from capcheck.values import Place


class Ran(NamedTuple):
    """One root's session and its report."""

    session: Session
    report: Report


def colored(choice: str) -> bool:
    """--color over NO_COLOR over FORCE_COLOR over what stdout is."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def look_of(given: argparse.Namespace, root: Path, texts: Mapping[str, str]) -> Look:
    """How text is to look: colours, paths as the reader stands, source lines."""
    from capcheck.source import line_of

    def shown(file: str) -> str:
        try:
            return os.path.relpath(root / file) if file else file
        except ValueError:  # on another drive
            return file

    def line(place: Place) -> str | None:
        text = texts.get(place.file) if place.line > 0 else None
        return line_of(text, place.line) if text is not None else None

    return Look(colored(given.color), given.show_passed, given.quiet, shown, line)


def _format(formats: Mapping[str, ReportFormat], name: str) -> ReportFormat:
    found = formats.get(name)
    if found is None:
        known = ", ".join(sorted(formats)) or "none"
        raise UsageError(f"there is no report format {name!r}; known are {known}")
    return found


def _outputs(
    given: argparse.Namespace, formats: Mapping[str, ReportFormat]
) -> list[tuple[ReportFormat, Path]]:
    """The reports that go to files. Raises UsageError."""
    outputs = []
    for output in given.output or ():
        name, equals, file = output.partition("=")
        if not (equals and file):
            raise UsageError(f"--output takes FORMAT=FILE, not {output!r}")
        outputs.append((_format(formats, name), Path(file)))
    return outputs


def _run_all(sessions: Mapping[Path, Session], given: argparse.Namespace) -> list[Ran]:
    ran = []
    for root, paths in by_root(given).items():
        session = sessions[root]
        session.intake.skip_unclaimed = given.skip_unclaimed
        stdin = standard_input(given, root) if STDIN in paths else None
        files = [Path(path) for path in paths if path != STDIN]
        ran.append(Ran(session, session.run(files, stdin)))
    return ran


def _texts(ran: list[Ran], base: Path) -> dict[str, str]:
    """The text of each file, by its name in the whole report."""
    return {
        prefix_of(one.session.root, base) + name if not name.startswith("<") else name: text
        for one in ran
        for name, text in one.session.intake.texts.items()
    }


def _show_files(ran: list[Ran], report: Report, look: Look) -> None:
    for name, taken in report.shown_files:
        print(f"{look.shown_path(name)}: {taken}", file=sys.stderr)
    for one in ran:
        for name in one.session.intake.unclaimed:
            name = prefix_of(one.session.root, report.root) + name
            print(f"{look.shown_path(name)}: no deployment", file=sys.stderr)


def _write(format: ReportFormat, report: Report, look: Look) -> str:
    """The report as text. Raises UsageError when its plugin fails."""
    from capcheck.guard import RAISED, describe

    try:
        return format.write(report, look)
    except RAISED as error:
        raise UsageError(f"the report format {format.name!r} failed: {describe(error)}") from error


def run(given: argparse.Namespace) -> int:
    """Check, write the reports, and say how it went."""
    sessions = {root: session_at(given, root) for root in by_root(given)}
    if not all(session.rules for session in sessions.values()):
        raise UsageError("no plugin brings rules: nothing would be checked")
    first = next(iter(sessions.values()))
    formats = first.plugins.reports()
    chosen = _format(formats, first.settings.format)
    outputs = _outputs(given, formats)
    ran = _run_all(sessions, given)
    report = merged([one.report for one in ran])
    look = look_of(given, report.root, _texts(ran, report.root))
    sys.stdout.write(_write(chosen, report, look))
    sys.stdout.flush()  # where both streams are one log the closing line comes last
    for format, file in outputs:
        try:
            file.write_text(_write(format, report, look._replace(color=False)), encoding="utf-8")
        except OSError as wrong:
            raise UsageError(f"--output {file}: {wrong.strerror or wrong}") from wrong
    if given.show_files:
        _show_files(ran, report, look)
    if not given.quiet and chosen.name != "json":
        print(summary_line(report.summary), file=sys.stderr)
    elif not report.summary.deployments and not report.findings:
        tell("there is nothing to check")
    return max(
        exit_code(report, one.session.settings, skip_unclaimed=given.skip_unclaimed) for one in ran
    )
