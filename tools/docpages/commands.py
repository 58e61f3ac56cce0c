"""The command line as Markdown: each verb, its arguments and options, from the parser itself.

The text of `--help` differs between releases of Python, so the parser's own records are read.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from capcheck.arguments import parser
from docpages.blocks import table

HEAD = ("argument or option", "what it does")
Rows = list[tuple[str, str]]


def verbs(top: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    """The parser of each verb, in the order of the help text."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            return dict(action.choices)
    return {}


def summaries(top: argparse.ArgumentParser) -> dict[str, str]:
    """What each verb does, in one line."""
    for action in top._actions:
        if isinstance(action, argparse._SubParsersAction):
            return {one.dest: one.help or "" for one in action._choices_actions}
    return {}


def _value(action: argparse.Action) -> str:
    """How an option's value is called; "" for a flag."""
    if action.nargs == 0:
        return ""
    if action.metavar is not None:
        return " " + str(action.metavar)
    if action.choices is not None:
        return " " + "\\|".join(map(str, action.choices))
    return " " + action.dest.upper()


def _name(action: argparse.Action) -> str:
    value = _value(action)
    if action.option_strings:
        return ", ".join(f"`{one}{value}`".replace("\\|", "|") for one in action.option_strings)
    return f"`{value.strip()}`".replace("\\|", "|")


def _said(action: argparse.Action) -> str:
    """The help, and the default where it is not "nothing given"."""
    text = (action.help or "").replace("%(default)s", str(action.default))
    default = action.default
    if default in (None, False, argparse.SUPPRESS) or not action.option_strings:
        return text
    return f"{text}{'; ' if text else ''}default `{default}`" if default != [] else text


def rows(verb: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """Arguments and options of one verb."""
    for action in verb._actions:
        if isinstance(action, argparse._SubParsersAction | argparse._HelpAction):
            continue
        if action.help != argparse.SUPPRESS:
            yield _name(action), _said(action)


def shared(all_rows: list[Rows]) -> Rows:
    """The options that every verb takes."""
    return [row for row in all_rows[0] if all(row in others for others in all_rows)]


def _usage(name: str, verb: argparse.ArgumentParser) -> str:
    words = ["capcheck", name, "[OPTIONS]"]
    for action in verb._actions:
        if not action.option_strings:
            word = _value(action).strip().replace("\\|", "|")
            many = {"*": f"[{word} ...]", "+": f"{word} [{word} ...]", "?": f"[{word}]"}
            words.append(many.get(str(action.nargs), word))
    return " ".join(words)


def _section(name: str, summary: str, verb: argparse.ArgumentParser, common: Rows) -> str:
    lines = [f"### `capcheck {name}`", "", f"{summary[:1].upper()}{summary[1:]}.", ""]
    lines += ["```text", _usage(name, verb), "```", ""]
    own = [row for row in rows(verb) if row not in common]
    return "\n".join([*lines, table(HEAD, own) if own else "No options of its own."])


def markdown() -> str:
    """What every verb takes, then each verb with its usage and its own options."""
    top = parser()
    found, said = verbs(top), summaries(top)
    common = shared([list(rows(verb)) for verb in found.values()])
    parts = [f"Every verb takes:\n\n{table(HEAD, common)}"]
    parts += [_section(name, said.get(name, ""), verb, common) for name, verb in found.items()]
    return "\n\n".join(parts)
