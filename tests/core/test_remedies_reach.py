"""How many devices a remedy may ask for."""

from __future__ import annotations

from typing import Any

import pytest
from core_fakes import case_of
from test_remedies import found, rule_of, spec

from capcheck.case import Case
from capcheck.findings import Fail, Pass
from capcheck.terms import Terms


@pytest.mark.parametrize(
    ("least", "have", "shown"),
    [
        (4, 1, ("tensor: 4 with count: 4 passes",)),
        (32, 4, ()),  # tensor: 32 would do
        (32, 16, ("tensor: 32 with count: 32 passes",)),
    ],
)
def test_a_server_is_not_spread_over_what_nobody_gives_it(
    least: int, have: int, shown: tuple[str, ...]
) -> None:
    def enough(case: Case, t: Terms) -> Any:
        return Pass() if case.plan.devices >= least else Fail(case.plan.tensor, "too few")

    case = case_of(spec(count=have).replace("args: {", f"args: {{tensor: {have}, "))
    told = found(case, rule_of("weights/few", enough, ("tensor", "pipeline")))
    assert told == shown


@pytest.mark.parametrize(("nodes", "shown"), [(1, True), (2, False)])
def test_the_nodes_of_a_server_do_not_grow(nodes: int, shown: bool) -> None:
    def enough(case: Case, t: Terms) -> Any:
        return Pass() if case.plan.devices >= 8 else Fail(case.plan.tensor, "too few")

    case = case_of(
        spec(count=2)
        .replace("args: {", "args: {tensor: 2, ")
        .replace("{count: 2}", f"{{count: 2, nodes: {nodes}}}")
    )
    told = found(case, rule_of("weights/few", enough, ("tensor",)))
    assert told == (("tensor: 8 with count: 8 passes",) if shown else ())
