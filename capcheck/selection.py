"""Which rules apply where: selectors, their weights, and patterns of files."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from typing import TypeVar

ALL = "ALL"
PLUGIN_ERROR = "capcheck/plugin-error"
INPUT_CONCERNS = frozenset({"spec", "capcheck"})  # what is wrong with the input itself

T = TypeVar("T")


def weight(selector: str, rule: str) -> int:
    """How closely a selector names a rule: 0 ALL, 1 its concern, 2 itself, -1 not at all."""
    if selector == rule:
        return 2
    if selector == rule.partition("/")[0]:
        return 1
    return 0 if selector == ALL else -1


def heaviest(selectors: Iterable[str], rule: str) -> int:
    """The weight of the closest selector, -1 when none names the rule."""
    return max((weight(one, rule) for one in selectors), default=-1)


def closest_entry(table: Mapping[str, T], rule: str) -> T | None:
    """The entry of the selector that names the rule most closely."""
    best = max(table, key=lambda selector: weight(selector, rule), default=None)
    return table[best] if best is not None and weight(best, rule) >= 0 else None


def selected(rule: str, select: Iterable[str], ignore: Iterable[str]) -> bool:
    """The closest selector decides; `ignore` wins ties.

    Findings about the input itself are always reported unless `ignore` names them: choosing some
    checks must not hide that a file could not be read. A plugin's fault cannot be ignored.
    """
    if rule == PLUGIN_ERROR:
        return True
    chosen, ignored = heaviest(select, rule), heaviest(ignore, rule)
    if rule.partition("/")[0] in INPUT_CONCERNS:
        return ignored < 1 or chosen > ignored
    return chosen > ignored


def matches(glob: str, path: str) -> bool:
    """Whether a path (relative to the root) or a folder above it fits a pattern.

    `*` stays within a folder, `**` crosses folders; a pattern without a slash is held against
    each name on the way.
    """
    glob = glob.removeprefix("./").rstrip("/")
    steps = path.split("/")
    if "/" not in glob:
        return any(fnmatchcase(step, glob) for step in steps)
    reached = {0}  # how many steps the pattern so far may have taken
    for piece in glob.removeprefix("/").split("/"):
        if piece == "**":
            reached = set(range(min(reached, default=len(steps) + 1), len(steps) + 1))
        else:
            reached = {
                at + 1 for at in reached if at < len(steps) and fnmatchcase(steps[at], piece)
            }
    return any(reached)
