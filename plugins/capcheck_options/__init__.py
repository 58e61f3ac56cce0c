"""Engine options: does this release know them, take their values, and start with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import Case, Fleet, FleetResult, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_options import limits, memory_share, names

    return (*names.ALL, *limits.ALL, *memory_share.ALL)


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """options/*"""
    from capcheck_options import memory_share

    return (*_rules(), *memory_share.FLEET)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """How long servers take to start."""
    return (Path(__file__).parent / "terms.jsonl",)


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())


@hookimpl
def capcheck_check_fleet(fleet: Fleet) -> Iterable[FleetResult]:
    """Servers that share a device."""
    from capcheck_options import memory_share

    return memory_share.over_all(fleet)
