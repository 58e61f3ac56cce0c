"""Items of command and args: Kubernetes takes strings only."""

from __future__ import annotations

import pytest
from formats_kit import read_one

POD = """\
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
    - {name: server, image: "vllm/vllm-openai:v0.12.0", args: [--model, org/m, ITEM]}
"""


@pytest.mark.parametrize(
    ("item", "what"),
    [
        ("8192", "the integer 8192"),
        ("0.9", "the number 0.9"),
        ("true", "the boolean true"),
        ("{--port: 8000}", "a mapping"),
        ("[--port]", "a list"),
    ],
)
def test_what_is_no_string_is_refused(item: str, what: str) -> None:
    draft = read_one(POD.replace("ITEM", item))
    assert [(rule, text) for rule, text, _ in draft.problems] == [
        ("spec/schema", f"args takes strings, not {what}: quote it")
    ]


@pytest.mark.parametrize("item", ['"8192"', "--enforce-eager", "'true'", "$(LENGTH)"])
def test_strings_are_taken(item: str) -> None:
    assert read_one(POD.replace("ITEM", item)).problems == ()
