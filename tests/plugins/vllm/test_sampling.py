"""The sampler that profiling runs, by release, device and row count."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_cases import H100, MI300X, case_of

from capcheck.quantity import GIB
from capcheck.testing import Bench, run


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


FLAG = "VLLM_USE_FLASHINFER_SAMPLER"


@pytest.mark.parametrize(
    ("release", "args", "env", "accelerator", "sampler"),
    [
        ("0.7.3", {}, {}, H100, "torch"),
        ("0.10.2", {}, {}, H100, "either"),
        ("0.10.2", {}, {FLAG: "0"}, H100, "torch"),
        ("0.10.2", {}, {FLAG: "1"}, H100, "flashinfer"),
        ("0.10.2", {}, {}, MI300X, "torch"),
        ("0.11.1", {}, {}, H100, "torch"),
        ("0.16.0", {}, {FLAG: "1"}, H100, "flashinfer"),
        ("0.17.0", {}, {}, H100, "triton"),
        ("0.17.0", {"max_num_seqs": 7}, {}, H100, "torch"),
        ("0.17.0", {"max_num_seqs": 8}, {}, H100, "triton"),
        ("0.21.0", {}, {}, H100, "flashinfer"),
        ("0.21.0", {}, {FLAG: "0"}, H100, "triton"),
        ("0.21.0", {}, {}, "nvidia/v100-sxm2-32gb", "triton"),
        ("0.21.0", {}, {}, MI300X, "triton"),
    ],
)
def test_by_release(
    bench: Bench,
    release: str,
    args: dict[str, Any],
    env: dict[str, str],
    accelerator: str,
    sampler: str,
) -> None:
    case = case_of(bench, release, args, env=env, accelerator=accelerator)
    assert case.facts["sampler"] == sampler


def test_sorting_1024_rows_of_qwen3_4b_took_5_59_gib(bench: Bench) -> None:
    """Logged by 0.10.2 on an H100; 38.3 B x 1,024 x 151,936 + 2 B x 8,192 x 2,560."""
    args = {"max_model_len": 40960, "max_num_batched_tokens": 8192}
    case = case_of(bench, "0.10.2", args, model="Qwen/Qwen3-4B", env={FLAG: "0"})
    assert case.estimate("activation_bytes").mid / GIB == pytest.approx(5.59, abs=0.02)


MANIFEST = """
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
  containers:
  - name: vllm
    image: vllm/vllm-openai:v0.10.2
    args: [--model, meta-llama/Llama-3.1-8B-Instruct, --max-model-len, "8192"]
    resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_the_projects_image_has_flashinfer() -> None:
    """So its sampler is known: a narrower band than where only the release is."""
    report = run({"pod.yaml": MANIFEST})
    peak = report.deployments[0].estimates["activation_bytes"].band
    assert peak.high < 3 * GIB  # sorting would take 4.7
