"""Captured batch sizes and what their memory is charged to, by release."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_cases import H100, MI300X, case_of

from capcheck import Line
from capcheck.quantity import GIB
from capcheck.testing import Bench
from capcheck_vllm import graphs


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


@pytest.mark.parametrize(
    ("release", "args", "pieces", "decodes"),
    [
        ("0.7.3", {"max_num_seqs": 256}, 0, 35),
        ("0.10.2", {"max_num_seqs": 64}, 19, 0),
        ("0.19.0", {"max_num_seqs": 256}, 51, 35),  # logged: 51 and 35
        ("0.26.0", {"max_num_seqs": 1024}, 51, 51),  # logged: 51 and 51
        ("0.26.0", {"max_num_seqs": 8}, 5, 4),
        ("0.20.0", {"max_num_seqs": 16, "max_cudagraph_capture_size": 8}, 4, 4),
        ("0.20.0", {"enforce_eager": True}, 0, 0),
        ("0.20.0", {"max_num_seqs": 16, "enable_lora": True}, 14, 10),
        (
            "0.20.0",
            {"max_num_seqs": 16, "compilation_config": {"cudagraph_mode": "PIECEWISE"}},
            7,
            0,
        ),
        ("0.20.0", {"compilation_config": {"cudagraph_mode": "NONE"}}, 0, 0),
        (
            "0.20.0",
            {"max_num_seqs": 8, "speculative_config": {"method": "ngram",
                                                       "num_speculative_tokens": 3}},
            11,
            5,
        ),
    ],
)  # fmt: skip
def test_captured_sizes(
    bench: Bench, release: str, args: dict[str, Any], pieces: int, decodes: int
) -> None:
    found = graphs.captures(case_of(bench, release, args))
    assert (found.pieces, found.decodes) == (pieces, decodes)


def _line(bench: Bench, release: str, **more: Any) -> Line:
    case = case_of(bench, release, {"max_num_seqs": 256}, **more)
    (line,) = (one for one in case.ledger(case.terms()).lines if one.name == "CUDA graphs")
    return line


def test_the_estimate_counts_from_0_20(bench: Bench) -> None:
    assert not _line(bench, "0.17.1").inside_budget
    assert not _line(bench, "0.19.1").inside_budget
    assert _line(bench, "0.20.0").inside_budget


def test_the_variable_decides_from_0_18(bench: Bench) -> None:
    name = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
    assert _line(bench, "0.18.0", env={name: "1"}).inside_budget
    assert not _line(bench, "0.17.1", env={name: "1"}).inside_budget
    assert not _line(bench, "0.26.0", env={name: "0"}).inside_budget


def test_rocm_measures_from_0_26(bench: Bench) -> None:
    first = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    assert not _line(bench, "0.25.1", accelerator=MI300X, env=first).inside_budget
    assert _line(bench, "0.26.0", accelerator=MI300X, env=first).inside_budget


def test_the_second_runner_measures_from_0_29(bench: Bench) -> None:
    """A dense model on 0.28 has the second model runner, whose trial capture is a stub."""
    assert not _line(bench, "0.28.0").inside_budget
    assert _line(bench, "0.28.0", env={"VLLM_USE_V2_MODEL_RUNNER": "0"}).inside_budget
    assert _line(bench, "0.29.0").inside_budget


@pytest.mark.parametrize(
    ("model", "release", "sequences", "logged_gib"),
    [
        ("microsoft/Phi-3-mini-4k-instruct", "0.19.1", 256, 0.51),
        ("Qwen/Qwen3-Coder-30B-A3B-Instruct", "0.26.1", 16, 0.15),
        ("Qwen/Qwen3.6-27B", "0.18.0", 1024, 1.17),
    ],
)
def test_the_estimate_is_near_what_trial_captures_gave(
    bench: Bench, model: str, release: str, sequences: int, logged_gib: float
) -> None:
    env = {"VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS": "1"}
    env["VLLM_USE_V2_MODEL_RUNNER"] = "0"
    case = case_of(bench, release, {"max_num_seqs": sequences}, model=model, env=env)
    band = case.estimate("cuda_graph_bytes")
    assert band.low <= logged_gib * GIB <= band.high
    assert band.mid == pytest.approx(logged_gib * GIB, rel=0.15)


def test_an_accelerator_without_graphs_captures_none(bench: Bench) -> None:
    case = case_of(bench, "0.20.0", {}, accelerator="google/tpu-v6e")
    assert graphs.captures(case).all == 0
    assert graphs.captures(case_of(bench, "0.20.0", {}, accelerator=H100)).all > 0
