"""The arithmetic that a finding prints comes to what it says."""

from __future__ import annotations

import re

import pytest

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine: {name: ENGINE, version: "VERSION", args: {ARGS}}
"""
SIGNED = re.compile(r"([-+]) (\d+(?:\.\d+)?) (?!GiB left)")


def total(words: str) -> tuple[float, float]:
    """What the terms of "79.2 GiB x 0.90 - 1.0 weights = 70.3 GiB left" sum to, and its result."""
    left, _, right = words.rpartition(" = ")
    start = re.match(r"(\d+\.\d+) GiB(?:[a-z ]*x (\d\.\d+))?", left)
    assert start
    value = float(start[1]) * float(start[2] or 1)
    value += sum(float(sign + number) for sign, number in SIGNED.findall(left))
    return value, float(right.split()[0])


@pytest.mark.parametrize(
    ("engine", "version", "args"),
    [
        ("vllm", "0.11.0", "max_model_len: 8192, kv_cache_memory_bytes: 70000000000"),
        ("vllm", "0.11.0", "max_model_len: 8192, gpu_memory_utilization: 0.2"),
        ("vllm", "0.11.0",
         "max_model_len: 4096, gpu_memory_utilization: 0.25, max_num_seqs: 8192, "
         "max_num_batched_tokens: 8192"),
        ("sglang", "0.5.3", "mem-fraction-static: 0.99, context-length: 8192"),
        ("sglang", "0.5.3", "mem-fraction-static: 0.15, context-length: 8192"),
    ],
)  # fmt: skip
def test_the_terms_sum_to_the_result(engine: str, version: str, args: str) -> None:
    spec = SPEC.replace("ENGINE", engine).replace("VERSION", version).replace("ARGS", args)
    found = [one for one in check(spec) if one.rule == "kv-cache/startup-peak"]
    found += [one for one in check(spec) if one.rule == "weights/fit"]
    assert found
    for one in found:
        printed = one.arithmetic.partition("; ")[2] or one.arithmetic
        value, result = total(printed)
        assert value == pytest.approx(result, abs=0.35), one.arithmetic
