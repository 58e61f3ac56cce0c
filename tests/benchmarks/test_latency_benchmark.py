"""The load model against thirty measurements drawn at random, through specs and the public API.

serving_rows.csv holds rows of aiconfigurator-core 0.12.0 (Apache-2.0), cleaned. Tolerances are
what the whole set shows, with room for the draw: TPOT 6 % in the median and nine in ten within
20 %, TTFT 17 % in the median and nine in ten within 60 %.
"""

from __future__ import annotations

import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
ROWS = HERE / "serving_rows.csv"


@pytest.fixture(scope="module")
def modules() -> Any:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        import serving_cases
        import serving_fit
        import serving_score
    finally:
        sys.path.remove(str(BENCHMARKS))
    return serving_cases, serving_score, serving_fit


@pytest.fixture(scope="module")
def scores(modules: Any) -> list[Any]:
    cases, score, _ = modules
    found, missing = score.scored(list(cases.rows(ROWS)))
    assert not missing
    return list(found)


def ranked(errors: list[float], share: float) -> float:
    return sorted(map(abs, errors))[int(share * len(errors))]


def test_time_per_output_token(scores: list[Any]) -> None:
    errors = [one.tpot_error for one in scores]
    assert len(errors) == 30
    assert ranked(errors, 0.5) < 0.10
    assert ranked(errors, 0.9) < 0.25


def test_time_to_first_token(scores: list[Any]) -> None:
    errors = [one.ttft_error for one in scores]
    assert ranked(errors, 0.5) < 0.25
    assert ranked(errors, 0.9) < 0.60


def test_bands_hold_what_was_measured(scores: list[Any]) -> None:
    tpot = sum(one.tpot.low <= one.row.tpot <= one.tpot.high for one in scores)
    ttft = sum(one.ttft.low <= one.row.ttft <= one.ttft.high for one in scores)
    assert tpot >= 24
    assert ttft >= 24


def test_a_row_becomes_the_layout_that_ran(modules: Any) -> None:
    cases, _, _ = modules
    row = next(cases.rows(ROWS))._replace(
        engine="tensorrt-llm", tensor=1, data=8, expert=8, devices=8, version="1.2.0rc2"
    )
    spec = cases.spec_of(row)
    assert '"enable_attention_dp": true' in spec
    assert '"tensor_parallel_size": 8' in spec
    assert '"moe_expert_parallel_size": 8' in spec


def test_the_fit_predicts_what_the_estimates_say(modules: Any, scores: list[Any]) -> None:
    """Its replay has the same server, traffic and constants as the public estimates."""
    from capcheck.testing import Bench

    cases, _, fit = modules
    rows = [row for row in cases.rows(ROWS) if row.version[:1].isdigit()][:6]
    tpot = {one.row.id: one.tpot.mid for one in scores}
    for sample in fit.served(rows, (), Bench()):
        predicted, _ = fit.predict(sample, {})
        assert predicted == pytest.approx(tpot[sample.row.id], rel=1e-6)


def test_the_benchmark_prints_its_figures(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "serving", str(ROWS)])
    runpy.run_path(str(BENCHMARKS / "accuracy.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert printed.splitlines()[2].startswith("| all | 30 |")


def test_the_calibration_runs_on_a_few_rows(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["calibrate_serving.py", str(ROWS), "--rounds", "1"])
    runpy.run_path(str(BENCHMARKS / "calibrate_serving.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "one model left out" in printed
    assert "weight_efficiency" in printed
