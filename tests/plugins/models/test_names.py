from __future__ import annotations

import json
import re
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capcheck_models
from capcheck_models.checkpoints import known_ids
from capcheck_models.names import ModelMatch, near, packing_words, resolve, same_size, sizes
from capcheck_quantization.schemes import from_words

DATA = Path(capcheck_models.__file__).parent / "data"
IDS = tuple(
    json.loads(line)["id"] for line in (DATA / "models.jsonl").read_text("utf-8").splitlines()
)
LLAMA = "meta-llama/Llama-3.1-8B"


def found(name: str) -> ModelMatch:
    return resolve(name, IDS)


@pytest.mark.parametrize("id", IDS)
def test_every_id_is_itself_in_any_case(id: str) -> None:
    assert (found(id).id, found(id).how) == (id, "exact")
    assert found(id.upper()).id == id


@pytest.mark.parametrize(
    ("name", "id", "how"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", LLAMA, "alias"),
        ("Llama-3.1-8B-Instruct", LLAMA, "name pattern"),
        ("Qwen3-32B", "Qwen/Qwen3-32B", "the only Qwen3-32B"),
        ("gpt-oss-20b", "openai/gpt-oss-20b", "the only"),
        ("deepseek-ai/DeepSeek-R1-0528", "deepseek-ai/DeepSeek-R1", "alias"),
        ("Qwen/Qwen3-8B-AWQ", "Qwen/Qwen3-8B", "quantized upload of Qwen/Qwen3-8B"),
        ("somebody/Qwen3-8B-GPTQ-Int4", "Qwen/Qwen3-8B", "name pattern"),
        ("foo/Qwen3-32B", "Qwen/Qwen3-32B", "name pattern"),
        ("zai/GLM-4.5-Air", "zai-org/GLM-4.5-Air", "exact"),
        ("CohereLabs/c4ai-command-r-v01", "CohereForAI/c4ai-command-r-v01", "exact"),
        ("cpatonn/Qwen3-30B-A3B-Thinking-2507-AWQ-4bit", "Qwen/Qwen3-30B-A3B", "name pattern"),
        ("bartowski/Meta-Llama-3.1-8B-Instruct-GGUF:Q4_K_M", LLAMA, "name pattern"),
        ("turboderp/Llama-3.1-8B-Instruct-exl2", LLAMA, "name pattern"),
        ("nobody/phi-4", "microsoft/phi-4", "same name as microsoft/phi-4"),
    ],
)
def test_names_as_they_are_written(name: str, id: str, how: str) -> None:
    match = found(name)
    assert match.id == id
    assert match.how.startswith(how)
    assert not match.path


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("/models/Qwen2.5-7B-Instruct", "Qwen/Qwen2.5-7B"),
        ("/mnt/models/Qwen2.5-7B-Instruct/", "Qwen/Qwen2.5-7B"),
        ("./Qwen3-14B", "Qwen/Qwen3-14B"),
        ("s3://bucket/meta-llama/Llama-3.3-70B-Instruct", "meta-llama/Llama-3.3-70B-Instruct"),
        ("gs://models/Qwen3-14B/1", "Qwen/Qwen3-14B"),
        ("pvc://claim/Qwen3-14B/snapshots/latest", "Qwen/Qwen3-14B"),
        ("/cache/hub/models--Qwen--Qwen3-8B/snapshots/" + "0f" * 20, "Qwen/Qwen3-8B"),
        ("/m/Meta-Llama-3.1-8B-Instruct-Q4_K_M.gguf", LLAMA),
        ("C:\\models\\Qwen3-14B", "Qwen/Qwen3-14B"),
        ("/m/Llama-3.1-8B-Instruct-Q8_0-00001-of-00002.gguf", LLAMA),
    ],
)
def test_a_path_is_resolved_on_what_it_ends_in_and_says_so(name: str, id: str) -> None:
    match = found(name)
    assert match.id == id
    assert match.path
    assert "inferred from a path" in match.how
    assert "a folder may hold anything" in match.may_differ


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("hf://Qwen/Qwen3-8B:main", "Qwen/Qwen3-8B"),
        ("hf://Qwen/Qwen3-8B@v1", "Qwen/Qwen3-8B"),
        ("https://huggingface.co/Qwen/Qwen3-14B/tree/main", "Qwen/Qwen3-14B"),
    ],
)
def test_a_hub_address_is_no_path(name: str, id: str) -> None:
    assert found(name).id == id
    assert not found(name).path


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("/mnt/models", "the path does not name a model"),
        ("/model", "the path does not name a model"),
        ("s3://bucket", "the path does not name a model"),
        ("$MODEL_ID", "the name holds a variable"),
        ("/models/${MODEL}", "the name holds a variable"),
        ("{{ .Values.model }}", "the name holds a variable"),
        ("", "no model is named"),
        ("x" * 400, "too long for a name"),
    ],
)
def test_what_names_no_model_is_unknown(name: str, why: str) -> None:
    match = found(name)
    assert (match.id, match.how) == (None, why)


@pytest.mark.parametrize(
    "name",
    ["acme/llama-3.1-8b-support", "Qwen/Qwen3-9B", "meta-llama/Llama-3.1-80B-Instruct",
     "microsoft/Phi-4-mini-flash-reasoning", "llama3.1:8b"],
)  # fmt: skip
def test_an_unknown_name_has_near_ones_at_most(name: str) -> None:
    match = found(name)
    assert match.id is None
    assert match.how == "not in the catalogue"
    assert match.near
    assert set(match.near) <= {*IDS, *known_ids()}


def test_near_prefers_the_owner_that_was_written() -> None:
    assert near("Qwen/Qwen3-9B", IDS)[0].startswith("Qwen/")
    assert near("zzzzzz/0000", IDS) == ()


def test_the_upload_and_its_sizes_come_along() -> None:
    match = found("Qwen/Qwen2.5-72B-Instruct-AWQ")
    assert match.checkpoint is not None
    assert match.checkpoint.id == "Qwen/Qwen2.5-72B-Instruct-AWQ"
    assert match.differs["intermediate_size"] == 29696


def test_a_catalogue_entry_brings_its_own_list_of_modules() -> None:
    match = found("nvidia/GLM-5.1-NVFP4")
    assert match.checkpoint is not None
    assert match.checkpoint.scheme is not None
    assert "layers.{0,78}*" in match.checkpoint.scheme.excluded


def test_an_upload_whose_base_is_unknown_has_no_id() -> None:
    match = found("openbmb/MiniCPM-o-4_5-awq")
    assert match.id is None
    assert match.checkpoint is not None
    assert "not in the catalogue" in match.how


def test_a_pruned_upload_is_not_its_base() -> None:
    assert found("atbender/Qwen3.6-VL-REAP-26B-A3B-W4A16").id is None


def test_what_a_pattern_leaves_open_is_told() -> None:
    assert any("max_position" in one for one in found("x/Qwen2.5-7B-Instruct").may_differ)
    assert "quantization_config" in found("x/Qwen3-8B-AWQ").may_differ
    assert not any("405B" in one for one in found("Llama-3.1-8B-Instruct").may_differ)


@pytest.mark.parametrize(
    ("name", "word", "weight"),
    [
        ("x/Qwen3-8B-AWQ", "awq-int4", "int4"),
        ("x/Qwen3-8B-FP8", "fp8", "fp8_e4m3"),
        ("x/Qwen3-8B-FP8-dynamic", "fp8-channel", "fp8_e4m3"),
        ("x/Qwen3-8B-NVFP4", "nvfp4", "nvfp4"),
        ("x/Qwen3-8B-NVFP4A16", "nvfp4-w4a16", "nvfp4"),
        ("x/Qwen3-8B-GPTQ-Int4", "gptq-int4", "int4"),
        ("x/Qwen3-8B-GPTQ-Int8", "gptq-int8", "int8"),
        ("x/Qwen3-8B-quantized.w4a16", "int4", "int4"),
        ("x/Qwen3-8B-quantized.w8a8", "int8", "int8"),
        ("x/Qwen3-8B-bnb-4bit", "bnb-nf4", "nf4"),
        ("x/Qwen3-8B-int4-AutoRound", "autoround-int4", "int4"),
        ("x/Qwen3-8B-GGUF:Q4_K_M", "q4_k_m", "q4_k_m"),
        ("/m/Qwen3-8B-Q8_0.gguf", "q8_0", "q8_0"),
        ("/m/Qwen3-8B.IQ4_XS.gguf", "iq4_xs", "iq4_xs"),
    ],
)
def test_what_a_name_says_of_packing_is_a_guess(name: str, word: str, weight: str) -> None:
    match = found(name)
    assert match.words == word
    assert match.guess is not None
    assert match.guess.weight == weight
    assert match.guess.seen == "name"
    assert match.guess.is_guess


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "x/hawq-7b", "x/print8-7b", "x/model-q4"])
def test_a_name_without_words_guesses_nothing(name: str) -> None:
    assert packing_words(name) == ("", None)


def test_words_are_precisions_with_the_same_scheme() -> None:
    for line in (DATA / "suffixes.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        scheme = from_words(row["word"], "name")
        assert scheme is not None
        name = {"method": scheme.method, "weight": scheme.weight, "bits": scheme.bits}
        assert name == {key: row["scheme"][key] for key in name}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Qwen/Qwen3-30B-A3B", {30_000.0, 3_000.0}),
        ("mistralai/Mixtral-8x7B-v0.1", {56_000.0}),
        ("x/SmolLM2-135M", {135.0}),
        ("x/Ling-1T", {1_000_000.0}),
        ("x/model-4bit", set()),
        ("x/Qwen2.5-0.5B-Instruct", {500.0}),
    ],
)
def test_sizes_that_a_name_speaks_of(name: str, expected: set[float]) -> None:
    assert sizes(name) == expected


def test_sizes_that_contradict() -> None:
    assert not same_size("x/a-7b", "y/a-8B")
    assert same_size("x/a-30b", "y/a-30B-A3B")
    assert same_size("x/a", "y/a-8B")


SIZED = re.compile(r"(?<![A-Za-z0-9.])\d+(?:\.\d+)?(?=[BbMm](?![A-Za-z0-9]))")
WITH_SIZE = [id for id in IDS if SIZED.search(id.rpartition("/")[2])]


@given(
    id=st.sampled_from(WITH_SIZE),
    number=st.integers(1, 999),
    ending=st.sampled_from(["", "-AWQ", "-FP8", "-GGUF", "-Instruct", "-GPTQ-Int4"]),
    owner=st.sampled_from(["", "somebody/", "/models/", None]),
)
def test_another_parameter_count_never_resolves_to_this_size(
    id: str, number: int, ending: str, owner: str | None
) -> None:
    own, _, last = id.rpartition("/")
    changed = SIZED.sub(str(number), last, count=1)
    name = f"{own}/{changed}{ending}" if owner is None else f"{owner}{changed}{ending}"
    match = found(name)
    # An alias was told apart by its shapes, whatever its name says.
    if match.id is not None and "alias of" not in match.how:
        assert same_size(changed, match.id)
    if not same_size(changed, id):
        assert match.id != id


@given(st.text(max_size=60))
def test_any_text_is_resolved_or_not_but_never_raises(name: str) -> None:
    match = found(name)
    assert match.id is None or match.id in IDS


def test_a_lookup_takes_milliseconds() -> None:
    resolve("x/Llama-3.1-8B-Instruct-AWQ", IDS)
    start = time.perf_counter()
    for _ in range(20):
        resolve("x/Llama-3.1-8B-Instruct-AWQ", IDS)
    assert (time.perf_counter() - start) / 20 < 0.005
