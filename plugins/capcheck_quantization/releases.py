"""Release ranges of data rows, whose edges are known to lie between two releases."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Version = tuple[int, ...]


def version(text: str) -> Version:
    """The numbers of a release: "0.11.2" is (0, 11, 2)."""
    return tuple(int(part) for part in text.split("."))


def holds(row: Mapping[str, Any], release: Version | None) -> bool | None:
    """Whether a row is of this release; None when that is not known.

    `since` is [last release without it, first release with it] and `until` [last with it, first
    without]; a missing one is unbounded. An unknown release leaves a bounded row open.
    """
    answers = [
        _after(release, row["since"]) if row.get("since") else True,
        _before(release, row["until"]) if row.get("until") else True,
    ]
    if False in answers:
        return False
    return None if None in answers else True


def _after(release: Version | None, edge: tuple[str, str]) -> bool | None:
    if release is None:
        return None
    if release >= version(edge[1]):
        return True
    return None if release > version(edge[0]) else False


def _before(release: Version | None, edge: tuple[str, str]) -> bool | None:
    after = _after(release, edge)
    return None if after is None else not after
