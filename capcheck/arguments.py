"""The command line's grammar: verbs, their options, and what a first word means."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from capcheck import __version__
from capcheck.schemas_home import schema_names

USAGE_FAULT = 2
VERBS = ("check", "show", "explain", "rules", "list", "fit", "schema", "models")
KINDS = ("models", "accelerators", "engines", "formats")
EPILOG = """\
verbs: check (the default), show FILE, explain RULE [FILE], rules, list KIND, fit MODEL, schema,
       models add PATH; a folder that is called as a verb is ./NAME
exit:  0 no error remains; 1 an error remains; 2 usage, configuration, plugin error or nothing
       to check
"""


class Parser(argparse.ArgumentParser):
    """Faults are one line on stderr and exit code 2."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong and exit."""
        print(f"capcheck: {message} (see {self.prog} --help)", file=sys.stderr)
        raise SystemExit(USAGE_FAULT)


def parser() -> argparse.ArgumentParser:
    """The whole command line."""
    top = Parser(
        prog="capcheck", epilog=EPILOG, formatter_class=argparse.RawDescriptionHelpFormatter,
        description="A linter for LLM inference deployments: `capcheck PATH...` checks.",
        allow_abbrev=False,
    )  # fmt: skip
    top.add_argument("--version", action="version", version=f"capcheck {__version__}")
    verbs = top.add_subparsers(dest="verb", metavar="VERB", parser_class=Parser)
    _check(verbs)
    show = _verb(verbs, "show", "the merged deployment and plan, each value's origin")
    _reading(show)
    show.add_argument("paths", nargs=1, metavar="FILE")
    explain = _verb(verbs, "explain", "a rule's page, or its arithmetic on a file")
    _reading(explain)
    explain.add_argument("rule", metavar="RULE")
    explain.add_argument("paths", nargs="*", metavar="FILE")
    rules = _verb(verbs, "rules", "every rule in one line")
    rules.add_argument("--format", choices=("text", "json"), default="text")
    listing = _verb(verbs, "list", "what is known")
    listing.add_argument("kind", choices=KINDS)
    listing.add_argument("pattern", nargs="?", default="", help="only names that hold this")
    _fit(_verb(verbs, "fit", "what a model takes on an accelerator"))
    _models(_verb(verbs, "models", "a catalogue of your own: add a checkpoint"))
    schema = _verb(verbs, "schema", "the JSON Schema of a deployment, or another")
    schema.add_argument("name", nargs="?", default="deployment", choices=schema_names())
    return top


def _verb(
    verbs: argparse._SubParsersAction[Parser], name: str, help: str
) -> argparse.ArgumentParser:
    """A verb with the options that all have."""
    made = verbs.add_parser(name, help=help, description=help, allow_abbrev=False)
    add = made.add_argument
    add("--plugin", action="append", metavar="MODULE|FILE.py", help="load a plugin by name or file")
    add("--no-plugin", action="append", metavar="NAME", help="leave an installed plugin out")
    add("--config", type=Path, metavar="FILE", help="this configuration instead of the nearest")
    return made


def _reading(parser: argparse.ArgumentParser) -> None:
    """The options of verbs that read deployments."""
    add = parser.add_argument
    add("--assume", action="append", metavar="NAME=VALUE",
        help="fill what no file tells: accelerator, engine-version, count, model ...")  # fmt: skip
    add("--exclude", action="append", metavar="GLOB", help="skip files and folders when walking")
    add("--stdin-filename", default="<stdin>", metavar="NAME", help="the name of `-` in messages")


def _check(verbs: argparse._SubParsersAction[Parser]) -> None:
    check = _verb(verbs, "check", "check files and folders")
    _reading(check)
    check.add_argument("paths", nargs="+", metavar="PATH", help="files, folders, or - for stdin")
    add = check.add_argument
    add("--select", metavar="RULES", help="only these rules or concerns, by comma")
    add("--extend-select", metavar="RULES", help="these as well")
    add("--ignore", metavar="RULES", help="not these rules or concerns")
    add("--format", metavar="NAME", help="text, concise, json, or a plugin's own")
    add("--output", action="append", metavar="FORMAT=FILE", help="write a report to a file as well")
    add("--color", choices=("auto", "always", "never"), default="auto", help="colour of text")
    add("--strict", action="store_true", default=None, help="warnings fail the run too")
    add("--quiet", "-q", action="store_true", help="errors only, no closing line")
    add("--show-passed", action="store_true", help="list the checks that passed")
    add("--show-files", action="store_true", help="list the files and what they were taken as")
    add("--skip-unclaimed", action="store_true",
        help="a given file that is no deployment is no error")  # fmt: skip


def _fit(fit: argparse.ArgumentParser) -> None:
    add = fit.add_argument
    add("model", metavar="MODEL", help="a model's name, or the path of its config.json")
    add("--on", metavar="ACCELERATOR", help="an accelerator or instance type")
    add("--count", metavar="N", help="devices of one replica")
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


def _models(models: argparse.ArgumentParser) -> None:
    add = models.add_argument
    add("action", choices=("add",), help="write a checkpoint's facts into the catalogue")
    add("model", metavar="PATH|ID", help="a folder with config.json, or a .gguf file")
    add("--name", metavar="NAME", help="what specs call it, instead of the folder's name")
    add("--to", type=Path, metavar="FILE", help="this catalogue instead of the configured one")
    add("--hub", action="store_true",
        help="read an id from the Hugging Face hub: configuration and headers")  # fmt: skip
    add("--revision", metavar="R", help="the hub's branch, tag or commit")
    add("--force", action="store_true", help="replace a record of that name")


def _takes_value(whole: argparse.ArgumentParser) -> frozenset[str]:
    """Every option of every verb that is followed by a word."""
    subparsers = next(one for one in whole._actions if isinstance(one.choices, dict))
    assert isinstance(subparsers.choices, dict)
    return frozenset(
        option
        for verb in subparsers.choices.values()
        for action in verb._actions
        if action.nargs is None
        for option in action.option_strings
    )


def with_verb(whole: argparse.ArgumentParser, arguments: Sequence[str]) -> list[str]:
    """The arguments with the verb in front: `capcheck PATH` means `capcheck check PATH`."""
    with_value = _takes_value(whole)
    skip = False
    for place, word in enumerate(arguments):
        if skip:
            skip = False
        elif word in ("-h", "--help", "--version"):
            return list(arguments)
        elif word.startswith("-") and word not in ("-", "--"):
            skip = word in with_value
        elif word in VERBS:
            return [word, *arguments[:place], *arguments[place + 1 :]]
        else:
            break
    return ["check", *arguments]
