"""`capcheck explain RULE [FILE]`: a rule's page, or what moves its verdict on a file."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from capcheck.amounts import amount, around
from capcheck.cli import OK, session_of
from capcheck.config import UsageError
from capcheck.findings import Result, Rule
from capcheck.notices import NOTICES
from capcheck.resolve import Resolved
from capcheck.session import Session
from capcheck.verbs.reading import code_of, read_all, say

MOST_MOVERS = 4


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


def _result_lines(result: Result, label: str) -> Iterator[str]:
    reason = f": {result.reason}" if result.reason else ""
    yield f"  {' '.join(filter(None, (result.verdict, label)))}{reason}"
    if result.words.message:
        yield f"    {result.words.message}"
    if result.words.arithmetic:
        yield f"    arithmetic: {result.words.arithmetic}"
    if result.left is not None:
        ends = around(result.left, result.unit)
        yield f"    left: {amount(result.left.mid, result.unit)}{f' ({ends})' if ends else ''}"
    for name, moved in result.moved_by[:MOST_MOVERS]:
        yield f"    moved by {name}: {amount(moved, result.unit)}"


def _verdicts(session: Session, resolved: Resolved, rule: Rule) -> Iterator[str]:
    """The rule's results alternative by alternative, then the verdict over all of them."""
    deployment = resolved.deployment
    yield f"{deployment.name} ({deployment.place.file}:{deployment.place.line})"
    for case in resolved.cases:
        for result in session.checker.results(case, "all"):
            if result.rule is rule:
                yield from _result_lines(result, case.label)
    outcome = session.check(resolved)
    for judged in outcome.judged.get(rule.id, ()):
        if len(resolved.cases) > 1:
            yield f"  in all: {judged.result.verdict}"
        yield from (f"    help: {line}" for line in judged.result.words.help)


def run(given: argparse.Namespace) -> int:
    """The page; with a file, the rule's verdict there and what moves it most."""
    if not given.paths:
        for line in page(session_of(given), given.rule):
            say(line)
        return OK
    read = []
    for one in read_all(given):
        session, drafts = one
        say(page(session, given.rule)[0])
        rule = session.rules.get(given.rule)
        if rule is None:
            raise UsageError(f"{given.rule} is not a rule of deployments")
        for draft in drafts:
            for line in _verdicts(session, session.resolve(draft), rule):
                say(line)
        read.append(one)
    return code_of(read)
