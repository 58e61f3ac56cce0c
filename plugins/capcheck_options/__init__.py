"""Engine options: does this release know them, take their values, and start with them."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import Case, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_options import limits, names

    return (*names.ALL, *limits.ALL)


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """options/*"""
    return _rules()


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """How long servers take to start."""
    return (Path(__file__).parent / "terms.jsonl",)


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
