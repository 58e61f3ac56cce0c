"""Arguments to settings, a run to an exit code."""

from __future__ import annotations

import os
import sys

from capcheck import __version__

TYPE_CHECKING = False  # typing, pathlib and argparse wait until more than the version is asked
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Sequence
    from pathlib import Path
    from typing import Any

    from capcheck.config import Settings
    from capcheck.plugins import Plugins
    from capcheck.report import Report
    from capcheck.session import Session

OK, FINDINGS, FAULT, INTERRUPTED, BROKEN_PIPE = 0, 1, 2, 130, 141
TRACE_VARIABLE = "CAPCHECK_TRACE"


def _split(text: str | None) -> list[str] | None:
    return None if text is None else [part.strip() for part in text.split(",") if part.strip()]


def _options(given: argparse.Namespace) -> dict[str, Any]:
    """The command line under the configuration's own keys."""
    found: dict[str, Any] = {
        "select": _split(getattr(given, "select", None)),
        "extend-select": _split(getattr(given, "extend_select", None)),
        "ignore": _split(getattr(given, "ignore", None)),
        "exclude": getattr(given, "exclude", None),
        "strict": getattr(given, "strict", None),
        "format": getattr(given, "format", None),
        "plugins": given.plugin,
        "no-plugins": given.no_plugin,
    }
    if getattr(given, "assume", None):
        from capcheck.config import parse_assumption

        found["assume"] = dict(parse_assumption(one) for one in given.assume)
    return found


def _settings(given: argparse.Namespace, start: Path) -> Settings:
    from pathlib import Path

    from capcheck import config
    from capcheck.intake import ASSUMABLE

    named = given.config or os.environ.get(config.CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise config.UsageError(f"no configuration file {named}")
    found = config.read_config(Path(named), trusted=True) if named else config.load(start)
    if named and found is None:
        raise config.UsageError(f"{named} has no table [{'.'.join(config.TABLE)}]")
    return config.settings(found, dict(os.environ), _options(given), assumable=ASSUMABLE)


def _plugins(settings: Settings) -> Plugins:
    from capcheck.config import UsageError
    from capcheck.plugins import Plugins, UnusablePlugin

    try:
        plugins = Plugins(extra=settings.plugins, without=settings.no_plugins)
    except UnusablePlugin as wrong:
        raise UsageError(str(wrong)) from wrong
    for name in plugins.unused_blocks:
        tell(f"--no-plugin {name}: no such plugin is installed")
    return plugins


def session_at(given: argparse.Namespace, root: Path) -> Session:
    """Plugins and settings at one root. Raises UsageError."""
    from capcheck.session import Session

    settings = _settings(given, root)
    return Session(_plugins(settings), settings, root)


def session_of(given: argparse.Namespace, path: Path | None = None) -> Session:
    """As `session_at`, at the root of a path or of the working folder."""
    from pathlib import Path

    from capcheck.files import root_of

    return session_at(given, root_of(path if path is not None else Path.cwd()))


def tell(message: str) -> None:
    """Lines on stderr, safe for a terminal whatever file they speak of."""
    from capcheck.printable import printable

    for line in message.splitlines() or [""]:
        print(f"capcheck: {printable(line)}", file=sys.stderr)


def exit_code(report: Report, settings: Settings, *, skip_unclaimed: bool = False) -> int:
    """2 wins over 1: a fault or nothing to check, then errors, then a strict run's warnings."""
    summary = report.summary
    if summary.plugin_errors:
        return FAULT
    if not summary.deployments and not summary.errors and not skip_unclaimed:
        return FAULT
    if summary.errors:
        return FINDINGS
    if settings.strict:
        lost = any(
            check.verdict == "skip" and settings.requires(check.rule)
            for one in report.deployments
            for check in one.checks
        )
        return FINDINGS if summary.warnings or lost else OK
    return OK


def run(arguments: Sequence[str]) -> int:
    """One command line to an exit code."""
    from capcheck.arguments import parser, with_verb

    whole = parser()
    if not arguments:
        whole.print_help(sys.stderr)
        return FAULT
    given = whole.parse_args(with_verb(whole, arguments))
    from importlib import import_module

    from capcheck.config import UsageError

    handler: Callable[[argparse.Namespace], int] = import_module(f"capcheck.verbs.{given.verb}").run
    try:
        return handler(given)
    except UsageError as wrong:
        tell(str(wrong))
        return FAULT


def _internal(error: BaseException) -> int:
    """A fault of ours, in one line: never the exit code of findings."""
    from capcheck.guard import describe

    if os.environ.get(TRACE_VARIABLE):
        import traceback

        traceback.print_exception(error)
    tell(f"internal error: {describe(error)} ({TRACE_VARIABLE}=1 shows the whole trace)")
    return FAULT


def _guarded(arguments: Sequence[str]) -> int:
    """`run`, whatever happens to it or to its output."""
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        # Nobody reads on: what is still buffered must not fail again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    except OSError as error:
        if error.filename is not None:
            return _internal(error)
        tell(f"the report cannot be written: {error.strerror or error}")
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAULT
    except Exception as error:
        return _internal(error)
    return code


def main() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:  # answered before anything loads
        print(f"capcheck {__version__}")
        return
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    raise SystemExit(_guarded(arguments))


if __name__ == "__main__":
    main()
