"""What the warm-up left on real hardware, against what is predicted from the deployment.

Four public reports. Their pools lie in the 90 % bands; the middles are within 4 %, or 8 % where
the report does not tell the release.
"""

from __future__ import annotations

from typing import Any

import pytest
from tgi_specs import bench, spec, verdicts

ROWS: list[tuple[str, dict[str, Any], int, float]] = [
    (
        "mistral-7b on an A100 with a prefill step of 32,768",
        {
            "model": "mistralai/Mistral-7B-v0.1", "accelerator": "nvidia/a100-sxm4-80gb",
            "version": "2.0.0",
            "args": {"max_batch_prefill_tokens": 32768, "max_input_length": 8000,
                     "max_total_tokens": 8512},
        },
        425472, 0.04,
    ),
    (
        "mistral-7b on a g5.8xlarge with defaults",
        {"model": "Mistral-7B-Instruct-v0.3", "accelerator": "nvidia/a10g", "version": None},
        43808, 0.08,
    ),
    (
        "llama-2-7b on a 22 GB device, before 1.0 (the accounting of 1.0)",
        {"model": "Llama-2-7b-hf", "accelerator": "nvidia/a10g", "version": "1.0.0"},
        16224, 0.04,
    ),
]  # fmt: skip


@pytest.mark.parametrize(("row", "tokens", "tolerance"), [row[1:] for row in ROWS],
                         ids=[row[0] for row in ROWS])  # fmt: skip
def test_the_inferred_batch_total(row: dict[str, Any], tokens: int, tolerance: float) -> None:
    cases = bench().cases(spec(**row))
    bands = [case.estimate("kv_cache_tokens") for case in cases]
    assert min(band.low for band in bands) <= tokens <= max(band.high for band in bands)
    assert min(abs(band.mid / tokens - 1) for band in bands) <= tolerance


def test_a_server_that_started_is_no_error() -> None:
    for _, row, _, _ in ROWS:
        found = verdicts(**row)
        for rule in ("weights/fit", "kv-cache/one-request", "kv-cache/startup-peak"):
            assert "fail" not in found[rule]


def test_weights_that_fill_the_device_leave_no_warm_up() -> None:
    """Phi-3.5-mini on 8 GB: 7.7 GB of weights, 45 MB were left for 4,096 prompt tokens."""
    found = verdicts(
        "Phi-3.5-mini-instruct", "nvidia/rtx-4060-laptop", version="3.3.0",
        args={"max_batch_prefill_tokens": 4096},
    )  # fmt: skip
    assert found["kv-cache/startup-peak"] == {"fail"}
