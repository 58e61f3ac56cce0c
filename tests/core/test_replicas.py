"""Replicas as a change: they share the traffic that is declared."""

from __future__ import annotations

import pytest

from capcheck import Case, Change
from capcheck.changes import edited
from capcheck.knobs import FIELD, candidates, turned
from capcheck.testing import Bench

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 4}
replicas: 2
engine:
  name: vllm
  version: "0.11.0"
  args: {tensor_parallel_size: 4, max_model_len: 8192, max_num_seqs: 64}
workload: {prompt_tokens: 600, output_tokens: 200, LOAD}
"""


def case_of(load: str, text: str = SPEC) -> Case:
    return Bench().cases(text.replace("LOAD", load))[0]


@pytest.mark.parametrize(("load", "words"), [
    ("concurrency: 50", ["replicas: 3", "concurrency: 34"]),  # 2 x 50 / 3, rounded up
    ("request_rate: 9/s", ["replicas: 3"]),
])  # fmt: skip
def test_requests_in_flight_are_shared_and_a_rate_is_as_it_is(load: str, words: list[str]) -> None:
    made = edited(case_of(load), (Change("replicas", 3),))
    assert made is not None
    deployment, edits = made
    assert [edit.words for edit in edits] == words
    count = deployment.count("replicas")
    assert count is not None
    assert count.get() == 3


def test_replicas_are_written_where_there_were_none() -> None:
    made = edited(case_of("concurrency: 50", SPEC.replace("replicas: 2\n", "")),
                  (Change("replicas", 4),))  # fmt: skip
    assert made is not None
    assert [edit.words for edit in made[1]] == ["replicas: 4", "concurrency: 13"]


def test_values_of_load_knobs() -> None:
    case = case_of("concurrency: 50")
    assert candidates(case, "replicas")[:3] == [3, 4, 5]
    assert candidates(case, "more_sequences")[:3] == [96, 128, 192]
    assert candidates(case, "smaller_tensor") == [2, 1]
    assert all(value > case.plan.max_step_tokens.get()
               for value in candidates(case, "more_step_tokens"))  # fmt: skip
    fewer = case_of("concurrency: 40")
    assert candidates(fewer, "max_sequences") == [48]  # not below what is in flight
    assert set(FIELD) == {"more_sequences", "more_step_tokens", "smaller_tensor"}


def test_a_smaller_layout_gives_devices_back() -> None:
    case = case_of("concurrency: 50")
    changes = turned(case, "smaller_tensor", 2)
    assert changes == (Change("tensor", 2), Change("devices", 2))
    assert turned(case, "more_sequences", 96) == (Change("max_sequences", 96),)
