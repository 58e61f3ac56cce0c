"""How long an orchestrator waits: certain only when even the fastest load takes longer."""

from __future__ import annotations

import pytest

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/l40s, count: 1}
engine: {name: vllm, version: "0.11.0", args: {max_model_len: 8192}}
runtime: {startup_seconds: BUDGET}
"""


@pytest.mark.parametrize(
    ("budget", "found"),
    [
        ("5", ["error"]),  # 10 s to start, and 16 GB at 10 GB/s
        ("15s", ["warning"]),
        ("30s", ["warning"]),
        ("300s", []),  # what public manifests give an 8 B model
        ("10min", []),
    ],
)
def test_a_budget_is_held_against_the_weights(budget: str, found: list[str]) -> None:
    findings = check(SPEC.replace("BUDGET", budget), select=("options/environment",))
    assert [one.severity for one in findings] == found


def test_what_is_not_known_is_not_judged() -> None:
    spec = SPEC.replace("BUDGET", "5").replace("meta-llama/Llama-3.1-8B-Instruct", "acme/none")
    assert [one for one in check(spec) if one.rule == "options/environment"] == []


def test_two_nodes_load_half_each() -> None:
    big = SPEC.replace("Llama-3.1-8B-Instruct", "Llama-3.1-70B-Instruct").replace(
        "8192", "8192, tensor_parallel_size: 8, pipeline_parallel_size: 2"
    )
    big = big.replace("nvidia/l40s, count: 1", "nvidia/h100-sxm5-80gb, count: 8, nodes: 2")
    words = {
        nodes: check(big.replace("nodes: 2", f"nodes: {nodes}").replace("BUDGET", "60"),
                     select=("options/environment",))[0].arithmetic
        for nodes in (1, 2)
    }  # fmt: skip
    assert "131.9 GiB of weights" in (words[1] or "")
    assert "66.0 GiB of weights" in (words[2] or "")
