"""What hardware and engines differ in beyond their datasheets: peaks, links, power, switches."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck.case import Case
from capcheck.testing import Bench
from capcheck.values import Unknown
from capcheck_serving import works
from capcheck_serving.constants import compute_of, sixteen_bit

RTX_4090 = {"fp32": 82.6e12, "bf16": 165.2e12, "fp16": 165.2e12, "int8": 660.6e12}
RTX_6000_ADA = {"fp32": 91.1e12, "bf16": 364.2e12, "fp16": 364.2e12, "int8": 728.5e12}
P40 = {"fp32": 11.8e12, "fp16": 0.18e12, "int8": 47e12}


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_on(bench: Bench, accelerator: str, count: int = 1, **engine: Any) -> Case:
    document = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "model": {"id": "meta-llama/Meta-Llama-3-8B", "weights": {"precision": "fp16"}},
        "hardware": {"accelerator": accelerator, "count": count},
        "workload": {"prompt_tokens": 512, "output_tokens": 128, "concurrency": 1},
        "engine": engine or {"args": {}},
    }
    return bench.cases(json.dumps(document))[0]


def llama_cpp(bench: Bench, accelerator: str, version: str = "b2900") -> Case:
    arguments = {"n-gpu-layers": 99, "ctx-size": 4096}
    return case_on(bench, accelerator, name="llama.cpp", version=version, args=arguments)


def test_sums_in_16_bit_run_twice_as_fast_on_geforce_alone() -> None:
    # NVIDIA's Ada white paper: RTX 4090, fp16 with fp16 accumulation 330.3, with fp32 165.2
    assert compute_of("fp16", "", RTX_4090) == ("16", 165.2e12)
    assert compute_of("fp16", "", RTX_4090, half_sums=True) == ("16", 330.3e12)
    assert compute_of("fp16", "", RTX_6000_ADA, half_sums=True)[1] == pytest.approx(
        364.2e12, rel=1e-3
    )


def test_parts_slow_in_16_bit_compute_in_32() -> None:
    assert sixteen_bit(P40) == 11.8e12
    assert sixteen_bit(RTX_4090) == 165.2e12
    with pytest.raises(KeyError):
        sixteen_bit({"fp32": 1e13})


def test_llama_cpp_adds_up_in_16_bit(bench: Bench) -> None:
    slow, fast = case_on(bench, "nvidia/rtx-4090"), llama_cpp(bench, "nvidia/rtx-4090")
    ratio = works.work(slow).dense.peak_seconds / works.work(fast).dense.peak_seconds
    assert ratio == pytest.approx(2.0, rel=1e-3)


def test_llama_cpp_reads_the_cache_for_each_query_head_until_flash_attention(bench: Bench) -> None:
    old = works.work(llama_cpp(bench, "nvidia/rtx-4090"))
    new = works.work(llama_cpp(bench, "nvidia/rtx-4090", "b6918"))
    assert old.cache_bytes(1000.0) == pytest.approx(4.0 * new.cache_bytes(1000.0))


@pytest.mark.parametrize(
    ("accelerator", "count", "link", "rate"),
    [
        ("nvidia/a100-pcie-80gb", 2, "nvlink-bridge", 300e9),
        ("nvidia/a100-pcie-80gb", 4, "pcie", 31.5e9),  # the bridge joins two
        ("nvidia/h200-nvl-141gb", 4, "nvlink-bridge", 450e9),  # this one four
        ("nvidia/a100-sxm4-80gb", 8, "nvlink", 300e9),
        ("nvidia/l40s", 4, "pcie", 31.5e9),
    ],
)
def test_a_bridge_that_does_not_join_all_leaves_pcie(
    bench: Bench, accelerator: str, count: int, link: str, rate: float
) -> None:
    case = case_on(bench, accelerator, count)
    assert case.facts["link"] == link
    assert works.work(case).machine.link_bandwidth == pytest.approx(rate, rel=0.01)


def test_rated_power_over_the_peak_is_a_fact(bench: Bench) -> None:
    # 450 W over 165.2 TFLOP/s, 300 W over 364.2
    assert case_on(bench, "nvidia/rtx-4090").facts["watts_per_teraflop"] == pytest.approx(
        2.72, abs=0.01
    )
    assert case_on(bench, "nvidia/rtx-6000-ada").facts["watts_per_teraflop"] == pytest.approx(
        0.82, abs=0.01
    )
    assert case_on(bench, "apple/apple-m5-ultra").facts["watts_per_teraflop"] is None


@pytest.mark.parametrize(
    "accelerator",
    [
        "google/tpu-v5e", "google/tpu-v6e", "google/tpu-v7", "intel/gaudi-2", "intel/gaudi-3",
        "aws/inferentia2", "aws/trainium1", "aws/trainium2", "amd/mi250x-128gb", "amd/mi300x-192gb",
        "amd/mi355x-288gb", "amd/rx-7900-xtx", "amd/strix-halo", "intel/arc-b580",
        "nvidia/jetson-agx-orin-64gb", "nvidia/v100-sxm2-32gb", "nvidia/p40", "apple/apple-m4-pro",
    ],
)  # fmt: skip
def test_hardware_with_few_measurements_has_finite_and_wide_bands(
    bench: Bench, accelerator: str
) -> None:
    case = case_on(bench, accelerator)
    part = case.accelerator.get("accelerator")
    floor = 15.0e9 / part.bandwidth  # 16-bit weights without the embedding
    tpot = case.estimate("tpot_seconds_mean")
    assert floor < tpot.mid < 3.0 * floor
    assert tpot.high / tpot.low >= 1.5
    prefill = case.estimate("prefill_seconds")
    assert 0.0 < prefill.low < prefill.mid < prefill.high < 60.0


def test_an_unknown_peak_is_said(bench: Bench) -> None:
    from capcheck.values import Unknown

    with pytest.raises(Unknown, match="peak of Apple M5"):
        case_on(bench, "apple/apple-m5").estimate("tpot_seconds_mean")


@pytest.mark.parametrize(
    ("engine", "args"),
    [
        ("llama.cpp", {"gpu-layers": 10}),
        ("llama.cpp", {"n-cpu-moe": 4}),
        ("vllm", {"cpu_offload_gb": 8}),
        ("sglang", {"cpu_offload_gb": 8}),
        ("vllm", {"enforce_eager": True}),
        ("sglang", {"disable_cuda_graph": True}),
    ],
)
def test_what_the_host_holds_up_is_not_predicted(
    bench: Bench, engine: str, args: dict[str, int]
) -> None:
    spec = {
        "apiVersion": "capcheck/v1", "kind": "Deployment", "name": "x",
        "model": {"id": "meta-llama/Llama-3.1-8B-Instruct"},
        "hardware": {"accelerator": "nvidia/rtx-4090", "count": 1},
        "engine": {"name": engine, "args": args},
        "workload": {"prompt_tokens": 500, "output_tokens": 100, "concurrency": 1},
    }  # fmt: skip
    case = bench.cases(json.dumps(spec))[0]
    with pytest.raises(Unknown) as lost:
        case.estimate("tpot_seconds")
    assert "host" in lost.value.reason
