"""Layouts: the smaller one that suffices, copies of the KV cache, what crossing a link costs."""

from __future__ import annotations

import re

import pytest
from latency_kit import case_of, chat, results_of

from capcheck import Change

EASY = "{ttft: {p50: 5s, p99: 30s}, tpot: {p50: 80ms, p99: 300ms}}"
L70B = "meta-llama/Llama-3.1-70B-Instruct"
DEEPSEEK = "deepseek-ai/DeepSeek-R1"


def args(tensor: int, more: str = "") -> str:
    return f"tensor_parallel_size: {tensor}, max_model_len: 8192, max_num_seqs: 64{more}"


def over(text: str, tensor: int) -> tuple[str, str, str]:
    found = results_of(text)["sharding/over-sharded"]
    assert found.verdict == "fail"
    expected = f"tensor parallel {tensor} meets every declared limit"
    assert found.words.message.startswith(expected)
    return found.words.message, found.words.arithmetic, found.words.help[0]


def test_the_smaller_layout_and_its_replicas_have_figures() -> None:
    text = chat("concurrency: 8", EASY, count="8", args=args(8))
    message, arithmetic, help = over(text, 1)
    assert message.endswith("8 devices are used")
    assert "tensor parallel 1: p50 TPOT" in arithmetic
    assert help.startswith("tensor_parallel_size: 1, and 8 replicas on the same devices")
    case = case_of(text)
    shared = case.what_if(Change("tensor", 1), Change("replicas", 8))
    assert shared is not None
    flight = shared.deployment.number("workload", "concurrency")
    assert flight is not None
    assert flight.get() == 1
    at_most = re.search(r"([\d.]+) requests/s at most instead of ([\d.]+)", help)
    assert at_most is not None
    capacity = shared.estimate("requests_per_second_replica").mid
    assert float(at_most[1]) == pytest.approx(8 * capacity, rel=0.01)
    here = case.estimate("requests_per_second_replica").mid
    assert float(at_most[2]) == pytest.approx(here, rel=0.01)


def test_a_layout_that_memory_refuses_is_never_offered() -> None:
    text = chat("concurrency: 8", EASY, model=L70B, count="8", args=args(8))
    message, _, _ = over(text, 2)  # 141 GB of weights do not fit one device of 80
    assert "tensor parallel 1" not in message
    assert results_of(text.replace("size: 8", "size: 2"))["weights/fit"].verdict == "pass"


def test_what_is_needed_is_not_over_sharded() -> None:
    text = chat("concurrency: 8", EASY, model=L70B, count="2", args=args(2))
    assert results_of(text)["sharding/over-sharded"].verdict == "pass"


def test_objectives_that_need_the_devices_keep_them() -> None:
    text = chat("concurrency: 8", EASY, count="8", args=args(8))
    wide = case_of(text).estimate("tpot_seconds").high
    tight = text.replace("p50: 80ms", f"p50: {wide * 1000 * 1.001:.3f}ms")
    assert results_of(tight)["sharding/over-sharded"].verdict == "pass"


def test_stages_are_given_up_first() -> None:
    text = chat("concurrency: 8", EASY, model=L70B, count="4",
                args=args(2, ", pipeline_parallel_size: 2"))  # fmt: skip
    _, arithmetic, help = over(text, 2)
    assert "tensor parallel 2 x pipeline parallel 2: p50 TPOT" in arithmetic
    assert help.startswith("pipeline_parallel_size: 1")


def test_ranks_of_one_device_are_not_over_sharded() -> None:
    text = chat("concurrency: 8", EASY, count="4", args=args(1, ", data_parallel_size: 4"))
    assert results_of(text)["sharding/over-sharded"].verdict == "pass"


def test_data_parallel_ranks_instead_of_copies() -> None:
    text = chat(model="Qwen/Qwen2.5-1.5B-Instruct", count="4", args=args(4))
    (help,) = results_of(text)["sharding/kv-replicated"].words.help
    assert "tensor_parallel_size: 2 with data_parallel_size: 2" in help
    held = re.search(r"holds ([\d,]+) tokens instead of ([\d,]+)", help)
    assert held is not None
    many, now = (int(one.replace(",", "")) for one in held.groups())
    assert now == pytest.approx(case_of(text).estimate("kv_cache_tokens").mid, abs=1)
    assert many > 1.5 * now


@pytest.mark.parametrize(("flight", "verdict"), [(16, "pass"), (2000, "fail")])
def test_a_latent_cache_is_told_where_the_load_needs_the_room(flight: int, verdict: str) -> None:
    size = "tensor_parallel_size: 8, max_model_len: 8192, max_num_seqs: 2048"
    long = chat(
        f"concurrency: {flight}", model=DEEPSEEK, part="nvidia/h200-sxm-141gb", count="8", args=size
    )
    found = results_of(long)["sharding/kv-replicated"]
    assert found.verdict == verdict
    if verdict == "fail":
        assert "held 8 times" in found.words.message
        assert "data parallel 8" in found.words.help[0]


@pytest.mark.parametrize(("part", "count", "tensor", "said"), [
    ("nvidia/l40s", "8", 8, "goes over PCIe on L40S, between sockets"),
    ("nvidia/a100-pcie-80gb", "4", 4, "a bridge joins 2 devices"),
    ("nvidia/h100-sxm5-80gb", "4, nodes: 2", 8, "spans nodes of 4 devices"),
    ("nvidia/h100-sxm5-80gb", "8, nodes: 2", 16, "spans nodes of 8 devices"),
])  # fmt: skip
def test_crossing_is_told_with_its_cost(part: str, count: str, tensor: int, said: str) -> None:
    text = chat(model=L70B, part=part, count=count, args=args(tensor))
    found = results_of(text)["sharding/crosses-domain"]
    assert found.verdict == "fail"
    assert said in found.words.message
    assert re.search(r"communication takes \d+ % of a decode step", found.words.arithmetic)
    share = case_of(text).estimate("interconnect_share").mid
    assert f"{share * 100:.0f} %" in found.words.arithmetic


@pytest.mark.parametrize(("part", "count", "tensor"), [
    ("nvidia/l40s", "4", 4),  # one socket
    ("nvidia/a100-pcie-80gb", "2", 2),  # a pair
    ("nvidia/h100-sxm5-80gb", "8", 8),
    ("nvidia/gb200-186gb", "4, nodes: 4", 16),  # one NVLink domain of 72
    ("nvidia/gb10-dgx-spark", "1, nodes: 2", 2),  # two that their own network cards join
])  # fmt: skip
def test_staying_inside_passes(part: str, count: str, tensor: int) -> None:
    text = chat(model=L70B, part=part, count=count, args=args(tensor))
    assert results_of(text)["sharding/crosses-domain"].verdict == "pass"


def test_without_traffic_measurements_are_told() -> None:
    text = chat(model=L70B, part="nvidia/l40s", count="8", args=args(8))
    text = text.partition("workload:")[0]
    found = results_of(text)["sharding/crosses-domain"]
    assert "60 to 85 us over PCIe" in found.words.arithmetic
