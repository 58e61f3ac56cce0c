"""Every model of the catalogue in a few layouts, releases and accelerators: no crash, no nonsense.

Each model meets a few points of the grid, the same ones in every run; the whole grid is
`python benchmarks/sweep.py`.
"""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any

import pytest

SWEEP = runpy.run_path(str(Path(__file__).parents[3] / "benchmarks" / "sweep.py"))
chosen, models, GRID = SWEEP["chosen"], SWEEP["models"], SWEEP["GRID"]
EACH = 2
PARTS = 8


@pytest.fixture(scope="module")
def sweep() -> Any:
    return SWEEP["Sweep"]()


@pytest.mark.parametrize("part", range(PARTS))
def test_no_model_breaks_the_accounting(sweep: Any, part: int) -> None:
    before = sweep.counted["weights_bytes"]
    for model in models(sweep.bench)[part::PARTS]:
        for point in chosen(model, EACH):
            sweep.add(model, point)
    assert sweep.faults == []
    assert sweep.counted["weights_bytes"] > before + 50


def test_the_points_cover_the_grid(sweep: Any) -> None:
    points = [point for model in models(sweep.bench) for point in chosen(model, EACH)]
    assert len(GRID) == 4 * 2 * 2 * 4 * len(SWEEP["ACCELERATORS"])
    assert {(p.tensor, p.pipeline, p.release) for p in points} == {
        (p.tensor, p.pipeline, p.release) for p in GRID
    }
    assert {p.accelerator for p in points} == set(SWEEP["ACCELERATORS"])
    assert list(chosen("a/b", EACH)) == list(chosen("a/b", EACH))
