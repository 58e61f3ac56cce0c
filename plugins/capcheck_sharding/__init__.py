"""Sharding: what divides, what devices it takes, and what it costs."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Case, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_sharding import over_sharded, rules

    return (*rules.ALL, *over_sharded.ALL)


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """sharding/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
