"""What the verbs that read files share: given paths by root, and standard input."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from capcheck.files import is_dir, root_of, shown
from capcheck.intake import STANDARD_INPUT

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


def standard_input(given: argparse.Namespace, root: Path) -> tuple[str, str]:
    """The name that standard input has in messages, and its text."""
    named = _stdin_path(given)
    name = STANDARD_INPUT if named is None else shown(named, root)
    return name, sys.stdin.buffer.read().decode("utf-8", "replace")


def lines_of(text: str) -> Iterator[str]:
    """The lines of a text, each safe for a terminal."""
    from capcheck.printable import printable

    return (printable(line) for line in text.split("\n"))
