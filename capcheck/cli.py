"""Arguments to settings, a run to an exit code."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from capcheck import __version__

if TYPE_CHECKING:
    from capcheck.config import Settings
    from capcheck.report import Report
    from capcheck.session import Session

OK, FINDINGS, FAULT = 0, 1, 2
VERBS = ("check", "show", "explain", "rules", "list", "fit", "schema")
EPILOG = """\
verbs: check (the default), show FILE, explain RULE [FILE], rules, list KIND, fit MODEL, schema
exit:  0 no error remains; 1 an error remains; 2 usage, configuration, plugin error or nothing
       to check
"""


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"capcheck: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(FAULT)


def _common(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("--plugin", action="append", metavar="MODULE|FILE.py", help="load a plugin by name or file")
    add("--no-plugin", action="append", metavar="NAME", help="leave an installed plugin out")
    add("--config", type=Path, metavar="FILE", help="this configuration instead of the nearest")
    add("--color", choices=("auto", "always", "never"), default="auto", help="colour of text")


def _checking(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    _common(parser)
    add("--select", metavar="RULES", help="only these rules or concerns, by comma")
    add("--extend-select", metavar="RULES", help="these as well")
    add("--ignore", metavar="RULES", help="not these rules or concerns")
    add("--assume", action="append", metavar="NAME=VALUE",
        help="fill what no file tells: accelerator, engine-version, count, model ...")  # fmt: skip
    add("--exclude", action="append", metavar="GLOB", help="skip files and folders when walking")
    add("--stdin-filename", default="<stdin>", metavar="NAME", help="the name of `-` in messages")


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = _Parser(
        prog="capcheck", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A linter for LLM inference deployments: `capcheck PATH...` checks.",
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"capcheck {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=_Parser)
    check = verbs.add_parser("check", help="check files and folders")
    _checking(check)
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, folders, or - for stdin")
    add = check.add_argument
    add("--format", metavar="NAME", help="text, concise or json")
    add("--output", action="append", metavar="FORMAT=FILE", help="write a report to a file as well")
    add("--strict", action="store_true", default=None, help="warnings fail the run too")
    add("--quiet", "-q", action="store_true", help="errors only, no closing line")
    add("--show-passed", action="store_true", help="list the checks that passed")
    add("--show-files", action="store_true", help="list the files and what they were taken as")
    add("--skip-unclaimed", action="store_true",
        help="a given file that is no deployment is no error")  # fmt: skip
    show = verbs.add_parser("show", help="the merged deployment and plan, each value's origin")
    _checking(show)
    show.add_argument("paths", nargs=1, metavar="FILE")
    explain = verbs.add_parser("explain", help="a rule's page, or its arithmetic on a file")
    _checking(explain)
    explain.add_argument("rule", metavar="RULE")
    explain.add_argument("paths", nargs="*", metavar="FILE")
    rules = verbs.add_parser("rules", help="every rule in one line")
    _common(rules)
    rules.add_argument("--format", choices=("text", "json"), default="text")
    listing = verbs.add_parser("list", help="what is known")
    _common(listing)
    listing.add_argument("kind", choices=("models", "accelerators", "engines", "formats"))
    listing.add_argument("pattern", nargs="?", default="", help="only names that hold this")
    fit = verbs.add_parser("fit", help="what a model takes on an accelerator")
    _common(fit)
    _fitting(fit)
    schema = verbs.add_parser("schema", help="the JSON Schema of a deployment, or another")
    _common(schema)
    schema.add_argument(
        "name", nargs="?", default="deployment",
        choices=("deployment", "report", "config", "terms", "accelerator", "model"),
    )  # fmt: skip
    return top


def _fitting(fit: argparse.ArgumentParser) -> None:
    add = fit.add_argument
    add("model", metavar="MODEL", help="a model's name, or the path of its config.json")
    add("--on", metavar="ACCELERATOR", help="an accelerator or instance type")
    add("--count", type=int, metavar="N", help="devices of one replica")
    add("--engine", metavar="NAME", help="judge by this engine's own accounting")
    add("--engine-version", metavar="VERSION")
    add("--precision", metavar="WORD", help="of the weights: bf16, fp8, awq-int4 ...")
    add("--kv-dtype", metavar="WORD", help="of the KV cache: bf16, fp8")
    add("--max-model-len", "--context", dest="length", metavar="TOKENS", default="8192")
    add("--max-num-seqs", "--sequences", dest="sequences", metavar="N", default="16")
    add("--prompt-tokens", metavar="TOKENS", help="of a typical prompt, for the floors")
    add("--tpot", metavar="DURATION", help="a target: time per output token, as 50ms")
    add("--ttft", metavar="DURATION", help="a target: time to first token, as 800ms")
    add("--format", choices=("text", "json"), default="text")


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
    from capcheck import config
    from capcheck.intake import ASSUMABLE

    named = given.config or os.environ.get(config.CONFIG_VARIABLE)
    if named and not Path(named).is_file():
        raise config.UsageError(f"no configuration file {named}")
    found = config.read_config(Path(named), trusted=True) if named else config.load(start)
    return config.settings(found, dict(os.environ), _options(given), assumable=ASSUMABLE)


def session_of(given: argparse.Namespace, paths: Sequence[Path]) -> Session:
    """Plugins and settings for these paths. Raises UsageError."""
    from capcheck.config import UsageError
    from capcheck.files import root_of
    from capcheck.plugins import Plugins, UnusablePlugin
    from capcheck.session import Session

    root = root_of(paths[0]) if paths else Path.cwd()
    settings = _settings(given, paths[0] if paths else root)
    for other in paths[1:]:
        theirs = root_of(other)
        if theirs != root:
            root = Path(os.path.commonpath([root, theirs]))
    try:
        plugins = Plugins(extra=settings.plugins, without=settings.no_plugins)
    except UnusablePlugin as wrong:
        raise UsageError(str(wrong)) from wrong
    return Session(plugins, settings, root)


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


def _verb(arguments: Sequence[str]) -> list[str]:
    """`capcheck PATH` means `capcheck check PATH`."""
    for place, word in enumerate(arguments):
        if not word.startswith("-") or word == "-":
            known = word in VERBS
            return list(arguments) if known and place == 0 else ["check", *arguments]
        if word in ("-h", "--help", "--version"):
            return list(arguments)
    return ["check", *arguments] if arguments else ["--help"]


def run(arguments: Sequence[str]) -> int:
    """One command line to an exit code."""
    given = parser().parse_args(_verb(arguments))
    from importlib import import_module

    from capcheck.config import UsageError

    handler: Callable[[argparse.Namespace], int] = import_module(
        f"capcheck.verbs.{given.verb}"
    ).run
    try:
        return handler(given)
    except UsageError as wrong:
        print(f"capcheck: {wrong}", file=sys.stderr)
        return FAULT


def main() -> None:
    """The console script."""
    arguments = sys.argv[1:]
    if arguments == ["--version"]:  # answered before anything loads
        print(f"capcheck {__version__}")
        return
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
    try:
        code = run(arguments)
        sys.stdout.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 141
    except KeyboardInterrupt:
        code = 130
    raise SystemExit(code)


if __name__ == "__main__":
    main()
