"""Settings against the class of traffic, with figures of the load model."""

from __future__ import annotations

import re

import pytest
from latency_kit import case_of, chat, results_of

from capcheck.curves import planned

DRAFT = ", speculative_config: {method: ngram, num_speculative_tokens: 4}"
ARGS = "max_model_len: 8192, max_num_seqs: 256"


def fit(text: str) -> str:
    found = results_of(text)["workload/class-fit"]
    return f"{found.words.message}: {found.words.arithmetic}" if found.verdict == "fail" else ""


@pytest.mark.parametrize("acceptance", ["0.02", "0.9"])
@pytest.mark.parametrize("flight", [2, 200])
def test_speculation_for_chat_is_judged_by_its_figures(flight: int, acceptance: str) -> None:
    text = chat(f"concurrency: {flight}\n  acceptance_rate: {acceptance}", args=ARGS + DRAFT)
    case = case_of(text)
    plain = planned(case, draft=None, draft_tokens=None)
    with_it, without = (one.estimate("tpot_seconds").mid for one in (case, plain))
    said = fit(text)
    assert bool(said) == (with_it >= without)
    if said:
        assert (
            f"speculation does not lower the time per token: p50 TPOT {1e3 * with_it:.1f} ms"
            in said
        )


def test_accepted_proposals_help_few_and_refused_ones_cost() -> None:
    few = "concurrency: 2\n  acceptance_rate: "
    assert not fit(chat(few + "0.9", args=ARGS + DRAFT))
    assert fit(chat("concurrency: 200\n  acceptance_rate: 0.02", args=ARGS + DRAFT))


def test_without_an_acceptance_rate_a_rule_of_thumb_judges() -> None:
    assert "no longer lowers" in fit(chat("concurrency: 100", args=ARGS + DRAFT))
    assert not fit(chat("concurrency: 20", args=ARGS + DRAFT))


def test_speculation_in_batch_work_is_judged_by_throughput() -> None:
    def of(acceptance: str) -> str:
        load = f"concurrency: 200\n  acceptance_rate: {acceptance}"
        return chat(load, kind="batch", args=ARGS + DRAFT)

    case = case_of(of("0.02"))
    plain = planned(case, draft=None, draft_tokens=None)
    served = [one.estimate("requests_per_second_replica").mid for one in (case, plain)]
    assert served[0] < served[1]
    assert f"{served[0]:.2f} requests/s at most with it, {served[1]:.2f} without" in fit(of("0.02"))
    assert "costs throughput" in fit(chat("concurrency: 200", kind="batch", args=ARGS + DRAFT))


def test_a_small_batch_is_told_what_a_larger_one_serves() -> None:
    text = chat("concurrency: 8", kind="batch", args="max_model_len: 8192, max_num_seqs: 8")
    said = results_of(text)["workload/class-fit"].words
    found = re.search(r"([\d.]+) requests/s at most, ([\d.]+) with (\d+)", said.arithmetic)
    assert found is not None
    larger = case_of(text.replace("max_num_seqs: 8}", f"max_num_seqs: {found[3]}}}"))
    served = larger.estimate("requests_per_second_replica").mid
    assert float(found[2]) == pytest.approx(served, rel=0.01)
    assert float(found[2]) > 1.2 * float(found[1])
    assert said.help == (f"max_num_seqs: {found[3]}",)


def test_a_batch_that_memory_limits_is_large_enough() -> None:
    text = chat("concurrency: 200", kind="batch", part="nvidia/l4",
                args="max_model_len: 8192, max_num_seqs: 64")  # fmt: skip
    assert not fit(text)


def test_long_steps_stop_streams() -> None:
    long = "max_model_len: 32768, max_num_seqs: 64, max_num_batched_tokens: 16384"
    text = chat(part="nvidia/l40s", args=long).replace("max: 6000", "max: 28000")
    assert "a long prompt stops every stream for" in fit(text)
    assert not fit(text.replace("16384", "8192"))
    assert not fit(text.replace("max: 28000", "max: 2500"))  # nobody sends a prompt that long
    assert not fit(text.replace("interactive", "batch"))
