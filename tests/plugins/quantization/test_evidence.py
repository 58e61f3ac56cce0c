"""What counts as quantized after training, and needs an evaluation."""

from __future__ import annotations

import pytest

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: %s}
hardware: {accelerator: nvidia/rtx-4090, count: 1}
engine: {name: ollama, version: "0.11.0"}
"""


@pytest.mark.parametrize(
    ("model", "told"),
    [
        ("openai/gpt-oss-20b", False),
        ("gpt-oss:20b", False),  # its one tag keeps the experts as they were released
        ("llama3.1:8b", True),  # the tag without a type is q4_k_m
        ("llama3.1:8b-instruct-fp16", False),
    ],
)
def test_a_model_in_the_format_of_its_release_needs_no_evaluation(model: str, told: bool) -> None:
    rules = [one.rule for one in check(SPEC % model) if one.severity == "error"]
    assert ("quantization/evidence" in rules) == told
