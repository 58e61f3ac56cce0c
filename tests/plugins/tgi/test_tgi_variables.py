"""Variables that the launcher reads as its options, and refuses as these."""

from __future__ import annotations

import pytest
from tgi_specs import verdicts


@pytest.mark.parametrize(
    ("env", "verdict"),
    [
        ({"MAX_TOTAL_TOKENS": "abc"}, "fail"),
        ({"MAX_TOTAL_TOKENS": "8192"}, "pass"),
        ({"QUANTIZE": "bogus"}, "fail"),
        ({"QUANTIZE": "bitsandbytes"}, "pass"),
        ({"QUANTIZE": ""}, "pass"),
        ({"MAX_SOMETHING_TOKENS": "abc"}, "pass"),
    ],
)
def test_values(env: dict[str, str], verdict: str) -> None:
    found = verdicts(env=env, args={"max_batch_prefill_tokens": 4096})
    assert found["options/value"] == {verdict}


def test_an_argument_keeps_the_variable_from_being_read() -> None:
    env = {"MAX_TOTAL_TOKENS": "abc"}
    assert verdicts(env=env, args={"max_total_tokens": 8192})["options/value"] == {"pass"}
