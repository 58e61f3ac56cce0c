"""The KV cache: does one request fit, does the declared load, is the length asked for."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Case, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_kv_cache import rules

    return rules.ALL


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """kv-cache/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
