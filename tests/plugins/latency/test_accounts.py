"""Latencies taken apart: the parts add up, and the largest resource binds."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from latency_kit import case_of, chat

from capcheck.accounts import Share, account_of, rounded, sum_words
from capcheck.testing import Bench

LATENCIES = ("tpot_seconds", "tpot_seconds_mean", "ttft_seconds", "ttft_seconds_mean")
LOADS = ("concurrency: 1", "concurrency: 60", "concurrency: 200", "request_rate: 4/s")


@pytest.mark.parametrize("load", LOADS)
@pytest.mark.parametrize("name", LATENCIES)
def test_parts_add_up_to_the_estimate(name: str, load: str) -> None:
    case = case_of(chat(load))
    account = account_of(case, name)
    assert account is not None
    assert account.total == pytest.approx(case.estimate(name).mid, rel=1e-9)
    assert all(part.amount >= 0 for part in account.parts)


def shares(text: str, name: str = "tpot_seconds") -> dict[str, float]:
    account = account_of(case_of(text), name)
    assert account is not None
    return {part.name: part.amount for part in account.parts}


def test_a_single_dense_request_waits_for_the_weights() -> None:
    one = account_of(case_of(chat("concurrency: 1")), "tpot_seconds")
    assert one is not None
    assert one.binding == "memory bandwidth (weights)"
    # 16.06 GB of weights (embedding left out: 15.0) at the peak of 3.35 TB/s
    assert shares(chat("concurrency: 1"))["weights"] > 15.0e9 / 3.35e12


def test_long_prompts_make_the_prompts_of_others_bind() -> None:
    text = chat("concurrency: 40").replace("p50: 600, p95: 2000", "p50: 4000, p95: 5000")
    text = text.replace("p50: 200, p95: 600, max: 2000", "p50: 20, p95: 60, max: 200")
    account = account_of(case_of(text), "tpot_seconds")
    assert account is not None
    assert account.binding == "the prompts of others"


def test_only_several_devices_reduce() -> None:
    args = "max_model_len: 8192, tensor_parallel_size: 4"
    assert shares(chat(args=args, count="4"))["all-reduce"] > 0
    assert shares(chat())["all-reduce"] == 0


def test_a_mixture_reads_experts() -> None:
    text = chat(model="Qwen/Qwen3-30B-A3B", args="max_model_len: 8192")
    assert shares(text)["experts"] > shares(text)["weights"]
    assert shares(chat())["experts"] == 0


def test_a_full_server_queues_for_what_is_full() -> None:
    case = case_of(chat("concurrency: 128"))
    account = account_of(case, "ttft_seconds")
    assert account is not None
    assert account.binding == "queueing for max_num_seqs"
    limit = account_of(case, "saturation")
    assert limit is not None
    assert limit.limit_words == "max_num_seqs admits 64"


def test_a_small_memory_is_named() -> None:
    text = chat("concurrency: 100", part="nvidia/l4", args="max_model_len: 8192, max_num_seqs: 256")
    limit = account_of(case_of(text), "saturation")
    assert limit is not None
    assert re.fullmatch(r"the KV cache holds \d+ requests", limit.limit_words)


def test_what_nobody_takes_apart_has_no_account() -> None:
    case = Bench().cases(chat())[0]
    assert account_of(case, "weights_bytes") is None
    assert account_of(case, "no_such_estimate") is None


def test_words_of_a_sum() -> None:
    parts = (Share("KV cache", 6.15e-3), Share("weights", 14.02e-3), Share("draft", 0.0))
    assert sum_words(parts) == "20.2 ms = 14.0 weights + 6.2 KV cache"
    assert sum_words((Share("own prefill", 1.25), Share("queueing", 2.0))) == (
        "3.25 s = 2.00 queueing + 1.25 own prefill"
    )


@given(st.lists(st.floats(0, 1e4), min_size=1, max_size=9), st.integers(0, 2))
def test_rounded_figures_add_up(amounts: list[float], digits: int) -> None:
    found = rounded(amounts, digits)
    unit = 10.0**-digits
    assert sum(found) == pytest.approx(round(sum(amounts) / unit) * unit, abs=unit / 1000)
    assert all(
        abs(one - amount) <= unit * 1.001 for one, amount in zip(found, amounts, strict=True)
    )
