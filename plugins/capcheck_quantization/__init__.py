"""Quantization: methods and their layouts, what goes together, and the evidence it takes."""

from __future__ import annotations

from collections.abc import Iterable

from capcheck import Case, PackingSource, Result, Rule, hookimpl


def _rules() -> tuple[Rule, ...]:
    from capcheck_quantization import rules

    return rules.ALL


@hookimpl
def capcheck_quantizations() -> Iterable[PackingSource]:
    """Every method of the catalogue."""
    from capcheck_quantization.source import Methods

    return (Methods(),)


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    """quantization/*"""
    return _rules()


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    """Every rule, guarded one by one."""
    return case.run(*_rules())
