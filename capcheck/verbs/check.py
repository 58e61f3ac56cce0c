"""`capcheck PATH...`: check files and folders and report."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from capcheck.cli import exit_code, session_of
from capcheck.config import UsageError
from capcheck.report import Look, Report, ReportFormat, summary_line

if TYPE_CHECKING:
    from capcheck.session import Session
    from capcheck.values import Place


def colored(choice: str) -> bool:
    """--color over NO_COLOR over FORCE_COLOR over what stdout is."""
    if choice != "auto":
        return choice == "always"
    if os.environ.get("NO_COLOR"):
        return False
    if os.environ.get("FORCE_COLOR"):
        return True
    return sys.stdout.isatty() and os.environ.get("TERM") != "dumb"


def look_of(given: argparse.Namespace, session: Session) -> Look:
    """How text is to look: colours, paths as the reader stands, source lines."""
    from capcheck.source import line_of

    root, texts = session.root, session.intake.texts

    def shown(file: str) -> str:
        path = root / file
        try:
            return os.path.relpath(path) if file and file in texts else file
        except ValueError:
            return file

    def line(place: Place) -> str | None:
        text = texts.get(place.file)
        return line_of(text, place.line) if text is not None else None

    return Look(
        colored(given.color), getattr(given, "show_passed", False),
        getattr(given, "quiet", False), shown, line,
    )  # fmt: skip


def _format(formats: Mapping[str, ReportFormat], name: str) -> ReportFormat:
    found = formats.get(name)
    if found is None:
        known = ", ".join(sorted(formats))
        raise UsageError(f"there is no report format {name!r}; known are {known}")
    return found


def report_of(session: Session, given: argparse.Namespace) -> Report:
    """The report over the given paths; `-` reads standard input."""
    stdin = None
    paths = [Path(path) for path in given.paths if path != "-"]
    if len(paths) < len(given.paths):
        stdin = (given.stdin_filename, sys.stdin.buffer.read().decode("utf-8", "replace"))
    return session.run(paths, stdin)


def run(given: argparse.Namespace) -> int:
    """Check, write the reports, and say how it went."""
    paths = [Path(path) for path in given.paths if path != "-"]
    session = session_of(given, paths)
    session.intake.skip_unclaimed = given.skip_unclaimed
    formats = session.plugins.reports()
    chosen = _format(formats, session.settings.format)
    outputs = []
    for output in given.output or ():
        name, equals, file = output.partition("=")
        if not (equals and file):
            raise UsageError(f"--output takes FORMAT=FILE, not {output!r}")
        outputs.append((_format(formats, name), Path(file)))
    report = report_of(session, given)
    look = look_of(given, session)
    sys.stdout.write(chosen.write(report, look))
    for format, file in outputs:
        try:
            file.write_text(format.write(report, look._replace(color=False)), encoding="utf-8")
        except OSError as wrong:
            raise UsageError(f"--output {file}: {wrong.strerror or wrong}") from wrong
    if given.show_files:
        for name, taken in report.shown_files:
            print(f"{look.shown_path(name)}: {taken}", file=sys.stderr)
        for name in session.intake.unclaimed:
            print(f"{look.shown_path(name)}: no deployment", file=sys.stderr)
    if not given.quiet and chosen.name != "json":
        print(summary_line(report.summary), file=sys.stderr)
    return exit_code(report, session.settings, skip_unclaimed=given.skip_unclaimed)
