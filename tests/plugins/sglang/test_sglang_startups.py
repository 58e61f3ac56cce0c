"""What SGLang printed at start on real hardware, against what is predicted from the deployment.

Tolerances: tokens from the deployment alone within 8 %, half of them within 3 %, or the band holds
them; with the printed free memory known within 1 %; start-ups that worked are no error, those that
failed are one.
"""

from __future__ import annotations

import json
import statistics
from pathlib import Path
from typing import Any

import pytest
from sglang_specs import spec

from capcheck.quantity import GIB
from capcheck.testing import Bench

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "startups.jsonl").read_text(encoding="utf-8").splitlines()
]
WORKED = [row for row in ROWS if row["worked"]]
MEMORY_RULES = ("weights/fit", "kv-cache/one-request", "kv-cache/startup-peak")


def _spec(row: dict[str, Any]) -> str:
    return spec(row["model"], row["accelerator"], row["devices"], row["release"], **row["args"])


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_only_starts_that_failed_are_errors(bench: Bench, row: dict[str, Any]) -> None:
    (outcome,) = bench.outcomes(_spec(row))
    failed = [
        rule
        for rule in MEMORY_RULES
        for judged in outcome.judged[rule]
        if judged.result.verdict == "fail"
    ]
    assert failed == ([] if row["worked"] else ["weights/fit"])


@pytest.mark.parametrize("row", WORKED, ids=lambda row: str(row["id"]))
def test_tokens_from_the_deployment_alone(bench: Bench, row: dict[str, Any]) -> None:
    (case,) = bench.cases(_spec(row))
    band = case.estimate("kv_cache_tokens")
    assert band.mid == pytest.approx(row["tokens"], rel=0.08)
    assert band.low <= row["tokens"] <= band.high


def test_half_of_the_tokens_are_within_three_percent(bench: Bench) -> None:
    unlike = {(row["model"], row["release"]): row for row in WORKED}.values()
    errors = [
        abs(bench.cases(_spec(row))[0].estimate("kv_cache_tokens").mid / row["tokens"] - 1)
        for row in unlike
    ]
    assert statistics.median(errors) < 0.03


@pytest.mark.parametrize(
    "row", [row for row in WORKED if row["after_gib"]], ids=lambda row: str(row["id"])
)
def test_tokens_with_printed_memory(bench: Bench, row: dict[str, Any]) -> None:
    if row["free_gib"] is None:
        pytest.skip("free memory before loading was not printed")
    (case,) = bench.cases(_spec(row))
    share = case.plan.memory.get().amount
    pool = (row["after_gib"] - row["free_gib"] * (1 - share)) * GIB
    layout = case.kv()
    assert layout.logged_tokens(layout.blocks(pool)) == pytest.approx(row["tokens"], rel=0.01)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row["id"]))
def test_logged_weights_lie_in_the_band(bench: Bench, row: dict[str, Any]) -> None:
    if row["weights_gib"] is None:
        pytest.skip("weights were not printed")
    (case,) = bench.cases(_spec(row))
    band = case.estimate("weights_bytes")
    assert band.low / GIB - 0.01 <= row["weights_gib"] <= band.high / GIB + 0.01
