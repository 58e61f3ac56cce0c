from __future__ import annotations

import pytest
from formats_kit import arg, documents_of, marked, plain, read_all, read_one, why

from capcheck import Draft
from capcheck.source import to_plain
from capcheck_spec import capcheck_formats
from capcheck_spec.header import distance, near_miss
from capcheck_spec.spec_format import SpecFormat

HEADER = "apiVersion: capcheck/v1\nkind: Deployment\n"
FULL = (
    HEADER
    + """\
name: chat
from: ../k8s/chat.yaml#Deployment/chat
model:
  id: meta-llama/Llama-3.1-70B-Instruct
  config: ./config.json
hardware: {accelerator: [nvidia/l4, nvidia/l40s], count: 2}
engine:
  name: vllm
  version: 0.10
  config: ./vllm.yaml
  args:
    max-model-len: 32k
    tensor_parallel_size: 2
    speculative_config: {method: ngram, num_speculative_tokens: 4}
    served-model-name: [a, b]
    seed: null
  env: {VLLM_USE_V1: "1"}
"""
)


def spec(text: str, file: str = "specs/chat.yaml") -> Draft:
    return read_one(text, file=file, formats=(SpecFormat(),))


def test_the_fields_are_the_keys_without_the_header() -> None:
    draft = spec(FULL)
    assert draft.name == "chat"
    assert draft.format == "capcheck/v1"
    assert draft.place.line == 1
    assert draft.root is not None
    assert plain(draft, "model", "id") == "meta-llama/Llama-3.1-70B-Instruct"
    assert plain(draft, "hardware", "accelerator") == ["nvidia/l4", "nvidia/l40s"]
    assert plain(draft, "engine", "env", "VLLM_USE_V1") == "1"
    assert not {"apiVersion", "kind", "name", "from"} & {path[0] for path in draft.fields}
    assert draft.problems == ()


def test_a_version_keeps_its_text() -> None:
    value = spec(FULL).fields[("engine", "version")]
    assert value.options[0][0] == "0.10"  # a float to YAML


def test_options_are_found_under_one_spelling_and_keep_the_users_word() -> None:
    draft = spec(FULL)
    assert arg(draft, "max_model_len") == "32k"
    assert draft.fields[("engine", "args", "max_model_len")].origin.word == "max-model-len"
    assert marked(draft, FULL, "engine", "args", "max_model_len") == "32k"
    assert arg(draft, "speculative_config", "num_speculative_tokens") == 4
    assert arg(draft, "served_model_name") == ["a", "b"]
    assert arg(draft, "seed") is None
    assert draft.places[("engine", "args", "max_model_len")].line == 14
    assert draft.places[("engine", "args")].line == 13


def test_links_come_nearest_layer_first() -> None:
    links = [(link.kind, link.target) for link in spec(FULL).links]
    assert links == [
        ("engine config", "./vllm.yaml"),
        ("from", "../k8s/chat.yaml#Deployment/chat"),
        ("model config", "./config.json"),
    ]


@pytest.mark.parametrize("text", ["${MODEL}", "{{ .Values.model }}", "$MODEL", "org/{{m}}-x"])
def test_a_template_is_unknown(text: str) -> None:
    draft = spec(HEADER + f"model: {{id: '{text}'}}\nengine: {{args: {{dtype: [a, '{text}']}}}}\n")
    assert plain(draft, "model", "id") == "?"
    assert "not resolved" in why(draft, "model", "id")
    assert arg(draft, "dtype") == "?"


def test_a_tagged_value_is_unknown() -> None:
    assert plain(spec(HEADER + "replicas: !env N\n"), "replicas") == "?"


def test_a_templated_link_is_a_problem_and_no_link() -> None:
    draft = spec(HEADER + "from: ${BASE}.yaml\n")
    assert draft.links == ()
    assert [(rule, place.line) for rule, _, place in draft.problems] == [("spec/unresolved", 3)]


def test_two_spellings_of_one_option_are_a_conflict() -> None:
    draft = spec(HEADER + "engine:\n  args: {max-model-len: 1, max_model_len: 2, seed: 3}\n")
    assert [rule for rule, _, _ in draft.problems] == ["spec/conflict"]
    assert "max-model-len and max_model_len" in draft.problems[0][1]


def test_the_file_names_what_has_no_name() -> None:
    drafts = read_all(f"{HEADER}---\n{HEADER}", file="specs/chat.yaml", formats=(SpecFormat(),))
    assert [draft.name for draft in drafts] == ["chat", "chat-2"]


@pytest.mark.parametrize("body", ["name: [1]", "engine: 3", "from: {a: 1}", "engine: {args: []}"])
def test_wrong_types_are_left_to_the_schema(body: str) -> None:
    assert spec(HEADER + body + "\n").root is not None


@pytest.mark.parametrize(
    ("text", "word"),
    [
        ("apiVersion: capchek/v1\nkind: Deployment\n", "capchek/v1"),
        ("apiVersion: capcheck/v2\nkind: Deployment\n", "capcheck/v2"),
        ("apiVersion: Capcheck/V1\nkind: Deployment\n", "Capcheck/V1"),
        ("apiVersion: cpacheck/v1\nkind: Deployment\n", "cpacheck/v1"),
        ("apiversion: capcheck/v1\nkind: Deployment\n", "apiversion"),
        ("api_version: capcheck/v1\nkind: Deployment\n", "api_version"),
        ("apiVersion: capcheck/v1\nkind: Deploymnet\n", "Deploymnet"),
        ("apiVersion: capcheck/v1\nkind: Service\n", "Service"),
        ("apiVersion: capcheck/v1\nkid: Deployment\n", "kid"),
        ("apiVersion: capcheck/v1\nname: x\n", "capcheck/v1"),
    ],
)
def test_headers_that_were_meant_to_be_ours(text: str, word: str) -> None:
    document = documents_of(text)[0]
    assert not SpecFormat().claims(document)
    found = SpecFormat().near_miss(document)
    assert found is not None
    message, node = found
    assert to_plain(node) == word
    assert "capcheck/v1" in message or "kind" in message or "apiVersion" in message


@pytest.mark.parametrize(
    "text",
    [
        "apiVersion: apps/v1\nkind: Deployment\n",
        "apiVersion: v1\nkind: Service\n",
        "apiversion: apps/v1\n",
        "model: capcheck/v1\n",
        "- capcheck/v1\n",
        "apiVersion: [capcheck/v1]\n",
        "{}\n",
        HEADER,
    ],
)
def test_other_headers_are_nobodys_near_miss(text: str) -> None:
    for document in documents_of(text):
        assert near_miss(document.root) is None


def test_a_long_header_is_not_shown_whole() -> None:
    found = near_miss(documents_of(f"apiVersion: capcheck/{'x' * 5000}\n")[0].root)
    assert found is not None
    assert len(found[0]) < 200


@pytest.mark.parametrize(
    ("first", "second", "edits"),
    [("", "", 0), ("abc", "abc", 0), ("abc", "acb", 1), ("abc", "ab", 1), ("kitten", "sitting", 3)],
)
def test_distance(first: str, second: str, edits: int) -> None:
    assert distance(first, second) == distance(second, first) == edits


def test_the_plugin_brings_the_format() -> None:
    assert [one.name for one in capcheck_formats()] == ["capcheck/v1"]
