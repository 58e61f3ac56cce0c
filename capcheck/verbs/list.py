"""`capcheck list KIND`: what models, accelerators, engines and formats are known."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from capcheck.catalogue import CatalogueError
from capcheck.cli import FAULT, FINDINGS, OK, session_of, tell
from capcheck.config import UsageError
from capcheck.hardware import Accelerator
from capcheck.measure import show_bytes
from capcheck.session import Session
from capcheck.verbs.reading import say


def _row(part: Accelerator) -> str:
    size = part.visible_bytes or part.nominal_bytes * part.visible_factor
    seen = "" if part.visible_bytes else " (nobody measured)"
    return f"{part.id:40} {show_bytes(size):>10}{seen:20} {part.name}"


def _accelerators(session: Session) -> Iterator[str]:
    for id in session.catalogue.ids("accelerator"):
        try:
            yield _row(session.catalogue.accelerator(id))
        except CatalogueError as wrong:
            session.guard.fault("catalogue", str(wrong))


def _models(session: Session) -> Iterator[str]:
    """The ids; a record of one's own with the file that holds it."""
    own = session.catalogue.own("model")
    for id in session.catalogue.ids("model"):
        yield f"{id:40} {own[id].file.name}" if id in own else id


def lines(session: Session, kind: str) -> list[str]:
    """One line for each known thing, by name."""
    if kind == "models":
        return list(_models(session))
    if kind == "accelerators":
        return list(_accelerators(session))
    if kind == "engines":
        return sorted(" ".join((one.name, *one.names)) for one in session.resolver.engines)
    return [f"{one.name:20} {one.title}" for one in session.intake.formats]


def run(given: argparse.Namespace) -> int:
    """Print those that hold the pattern; 1 when none does, 2 when a plugin failed."""
    session = session_of(given)
    wanted = given.pattern.lower()
    try:
        found = [line for line in lines(session, given.kind) if wanted in line.lower()]
    except CatalogueError as wrong:
        raise UsageError(str(wrong)) from wrong
    for line in found:
        say(line)
    for fault in session.guard.errors:
        tell(f"plugin {fault.plugin}: {fault.message}")
    if session.guard.errors:
        return FAULT
    if not found:
        tell(f"no {given.kind} hold {given.pattern!r}")
    return OK if found else FINDINGS
