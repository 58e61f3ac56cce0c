"""The KV cache: does one request fit, does the declared load, is the length asked for."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import Case, Estimate, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_kv_cache import load, rules

    return (*rules.ALL, *load.LOAD_RULES)


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """kv-cache/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())


@hookimpl
def capcheck_estimates() -> Iterable[Estimate]:
    """The tokens that the declared load keeps alive."""
    from capcheck_kv_cache import load

    return load.LOAD_ESTIMATES


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """What is assumed of lengths that are declared by one figure."""
    return (Path(__file__).parent / "terms.jsonl",)
