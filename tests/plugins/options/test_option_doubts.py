"""Where it is not certain what a build takes, what it seems to refuse is a warning."""

from __future__ import annotations

import pytest

from capcheck.testing import check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 2}
engine:
  name: vllm
  version: "VERSION"
  args: {max_model_len: 8192, tensor_parallel_size: 2, ARGS}
"""


def found(version: str, args: str) -> list[tuple[str, str]]:
    spec = SPEC.replace("VERSION", version).replace("ARGS", args)
    return [(one.rule, one.severity) for one in check(spec, select=("options",))]


@pytest.mark.parametrize(
    ("args", "rule"),
    [
        ("brand_new: 1", "options/unknown"),
        ("attention_backend: ODD", "options/value"),
        ("stream_interval: 4", "options/removed"),  # comes with 0.10.0
    ],
)
def test_a_patched_build_may_take_more(args: str, rule: str) -> None:
    version = "0.8.0" if rule == "options/removed" else "0.18.1"
    assert found(version, args) == [(rule, "error")]
    assert found(f"{version}-patched", args) == [(rule, "warning")]


def test_a_newer_release_may_take_more_words() -> None:
    assert found("0.99.0", "attention_backend: ODD") == [("options/value", "warning")]
    assert found("0.99.0", "max_num_seqs: many") == [("options/value", "error")]


def test_a_development_build_may_have_what_comes_later() -> None:
    assert found("0.9.0", "stream_interval: 4") == [("options/removed", "error")]
    assert found("0.9.0rc1.dev20", "stream_interval: 4") == [("options/removed", "warning")]


def test_a_misspelt_name_is_an_error_without_a_release() -> None:
    spec = SPEC.replace('  version: "VERSION"\n', "")
    near = check(spec.replace("ARGS", "max_num_sequences: 4"), select=("options",))
    far = check(spec.replace("ARGS", "zzz: 4"), select=("options",))
    assert [(one.rule, one.severity) for one in near] == [("options/unknown", "error")]
    assert [(one.rule, one.severity) for one in far] == [("options/unknown", "warning")]


def test_an_option_that_every_era_has_needs_no_release() -> None:
    spec = SPEC.replace('  version: "VERSION"\n', "")
    args = "enable_auto_tool_choice: true, tool_call_parser: hermes"
    assert check(spec.replace("ARGS", args), select=("options",)) == []


@pytest.mark.parametrize(
    ("args", "words"),
    [
        ("enable_auto_tool_choice: true", "needs tool_call_parser"),
        ("speculative_config: {method: ngram}", "proposes no tokens"),
        ("speculative_config: {method: ngram, num_speculative_tokens: 0}", "is below 1"),
        (
            "speculative_config: {model: acme/draft, num_speculative_tokens: 2,"
            " draft_tensor_parallel_size: 3}",
            "is neither 1 nor 2",
        ),
    ],
)
def test_options_that_stop_the_engine_together(args: str, words: str) -> None:
    spec = SPEC.replace("VERSION", "0.18.1").replace("ARGS", args)
    errors = [one for one in check(spec, select=("options/conflict",)) if one.severity == "error"]
    assert len(errors) == 1
    assert words in errors[0].message


def test_a_mapping_is_no_value_and_minus_one_not_yet_a_length() -> None:
    spec = SPEC.replace(", ARGS", "")
    for version, length in (("0.18.1", "{a: 1}"), ("0.11.0", "-1")):
        text = spec.replace("VERSION", version).replace("8192", length)
        assert [one.rule for one in check(text, select=("options",))] == ["options/value"]
    assert check(spec.replace("VERSION", "0.18.1").replace("8192", "-1"), select=("options",)) == []


def test_ray_may_bring_other_nodes() -> None:
    args = "pipeline_parallel_size: 2"
    spec = SPEC.replace("VERSION", "0.18.1")
    alone = check(spec.replace("ARGS", args), select=("sharding/devices",))
    ray = f"{args}, distributed_executor_backend: ray"
    joined = check(spec.replace("ARGS", ray), select=("sharding/devices",))
    assert [one.severity for one in (*alone, *joined)] == ["error", "warning"]
