"""Published benchmark figures drawn at random from each class, through the public benchmark.

bench_points.jsonl names its sources line by line. Tolerances are what the whole set shows, with
room for the draw: batch-1 decoding 5 % in the median and nine in ten within 15 %, lone prompts
10 % and 30 %, throughput 10 % and 40 %.
"""

from __future__ import annotations

import json
import runpy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from capcheck.testing import Bench

HERE = Path(__file__).parent
BENCHMARKS = HERE.parents[1] / "benchmarks"
POINTS = HERE / "bench_points.jsonl"


def imported(name: str) -> ModuleType:
    sys.path.insert(0, str(BENCHMARKS))
    try:
        return __import__(name)
    finally:
        sys.path.remove(str(BENCHMARKS))


@pytest.fixture(scope="module")
def scores() -> list[Any]:
    found, missing = imported("bench_score").scored(imported("bench_cases").points(POINTS))
    assert not missing
    return list(found)


def ranked(scores: list[Any], tables: tuple[str, ...], share: float) -> float:
    pick = imported("bench_score").table
    sizes = sorted(abs(one.error) for name in tables for one in pick(name, scores))
    assert len(sizes) >= 6
    return float(sizes[int(share * len(sizes))])


@pytest.mark.parametrize(
    ("tables", "median", "ninety"),
    [
        (("batch-1 decode",), 0.10, 0.25),
        (("prefill",), 0.20, 0.45),
        (("throughput of a batch", "throughput at full load"), 0.20, 0.60),
    ],
)
def test_errors_are_as_small_as_told(
    scores: list[Any], tables: tuple[str, ...], median: float, ninety: float
) -> None:
    assert ranked(scores, tables, 0.5) < median
    assert ranked(scores, tables, 0.9) < ninety


def test_bands_cover_what_was_measured(scores: list[Any]) -> None:
    pick = imported("bench_score").table
    chosen = [one for name in ("decode", "prefill") for one in pick(name, scores)]
    assert sum(one.covered for one in chosen) / len(chosen) >= 0.85


def test_no_prediction_is_below_what_physics_allows(scores: list[Any]) -> None:
    pick = imported("bench_score").table
    for one in pick("batch-1 decode", scores):
        case = imported("bench_cases").case_of(Bench(), one.point)
        # Weights of a mixture are read in part: at least an eighth of Mixtral's experts.
        share = 0.02 if case.model.get("model").architecture.experts else 0.85
        part, devices = case.accelerator.get("accelerator"), case.plan.tensor.get("tensor")
        bits = case.model.get("model").scheme.get("scheme")
        width = bits.bits / 8.0 if bits else 2.0
        read = case.model.get("model").architecture.parameters * width * share
        assert one.band.mid > read / (part.bandwidth * devices)


def test_a_fixed_batch_is_replayed_without_its_prompts() -> None:
    cases = imported("bench_cases")
    point = next(one for one in cases.points(POINTS) if one.kind == "decode" and one.requests == 1)
    made = json.loads(cases.spec_of(point._replace(requests=8)))
    assert made["workload"]["prefix_hit_rate"] == 1.0
    assert made["workload"]["concurrency"] == 8
    assert (
        "prefix_hit_rate" not in json.loads(cases.spec_of(point._replace(cached=0.0)))["workload"]
    )


def test_stacks_without_a_plugin_name_no_engine() -> None:
    cases = imported("bench_cases")
    for point in cases.points(POINTS):
        engine = json.loads(cases.spec_of(point))["engine"]
        assert ("name" in engine) == (point.stack in cases.ENGINES)


def test_the_benchmark_prints_its_tables(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(BENCHMARKS))
    monkeypatch.setattr(sys, "argv", ["accuracy.py", "bench", str(POINTS), "--markdown"])
    runpy.run_path(str(BENCHMARKS / "accuracy.py"), run_name="__main__")
    printed = capsys.readouterr().out
    assert "### Batch-1 decode" in printed
    assert "| GDDR, llama.cpp |" in printed
    count = len(POINTS.read_text(encoding="utf-8").splitlines())
    assert f"{count} of {count} points; not predicted: {{}}" in printed


def test_solving_recovers_known_constants() -> None:
    solve = imported("least_squares").solve
    # 2x + y = 5, x + 3y = 10
    assert solve([[2.0, 1.0], [1.0, 3.0]], [5.0, 10.0]) == pytest.approx([1.0, 3.0])


def test_a_fit_finds_the_efficiency_that_figures_were_made_with() -> None:
    fit, cases, squares = (imported(name) for name in ("bench_fit", "bench_cases", "least_squares"))
    key = squares.key_of(
        "serving.weight_efficiency", {"memory_class": "gddr", "weight_bits": "<=6"}
    )
    known = {one.key: one for one in squares.priors(BENCHMARKS / "bench_priors.jsonl")}
    prior = known[key]._replace(factor=10.0)  # says next to nothing
    decoding = [one for one in cases.points(POINTS) if one.tpot is not None]
    found = fit.samples(decoding, [prior], Bench())
    assert found
    made = [one._replace(truth=fit.predict(one, {key: 0.7})) for one in found]
    values = squares.fit(
        lambda at, index: fit.rows(made, at, index), [prior], {key: prior.middle}, 12
    )
    assert values[key] == pytest.approx(0.7, rel=1e-2)


def test_refitted_constants_replace_their_lines_and_new_ones_join_their_name() -> None:
    with_terms = imported("calibrate_bench").with_terms
    old = '{"name": "a", "when": {}, "mid": 1}\n{"name": "b", "when": {}, "mid": 2}\n'
    new = [
        {"name": "a", "when": {}, "mid": 3},
        {"name": "a", "when": {"vendor": "amd"}, "mid": 4},
    ]
    lines = [json.loads(line) for line in with_terms(old, new).splitlines()]
    assert [line["mid"] for line in lines] == [3, 4, 2]
