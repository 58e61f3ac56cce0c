"""What the verbs that read files share: given paths by root, and standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from capcheck.cli import FAULT, OK, session_at, tell
from capcheck.deployment import Draft
from capcheck.files import is_dir, root_of, shown
from capcheck.intake import STANDARD_INPUT
from capcheck.printable import printable
from capcheck.session import Session
from capcheck.source import LIMITS

STDIN = "-"


def _stdin_path(given: argparse.Namespace) -> Path | None:
    """The file that standard input stands for; None when no name is given."""
    return None if given.stdin_filename == STANDARD_INPUT else Path(given.stdin_filename)


def _root(given: argparse.Namespace, path: str) -> Path:
    if path != STDIN:
        return root_of(Path(path))
    named = _stdin_path(given)
    folder = named.parent if named is not None else Path.cwd()
    return root_of(folder if is_dir(folder) else Path.cwd())


def by_root(given: argparse.Namespace) -> dict[Path, list[str]]:
    """The given paths by the root that each lies below, in their order."""
    found: dict[Path, list[str]] = {}
    for path in given.paths:
        found.setdefault(_root(given, path), []).append(path)
    return found


def standard_input(given: argparse.Namespace, root: Path) -> tuple[str, bytes]:
    """The name that standard input has in messages, and what it holds, as far as it is read."""
    named = _stdin_path(given)
    name = STANDARD_INPUT if named is None else shown(named, root)
    return name, sys.stdin.buffer.read(LIMITS.bytes + 1)


class Read(NamedTuple):
    """One root's session and the drafts of the given paths."""

    session: Session
    drafts: list[Draft]


def read_all(given: argparse.Namespace) -> Iterator[Read]:
    """Each root's session with its drafts. What is wrong with the input goes to stderr."""
    for root, paths in by_root(given).items():
        session = session_at(given, root)
        stdin = standard_input(given, root) if STDIN in paths else None
        drafts = session.intake.read([Path(path) for path in paths if path != STDIN], stdin)
        for problem in session.intake.problems:
            tell(f"{problem.place.start}: {problem.message} [{problem.rule}]")
        yield Read(session, drafts)


def code_of(read: Sequence[Read]) -> int:
    """2 when there was no deployment to speak of, or a plugin failed; else 0."""
    faults = [fault for one in read for fault in one.session.guard.errors]
    for fault in faults:
        tell(f"plugin {fault.plugin}: {fault.message}")
    return FAULT if faults or not any(one.drafts for one in read) else OK


def say(line: str) -> None:
    """One line on stdout, safe for a terminal whatever file it speaks of."""
    print(printable(line.rstrip()))
