"""Decode: time per output token, and whether the offered load is served at all."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Case, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_decode import rules

    return rules.ALL


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """decode/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
