"""What TensorRT-LLM logged at start on real hardware, against what is predicted.

Six public reports. Tolerances: the KV pool within 1 % on one device of a data centre, within 3 %
where an engine is built; weights within 1 %; tokens as the pool.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from trtllm_specs import bench, case_of, spec

from capcheck import GIB

ROWS = [
    json.loads(line)
    for line in (Path(__file__).parent / "startups.jsonl").read_text(encoding="utf-8").splitlines()
]
START_RULES = (
    "weights/fit", "kv-cache/one-request", "kv-cache/startup-peak", "options/unknown",
    "options/removed", "options/value", "options/conflict", "options/context-limit",
    "sharding/divisible",
)  # fmt: skip


def _row(row: dict[str, Any]) -> dict[str, Any]:
    return {"model": row["model"], "accelerator": row["accelerator"], "version": row["release"],
            "args": row["args"]}  # fmt: skip


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_the_logged_pool(row: dict[str, Any]) -> None:
    case = case_of(**_row(row))
    tolerance = 0.03 if row["id"] == "rtx-5090-engine" else 0.01
    pool, tokens = case.estimate("kv_cache_bytes"), case.estimate("kv_cache_tokens")
    assert pool.mid / GIB == pytest.approx(row["kv_gib"], rel=tolerance)
    assert pool.low <= row["kv_gib"] * GIB <= pool.high
    assert tokens.mid == pytest.approx(row["kv_tokens"], rel=tolerance)


@pytest.mark.parametrize("row", [row for row in ROWS if row["weights_gib"]],
                         ids=lambda row: str(row["id"]))  # fmt: skip
def test_weights(row: dict[str, Any]) -> None:
    weights = case_of(**_row(row)).estimate("weights_bytes").mid / GIB
    assert weights == pytest.approx(row["weights_gib"], rel=0.01)


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_a_start_that_worked_is_no_error(row: dict[str, Any]) -> None:
    (outcome,) = bench().outcomes(spec(**_row(row)))
    for rule in START_RULES:
        assert all(one.result.verdict != "fail" for one in outcome.judged[rule])
