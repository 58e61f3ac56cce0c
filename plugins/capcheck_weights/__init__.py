"""Weights: does a device hold its share, and does loading need more than serving."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Case, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_weights import rules

    return rules.ALL


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """weights/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
