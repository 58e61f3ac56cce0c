"""What decode and prefill findings say: the binding, the parts, the distance, verified help."""

from __future__ import annotations

import re

import pytest
from latency_kit import bench, case_of, chat, results_of

from capcheck.curves import at_load
from capcheck.objectives import tightest
from capcheck.values import Place

NUMBERS = re.compile(r"(\d+\.\d+) (?=[a-zA-Z])")


def objectives_of(tpot: str) -> str:
    return f"{{tpot: {tpot}}}"


def test_a_miss_names_what_binds_and_adds_up() -> None:
    found = results_of(chat("concurrency: 60", objectives_of("{p50: 4ms}")))["decode/tpot"]
    assert found.verdict == "fail"
    assert found.words.message.endswith("bound by memory bandwidth (weights)")
    first = found.words.arithmetic.partition(";")[0]
    total, _, parts = first.partition(" = ")
    figures = [float(one) for one in NUMBERS.findall(parts)]
    assert len(figures) >= 4
    assert sum(figures) == pytest.approx(float(total.split(" ms")[0]), abs=0.051)


def test_a_tail_is_told_as_a_factor_over_the_median() -> None:
    text = chat("concurrency: 60", objectives_of("{p99: 4ms}"))
    words = results_of(text)["decode/tpot"].words
    assert re.search(r"= \d\.\d\d x the median; \d+\.\d ms = ", words.arithmetic)


def reached(arithmetic: str) -> float:
    found = re.search(r"meets [\d.]+ m?s up to ([\d,.]+) (concurrent|requests/s)", arithmetic)
    assert found is not None
    return float(found[1].replace(",", ""))


@pytest.mark.parametrize("load", ["concurrency: 60", "request_rate: 12/s"])
def test_the_distance_is_where_the_middle_meets_the_objective(load: str) -> None:
    case = case_of(chat(load))
    half = (case.estimate("tpot_seconds").mid + at_load(case, 1).estimate("tpot_seconds").mid) / 2
    text = chat(load, objectives_of(f"{{p50: {half * 1000:.3f}ms}}"))
    found = results_of(text)["decode/tpot"]
    most = reached(found.words.arithmetic)
    assert at_load(case, most).estimate("tpot_seconds").mid <= half * 1.001
    assert at_load(case, most * 1.12 + 1).estimate("tpot_seconds").mid > half


def test_no_load_meets_what_one_request_misses() -> None:
    found = results_of(chat("concurrency: 60", objectives_of("{p50: 1ms}")))["decode/tpot"]
    assert "no load meets 1.0 ms, not even one request" in found.words.arithmetic


def test_an_error_is_not_hidden_behind_a_tighter_warning() -> None:
    case = case_of(chat("concurrency: 16"))
    band = case.estimate("tpot_seconds")
    tail = case.estimate("tpot_seconds_p99")
    sure, perhaps = band.low * 0.99, band.low * 1.001
    text = chat(
        "concurrency: 16",
        objectives_of(f"{{p50: {sure * 1000:.4f}ms, p99: {perhaps * 1000:.4f}ms}}"),
    )
    case = case_of(text)
    assert tail.mid / perhaps > band.mid / sure  # the tail is closer to its limit
    tight = tightest(case, "tpot")
    assert getattr(tight, "estimate", "") == "tpot_seconds"
    assert results_of(text)["decode/tpot"].verdict == "fail"


def resolved_with(text: str, help: str) -> str:
    """The spec with the replicas and requests in flight that a help line names."""
    many = re.search(r"replicas: (\d+)", help)
    flight = re.search(r"concurrency: (\d+)", help)
    assert many is not None
    text = text.replace("workload:", f"replicas: {many[1]}\nworkload:")
    return text.replace("concurrency: 60", f"concurrency: {flight[1]}") if flight else text


@pytest.mark.parametrize("load", ["concurrency: 60", "request_rate: 12/s"])
def test_replicas_that_are_offered_meet_the_objective(load: str) -> None:
    case = case_of(chat(load))
    low = at_load(case, 1).estimate("tpot_seconds").high
    limit = (low + case.estimate("tpot_seconds").low) / 2 if load[0] == "r" else low * 1.1
    text = chat(load, objectives_of(f"{{p50: {limit * 1000:.3f}ms}}"))
    before = results_of(text)["decode/tpot"]
    assert before.verdict in ("fail", "at risk")
    (help,) = [one for one in before.words.help if one.startswith("replicas:")]
    after = results_of(resolved_with(text, help))["decode/tpot"]
    assert after.verdict == "pass"


def test_a_prompt_that_is_too_long_is_bound_by_compute() -> None:
    text = chat("concurrency: 1", "{ttft: {p50: 20ms}}", part="nvidia/l4")
    found = results_of(text.replace("p50: 600", "p50: 1900"))["prefill/ttft"]
    assert found.words.message.endswith("bound by compute (its own prefill)")


def test_queueing_names_the_option_and_more_of_it_helps() -> None:
    found = results_of(chat("concurrency: 128", "{ttft: {p50: 200ms}}"))["prefill/ttft"]
    assert found.words.message.endswith("bound by queueing for max_num_seqs")
    assert "max_num_seqs: 128 passes" in found.words.help


def test_a_rate_that_is_not_served_says_how_far() -> None:
    found = results_of(chat("request_rate: 90/s", replicas=3))["decode/saturated"]
    assert found.verdict == "fail"
    assert re.search(r"what a replica serves \d\.\d times$", found.words.message)
    assert "90.00 / 3 replicas = 30.00 requests/s offered" in found.words.arithmetic
    assert "max_num_seqs admits 64" in found.words.arithmetic
    served = re.search(r"serves up to ([\d.]+) requests/s", found.words.arithmetic)
    assert served is not None
    case = case_of(chat("request_rate: 90/s", replicas=3))
    capacity = case.estimate("requests_per_second_replica").mid
    assert float(served[1]) == pytest.approx(3 * capacity, rel=0.01)
    least = -(-90 // case.estimate("requests_per_second_replica").low)
    assert f"replicas: {least:.0f} passes" in found.words.help


def test_more_in_flight_than_sequences_is_an_error() -> None:
    found = results_of(chat("concurrency: 130"))["decode/saturated"]
    assert found.verdict == "fail"
    assert found.words.message == "130 requests in flight, 64 may run"
    assert "66 wait, 2.0 times what is admitted" in found.words.arithmetic
    assert "max_num_seqs: 192 passes" in found.words.help


def test_the_token_budget_makes_requests_wait_their_turn() -> None:
    text = chat("concurrency: 60", args="max_model_len: 8192, max_num_batched_tokens: 1024")
    text = text.replace("p50: 200, p95: 600, max: 2000", "p50: 20, p95: 60, max: 200")
    found = results_of(text)["decode/saturated"]
    assert found.verdict == "at risk"
    assert "max_num_batched_tokens sustains" in found.words.arithmetic


def test_a_full_kv_cache_is_told_once() -> None:
    args = "max_model_len: 8192, max_num_seqs: 256"
    found = results_of(chat("concurrency: 100", part="nvidia/l4", args=args))
    assert found["decode/saturated"].verdict == "skip"
    assert found["kv-cache/declared-load"].verdict == "fail"


def test_every_pass_says_what_it_found() -> None:
    text = chat("concurrency: 16", "{tpot: {p50: 40ms}, ttft: {p50: 2s}}")
    session = bench().session
    for result in session.checker.results(case_of(text), "all"):
        if result.rule.id in ("decode/tpot", "prefill/ttft", "decode/saturated"):
            assert result.verdict == "pass"
            assert result.words.message
            assert isinstance(result.at, Place)
            assert "may" not in result.words.message.split(": ")[0].replace("may run", "")
