"""What is said twice, and what is left open where nearly everything hangs on it."""

from __future__ import annotations

from functools import lru_cache

import pytest

from capcheck.testing import Bench

HEAD = "apiVersion: capcheck/v1\nkind: Deployment\nname: d\n"
ARGS = "args: {max_model_len: 8192, max_num_seqs: 64}"
SPEC = HEAD + (
    "model: {id: meta-llama/Llama-3.1-8B-Instruct}\n"
    "hardware: {accelerator: nvidia/l40s, count: 1}\n"
    f"engine: {{name: vllm, version: 0.11.0, {ARGS}}}\n"
)
MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  template:
    spec:
      containers:
        - name: server
          image: vllm/vllm-openai:v0.11.0
          command: ["sh", "-c"]
          args: ["vllm serve meta-llama/Llama-3.1-8B-Instruct --max-model-len 8192 $EXTRA"]
          resources: {limits: {nvidia.com/gpu: 1}}
"""


@lru_cache(maxsize=1)
def bench() -> Bench:
    return Bench()


def problems(text: str, rule: str) -> list[tuple[str, int]]:
    (outcome,) = bench().outcomes(text)
    return [(one.message, one.place.line) for one in outcome.resolved.problems if one.rule == rule]


def packed(precision: str, quantization: str) -> str:
    model = f"Llama-3.1-8B-Instruct, weights: {{precision: {precision}}}"
    return SPEC.replace("Llama-3.1-8B-Instruct", model).replace(
        ARGS, f"args: {{quantization: {quantization}}}"
    )


@pytest.mark.parametrize(
    ("precision", "quantization", "weights"),
    [("awq-int4", "fp8", "int4 are not fp8_e4m3"), ("fp8", "awq", "fp8_e4m3 are not int4")],
)
def test_a_precision_against_the_engines_option(
    precision: str, quantization: str, weights: str
) -> None:
    ((message, line),) = problems(packed(precision, quantization), "spec/conflict")
    assert message == (
        f"quantization is {quantization}, but model.weights.precision is {precision}: "
        f"weights stored as {weights}"
    )
    assert line == 6


@pytest.mark.parametrize(
    ("precision", "quantization"),
    [("fp8", "fp8"), ("bf16", "fp8"), ("awq-int4", "awq_marlin"), ("awq-int4", "moe_wna16")],
)
def test_two_words_that_go_together(precision: str, quantization: str) -> None:
    assert problems(packed(precision, quantization), "spec/conflict") == []


def test_plain_weights_are_packed_while_loading_whoever_says_that_they_are_plain() -> None:
    for text in (packed("bf16", "fp8"), packed("bf16", "fp8").replace("precision: bf16", "")):
        (case, *_) = bench().cases(text)
        scheme = case.model.get().scheme.get()
        assert scheme is not None
        assert (scheme.weight, scheme.seen) == ("fp8_e4m3", "online")


def test_two_names_of_one_option() -> None:
    text = SPEC.replace(ARGS, "args: {max_model_len: 8192, max_model_le: 4096}")
    ((message, line),) = problems(text, "spec/conflict")
    assert message == "max_model_le and max_model_len are one option with different values"
    assert line == 6
    same = SPEC.replace(ARGS, "args: {max_model_len: 8192, max_model_le: 8192}")
    assert problems(same, "spec/conflict") == []


def test_two_spellings_of_one_option() -> None:
    text = SPEC.replace(ARGS, "args: {max_model_len: 8192, max-model-len: 4096}")
    assert problems(text, "spec/conflict") == [
        ("max_model_len and max-model-len are one option", 6)
    ]


@pytest.mark.parametrize("args", ["args: []", "args: 3", "args: {speculative_config: {a: 1}}"])
def test_odd_arguments_are_no_conflict(args: str) -> None:
    assert problems(SPEC.replace(ARGS, args), "spec/conflict") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", '"${MODEL}"', "the model is not known: ${MODEL} is"),
        ("nvidia/l40s", '"{{ gpu }}"', "the accelerator is not known: {{ gpu }} is"),
    ],
)
def test_variables_that_decide_nearly_everything(old: str, new: str, message: str) -> None:
    ((said, _),) = problems(SPEC.replace(old, new), "spec/unresolved")
    assert said == f"{message} not resolved"


def test_other_variables_are_no_finding() -> None:
    text = SPEC.replace("8192", '"$LENGTH"').replace("0.11.0", '"$VERSION"')
    assert problems(text, "spec/unresolved") == []


def test_what_is_absent_is_not_unresolved() -> None:
    assert problems(HEAD, "spec/unresolved") == []


def test_arguments_that_nobody_can_count() -> None:
    ((said, line),) = problems(MANIFEST, "spec/unresolved")
    assert said == "what else the engine is started with is not known: ${EXTRA} is not resolved"
    assert line == 12
    assert problems(MANIFEST.replace(" $EXTRA", ""), "spec/unresolved") == []


def test_a_model_that_only_the_engines_options_name() -> None:
    text = SPEC.replace("model: {id: meta-llama/Llama-3.1-8B-Instruct}\n", "").replace(
        "max_num_seqs: 64", 'model: "$MODEL"'
    )
    ((said, line),) = problems(text, "spec/unresolved")
    assert said.startswith("the model is not known: ")
    assert line == 5


def test_an_assumption_does_not_replace_what_the_command_says() -> None:
    assumed = Bench(assume={"model": "Qwen/Qwen2.5-7B-Instruct"})
    (case, *_) = assumed.cases(MANIFEST)
    assert case.model.get().name == "meta-llama/Llama-3.1-8B-Instruct"
    lost = MANIFEST.replace("meta-llama/Llama-3.1-8B-Instruct", "$MODEL")
    (case, *_) = assumed.cases(lost)
    assert case.model.get().name == "Qwen/Qwen2.5-7B-Instruct"


@pytest.mark.parametrize("word", ["bf16", "fp16", "F16", "half"])
def test_words_of_sixteen_bit_are_no_packing(word: str) -> None:
    text = SPEC.replace(
        "Llama-3.1-8B-Instruct", f"Llama-3.1-8B-Instruct, weights: {{precision: {word}}}"
    )
    (case,) = Bench().cases(text)
    assert case.model.get("model").scheme.get("quantization") is None
