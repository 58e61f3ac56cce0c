"""Uploads whose configuration was not seen, and may say another length than their base."""

from __future__ import annotations

import pytest

from capcheck.testing import run

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: 01-ai/Yi-1.5-34B-Chat-16K}
hardware: {accelerator: nvidia/h200-sxm-141gb, count: 1}
engine: {name: vllm, version: "0.11.0", args: {%s}}
"""


def test_without_a_length_it_is_unknown() -> None:
    (one,) = run({"one.yaml": SPEC % ""}).deployments
    assert one.resolved["max_model_len"] is None
    reasons = {check.rule: check.reason or "" for check in one.checks if check.verdict == "skip"}
    assert "may be 16384" in reasons["kv-cache/one-request"]


@pytest.mark.parametrize(("length", "findings"), [(4096, 0), (16384, 0), (32768, 1)])
def test_a_length_is_held_against_what_it_may_say(length: int, findings: int) -> None:
    report = run({"one.yaml": SPEC % f"max_model_len: {length}"}, select=("options",))
    assert [one.severity for one in report.findings] == ["warning"] * findings
