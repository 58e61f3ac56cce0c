"""`capcheck list KIND`: what models, accelerators, engines and formats are known."""

from __future__ import annotations

import argparse
import sys

from capcheck.cli import session_of
from capcheck.measure import show_bytes
from capcheck.session import Session


def _accelerators(session: Session) -> list[str]:
    rows = []
    for id in session.catalogue.ids("accelerator"):
        part = session.catalogue.accelerator(id)
        size = part.visible_bytes or part.nominal_bytes * part.visible_factor
        seen = "" if part.visible_bytes else " (nobody measured)"
        rows.append(f"{id:40} {show_bytes(size):>10}{seen:20} {part.name}")
    return rows


def lines(session: Session, kind: str) -> list[str]:
    """One line for each known thing, by name."""
    if kind == "models":
        return list(session.catalogue.ids("model"))
    if kind == "accelerators":
        return _accelerators(session)
    if kind == "engines":
        return sorted(one.name for one in session.resolver.engines)
    return [f"{one.name:20} {one.title}" for one in session.intake.formats]


def run(given: argparse.Namespace) -> int:
    """Print those that hold the pattern."""
    wanted = given.pattern.lower()
    found = [line for line in lines(session_of(given, []), given.kind) if wanted in line.lower()]
    for line in found:
        print(line.rstrip())
    if not found:
        print(f"capcheck: no {given.kind} hold {given.pattern!r}", file=sys.stderr)
        return 1
    return 0
