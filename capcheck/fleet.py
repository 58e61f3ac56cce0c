"""Checks over all deployments of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from capcheck.findings import Fail, Pass, Rule, Skip

if TYPE_CHECKING:
    from capcheck.case import Case


class Fleet(NamedTuple):
    """Every deployment's first case, by name and file."""

    cases: tuple[Case, ...]


class FleetResult(NamedTuple):
    """A rule's answer on several deployments; it is reported with `case`'s deployment."""

    rule: Rule
    case: Case
    answer: Fail | Pass | Skip | tuple[Fail, ...]
