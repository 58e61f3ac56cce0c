"""Thousands of names that are no option cost little, and are not told one by one."""

from __future__ import annotations

import time

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/l40s, count: 1}
engine: {name: vllm, version: "0.11.0", args: {max_model_len: 8192, ARGS}}
"""


def found(count: int) -> list[str]:
    args = ", ".join(f"opt_{number}: 1" for number in range(count))
    told = check(SPEC.replace("ARGS", args), select=("options/unknown",))
    return [one.message for one in told]


def test_twenty_are_told_and_the_others_counted() -> None:
    assert found(21)[-1] == "opt_20 is not an option of vllm 0.11.0"
    many = found(50)
    assert len(many) == 21
    assert many[-1] == "and 30 more names that vllm 0.11.0 does not have"


def test_two_thousand_take_seconds_not_minutes() -> None:
    start = time.process_time()
    assert len(found(2000)) == 21
    assert time.process_time() - start < 15
