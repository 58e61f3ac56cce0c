"""A share of the memory that is not free when the engine starts."""

from __future__ import annotations

import pytest

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: ACCELERATOR, count: 1}
engine:
  name: vllm
  version: "0.20.0"
  args: {max_model_len: 8192, gpu_memory_utilization: SHARE}
"""


@pytest.mark.parametrize(
    ("accelerator", "share", "found"),
    [
        ("nvidia/gb10-dgx-spark", "0.95", ["warning"]),  # 111.4 to 115.3 of 121.6 GiB were free
        ("nvidia/gb10-dgx-spark", "0.9", []),
        ("nvidia/l40s", "0.95", []),
        ("nvidia/l40s", "0.999", ["error"]),
    ],
)
def test_a_system_that_shares_the_memory_takes_its_own(
    accelerator: str, share: str, found: list[str]
) -> None:
    spec = SPEC.replace("ACCELERATOR", accelerator).replace("SHARE", share)
    told = check(spec, select=("options/utilization",))
    assert [one.severity for one in told] == found
