"""Advice on options in the user's own spelling."""

from __future__ import annotations

import pytest

from capcheck_options.spelling import advice, spelled
from capcheck_vllm.table import TABLE

RELEASE = (0, 18, 1)


@pytest.mark.parametrize(
    ("like", "expected"),
    [
        ("--max-num-sequences", "--max-num-seqs"),
        ("max-num-sequences", "max-num-seqs"),
        ("max_num_sequences", "max_num_seqs"),
        ("sequences", "max_num_seqs"),
    ],
)
def test_a_name_is_spelled_like_the_users(like: str, expected: str) -> None:
    assert spelled("max_num_seqs", like) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("use max_num_seqs", "use --max-num-seqs"),
        ("use port", "use --port"),
        ("use runner: pooling", "use --runner pooling"),
        # a key inside a JSON option is spelled one way only
        (
            "use speculative_config with the key draft_tensor_parallel_size",
            "use --speculative-config with the key draft_tensor_parallel_size",
        ),
        # words that could be options elsewhere, options of other releases, variables
        ("to adapt a model for pooling", "to adapt a model for pooling"),
        ("remove it: swap_space is gone", "remove it: swap_space is gone"),
        ("set the variable VLLM_LOGGING_LEVEL", "set the variable VLLM_LOGGING_LEVEL"),
    ],
)
def test_a_sentence_names_options_as_on_a_command_line(text: str, expected: str) -> None:
    assert advice(text, "--written", TABLE, RELEASE) == expected


def test_a_sentence_stays_where_options_have_underscores() -> None:
    text = "use max_num_batched_tokens, the tokens of one step"
    assert advice(text, "prefill_tokens", TABLE, RELEASE) == text
    assert advice(text, "prefill-tokens", TABLE, RELEASE) == text.replace("_", "-")
