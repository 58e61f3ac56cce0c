"""Ledger lines beside the profile: stated pools, what others hold, what is free at the start."""

from __future__ import annotations

import pytest
from vllm_cases import LLAMA, case_of

from capcheck.quantity import GIB
from capcheck.testing import Bench


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def test_an_override_states_the_pool(bench: Bench) -> None:
    """1,000 blocks of 16 tokens x 128 KiB are 1.95 GiB, whatever was profiled."""
    case = case_of(bench, "0.11.0", {"max_model_len": 8192, "num_gpu_blocks_override": 1000})
    assert case.estimate("kv_cache_bytes").mid / GIB == pytest.approx(1.953, abs=0.001)
    assert case.estimate("kv_cache_tokens").mid == 16000
    assert case.ledger(case.terms()).left > 30 * GIB


def test_a_small_override_refuses_a_long_request(bench: Bench) -> None:
    spec = (
        "apiVersion: capcheck/v1\nkind: Deployment\nname: small\n"
        f"model: {{id: {LLAMA}}}\n"
        "hardware: {accelerator: nvidia/h100-sxm5-80gb}\n"
        "engine: {name: vllm, version: 0.11.0, "
        "args: {max_model_len: 8192, num_gpu_blocks_override: 500}}\n"
    )
    (outcome,) = bench.outcomes(spec)
    result = outcome.judged["kv-cache/one-request"][0].result
    assert result.verdict == "fail"
    assert "the KV cache = 1.0 GiB" in result.words.arithmetic


@pytest.mark.parametrize(
    ("release", "counts", "asks"), [("0.8.5", True, False), ("0.9.1", False, True)]
)
def test_memory_in_use(bench: Bench, release: str, counts: bool, asks: bool) -> None:
    """V1 counted everything in use until 0.9.0; from 0.9.1 it asks for its budget to be free."""
    used = {"in_use": "2GiB"}
    case = case_of(bench, release, {"max_model_len": 8192}, hardware=used)
    ledger = case.ledger(case.terms())
    assert (ledger.bytes_of("other processes") == 2 * GIB) is counts
    assert (ledger.taken is not None) is asks


def test_the_free_memory_of_a_fourfold_start(bench: Bench) -> None:
    """Logged: 184.31 GiB in all, 181.84 free with four ranks of 0.26.0; 2.47 were taken."""
    case = case_of(bench, "0.26.0", {"tensor_parallel_size": 4}, hardware={"count": 4})
    band = case.spread_of(lambda t: case.ledger(t).taken or 0.0).band
    assert band.low <= 2.47 * GIB <= band.high
