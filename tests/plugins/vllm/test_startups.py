"""What vLLM printed at start on real hardware, against what is predicted from the deployment.

Tolerances: weights of checkpoints whose packing is known within 1 %, or 6 % on AMD; the logged
KV pool inside the 90 % band in nine of ten; no start-up that worked is an error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from capcheck.quantity import GIB
from capcheck.testing import Bench

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "startups.jsonl").read_text(encoding="utf-8").splitlines()
]
MEMORY_RULES = ("weights/fit", "kv-cache/one-request", "kv-cache/startup-peak")


def _spec(row: dict[str, Any]) -> str:
    engine: dict[str, Any] = {"name": "vllm", "args": row["args"]}
    if row["release"]:
        engine["version"] = row["release"]
    return json.dumps(
        {
            "apiVersion": "capcheck/v1",
            "kind": "Deployment",
            "name": row["id"],
            "model": {"id": row["model"]},
            "hardware": {"accelerator": row["accelerator"], "count": row["devices"]},
            "engine": engine,
        }
    )


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_start_that_worked_is_no_error(bench: Bench, row: dict[str, Any]) -> None:
    (outcome,) = bench.outcomes(_spec(row))
    for rule in MEMORY_RULES:
        assert outcome.judged[rule][0].result.verdict != "fail"


@pytest.mark.parametrize(
    "row", [row for row in ROWS if row["weights_gib"]], ids=lambda row: str(row["id"])
)
def test_weights(bench: Bench, row: dict[str, Any]) -> None:
    case = bench.cases(_spec(row))[0]
    # Some logs print one decimal only.
    tolerance = 0.06 if row["accelerator"].startswith("amd/") else 0.01
    weights = case.estimate("weights_bytes").mid / GIB
    assert weights == pytest.approx(row["weights_gib"], rel=tolerance, abs=0.12)


def test_the_logged_pools_lie_in_their_bands(bench: Bench) -> None:
    hits = []
    for row in ROWS:
        if row["kv_gib"] is None:
            continue
        bands = [case.estimate("kv_cache_bytes") for case in bench.cases(_spec(row))]
        low, high = min(one.low for one in bands) / GIB, max(one.high for one in bands) / GIB
        hits.append(low - 0.01 <= row["kv_gib"] <= high + 0.01)
    assert len(hits) >= 30
    assert sum(hits) / len(hits) >= 0.9
