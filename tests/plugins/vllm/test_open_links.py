"""Options that an unread file may hold are unknown, never defaults."""

from __future__ import annotations

import pytest

from capcheck.testing import run

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/l4, count: 1}
engine: {name: vllm, version: "0.11.0"%s}
"""


@pytest.mark.parametrize("link", [", config: none.yaml}", "}\nfrom: none.yaml"])
def test_a_link_that_leads_nowhere_leaves_options_open(link: str) -> None:
    text = SPEC.replace('"0.11.0"%s}', f'"0.11.0"{link}')
    report = run({"new.yaml": text})
    assert [one.rule for one in report.findings] == ["spec/link"]
    assert report.deployments[0].resolved["max_model_len"] is None


def test_without_a_link_the_defaults_hold() -> None:
    report = run({"new.yaml": SPEC % ""})
    assert report.deployments[0].resolved["max_model_len"] == 131072
