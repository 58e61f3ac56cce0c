"""`capcheck explain RULE [FILE]`: a rule's page, or what moves its verdict on a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from capcheck.cli import session_of
from capcheck.config import UsageError
from capcheck.findings import Result, Rule
from capcheck.measure import show_bytes, show_seconds
from capcheck.notices import NOTICES
from capcheck.session import Session


def _near(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 2)
    return f"; did you mean {' or '.join(near)}?" if near else ""


def page(session: Session, name: str) -> list[str]:
    """The page of a rule. Raises UsageError with a suggestion."""
    rule = session.rules.get(name)
    if rule is not None:
        return rule_page(rule)
    notice = NOTICES.get(name)
    if notice is None:
        known = [*session.rules, *NOTICES]
        raise UsageError(f"there is no rule {name!r}{_near(name, known)}")
    return [f"{name}: {notice.title}", "", notice.why, "", f"What helps: {notice.fix}"]


def rule_page(rule: Rule) -> list[str]:
    """Title, why, what helps, and both examples."""
    lines = [f"{rule.id}: {rule.title} ({rule.severity}, by {rule.plugin})", "", rule.why, ""]
    lines += [f"What helps: {rule.fix}", "", "Fails:", ""]
    lines += [f"    {line}" for line in rule.fails.strip().splitlines()]
    lines += ["", "Passes:", ""]
    return lines + [f"    {line}" for line in rule.passes.strip().splitlines()]


def _amount(value: float, unit: str) -> str:
    if unit == "B":
        return show_bytes(value)
    return show_seconds(value) if unit == "s" else f"{value:,.2f} {unit}"


def _result_lines(result: Result, label: str) -> Iterator[str]:
    yield f"  {result.verdict}{f' {label}' if label else ''}{f': {result.reason}' if result.reason else ''}"
    if result.words.message:
        yield f"    {result.words.message}"
    if result.words.arithmetic:
        yield f"    arithmetic: {result.words.arithmetic}"
    if result.left is not None:
        ends = " … ".join(_amount(end, result.unit) for end in (result.left.low, result.left.high))
        yield f"    left: {_amount(result.left.mid, result.unit)} ({ends})"
    for name, moved in result.moved_by[:4]:
        yield f"    moved by {name}: {_amount(moved, result.unit)}"
    yield from (f"    help: {line}" for line in result.words.help)


def run(given: argparse.Namespace) -> int:
    """The page; with a file, the rule's verdict there and what moves it most."""
    paths = [Path(path) for path in given.paths]
    session = session_of(given, paths)
    lines = page(session, given.rule)
    if not paths:
        print("\n".join(lines))
        return 0
    rule = session.rules.get(given.rule)
    if rule is None:
        raise UsageError(f"{given.rule} is not a rule of deployments")
    drafts = session.intake.read(paths)
    print(lines[0])
    for draft in drafts:
        resolved = session.resolve(draft)
        print(f"{draft.name} ({draft.place.file}:{draft.place.line})")
        for case in resolved.cases:
            for result in session.results(case):
                if result.rule.id == rule.id:
                    print("\n".join(_result_lines(result, case.label)))
    return 0 if drafts else 2
