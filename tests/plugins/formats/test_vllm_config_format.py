from __future__ import annotations

import pytest
from formats_kit import arg, documents_of, marked, plain, read_one, why

from capcheck_vllm.config_format import VllmConfig

# Some keys are no option of any release, as people write them.
MIXED = """\
model: "meta-llama/Llama-3.1-70B-Instruct"
tensor_parallel_size: 2
max_model_len: 32768
gpu_memory_utilization: 0.85
enforce_eager: false
speculative_config:
  model: "nvidia/Llama-3.1-8B-Instruct"
  num_speculative_tokens: 4
chunked_prefill_enabled: true
max_num_batched_tokens_prefill: 8192
preemption_mode: "swap"
enable_metrics: true
metrics_port: 8000
"""


def claimed(text: str, file: str = "conf/serving.yaml") -> bool:
    return any(VllmConfig().claims(document) for document in documents_of(text, file))


@pytest.mark.parametrize(
    "text",
    [
        MIXED,
        "gpu-memory-utilization: 0.2\nmax-num-seqs: 8\nmax-num-batched-tokens: 8192",
        "model: org/m\nmax_model_len: auto\ndefault_chat_template_kwargs: '{}'\n",
        "model: org/m\nmax-modl-len: 5\nmax-num-seqs: 4\n",
    ],
)
def test_a_map_of_options_is_claimed_whatever_the_file_is_called(text: str) -> None:
    assert claimed(text)


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("model: org/m\n", "vllm.yaml"),
        ("dtype: bfloat16\ntrust_remote_code: true\n", "a/vllm_config.yml"),
        ("speculative_config: {method: ngram}\n", "VLLM-prod.yaml"),
    ],
)
def test_a_files_name_makes_one_option_enough(text: str, file: str) -> None:
    assert claimed(text, file)
    assert not claimed(text, "conf/serving.yaml")


@pytest.mark.parametrize(
    ("text", "file"),
    [
        ("model: x\nseed: 1\nquantization: fp8\n", "train.yaml"),  # nothing that only vLLM has
        ("tensor_parallel_size: 8\nkv_cache_config: {}\nmax_batch_size: 4\n", "trtllm.yaml"),
        ("image: {tag: x}\nmodel: m\nmax_model_len: 5\nmax_num_seqs: 3\n", "vllm-values.yaml"),
        ("services: {vllm: {}}\nmodel: m\n", "vllm.yaml"),
        ("apiVersion: v1\nkind: ConfigMap\nmodel: m\n", "vllm.yaml"),
        ("model: m\nurl: u\nteam: t\n", "vllm.yaml"),
        ("- model: m\n", "vllm.yaml"),
        ("{}\n", "vllm.yaml"),
        ("hello\n", "vllm.yaml"),
    ],
)
def test_other_files_are_left_alone(text: str, file: str) -> None:
    assert not claimed(text, file)


def test_every_key_is_kept_also_those_that_are_no_option() -> None:
    draft = read_one(MIXED, file="conf/serving.yaml")
    assert draft.name == "serving"
    assert plain(draft, "engine", "name") == "vllm"
    assert draft.fields[("engine", "name")].origin.kind == "derived"
    assert ("engine", "version") not in draft.fields
    assert arg(draft, "enforce_eager") is False
    assert arg(draft, "speculative_config", "num_speculative_tokens") == 4
    assert arg(draft, "max_num_batched_tokens_prefill") == 8192
    assert marked(draft, MIXED, "engine", "args", "max_model_len") == "32768"
    assert draft.places[("engine", "args", "speculative_config", "model")].line == 7


def test_spellings_lists_nothing_and_templates() -> None:
    text = "max-model-len: 32k\nserved-model-name: [a, b]\nmax_num_seqs: ${SEQS}\nseed:\n"
    draft = read_one(text)
    assert arg(draft, "max_model_len") == "32k"
    assert draft.fields[("engine", "args", "max_model_len")].origin.word == "max-model-len"
    assert arg(draft, "served_model_name") == ["a", "b"]
    assert arg(draft, "max_num_seqs") == "?"
    assert why(draft, "engine", "args", "max_num_seqs") == "${SEQS} is not resolved"
    assert arg(draft, "seed") is None


def test_two_spellings_of_one_option_are_a_conflict() -> None:
    draft = read_one("max-num-seqs: 1\nmax_num_seqs: 2\nmodel: m\n")
    assert [(rule, place.line) for rule, _, place in draft.problems] == [("spec/conflict", 2)]


def test_it_is_vllms_own_configuration() -> None:
    assert VllmConfig().engine_config == "vllm"
    assert VllmConfig().config_options == ("config",)
