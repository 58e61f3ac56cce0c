from __future__ import annotations

import json
from pathlib import Path

import pytest

import capcheck_models
from capcheck.quantization import Scheme
from capcheck_models.checkpoints import (
    Checkpoint,
    alias,
    aliases_named,
    all_checkpoints,
    checkpoint,
    checkpoints_named,
    scheme_of,
)
from capcheck_quantization.schemes import from_config

DATA = Path(capcheck_models.__file__).parent / "data"
EVERY = tuple(all_checkpoints())
MODEL_IDS = {
    json.loads(line)["id"] for line in (DATA / "models.jsonl").read_text("utf-8").splitlines()
}
FIELDS = set(Scheme._fields)


def records(name: str) -> list[dict[str, object]]:
    return [json.loads(line) for line in (DATA / name).read_text("utf-8").splitlines()]


def test_every_upload_of_the_survey_is_there() -> None:
    # 1,192 surveyed uploads, 3 more of Meta's, and 51 catalogue entries whose own lists of
    # modules are known.
    assert len(EVERY) == 1246
    assert sum(1 for one in EVERY if one.id not in MODEL_IDS) == 1195


@pytest.mark.parametrize("name", ["checkpoints.jsonl", "aliases.jsonl"])
def test_lines_are_sorted_by_a_unique_lower_case_key(name: str) -> None:
    keys = [str(record["key"]) for record in records(name)]
    assert keys == sorted(set(keys))
    assert keys == [str(record["id"]).lower() for record in records(name)]


@pytest.mark.parametrize("name", ["checkpoints.jsonl", "aliases.jsonl"])
def test_every_base_is_in_the_catalogue(name: str) -> None:
    bases = {record["base"] for record in records(name) if record["base"] is not None}
    assert bases <= MODEL_IDS


def test_how_it_is_known_is_one_of_the_words_and_on_the_scheme() -> None:
    counted: dict[str, int] = {}
    for one in EVERY:
        counted[one.seen] = counted.get(one.seen, 0) + 1
        assert one.source
        if one.scheme is not None:
            assert one.scheme.seen == one.seen
            assert all(part.seen == one.seen for part in one.scheme.parts)
    assert counted == {"config": 77, "document": 53, "total": 413, "recipe": 703}


def test_a_recipe_is_a_guess_and_says_what_is_guessed() -> None:
    for one in EVERY:
        if one.seen == "recipe" and one.scheme is not None:
            assert one.scheme.is_guess
            assert one.scheme.guessed, one.id


def test_guessed_fields_are_fields() -> None:
    for one in EVERY:
        if one.scheme is not None:
            assert set(one.scheme.guessed) <= FIELDS, one.id


def test_an_unknown_scheme_says_why() -> None:
    unknown = [one for one in EVERY if scheme_of(one) is None]
    assert {one.id for one in unknown} == {
        "Intel/Qwen3.6-35B-A3B-int2-mixed-CT-AutoRound",
        "mastouri/GLM-5.2-colibri-int4-g64-with-int8-mtp",
        "nvidia/NVIDIA-Nemotron-Labs-3-Puzzle-75B-A9B-NVFP4",
    }
    assert all(one.why for one in unknown)


def known(id: str) -> tuple[Checkpoint, Scheme]:
    found = checkpoint(id)
    assert found is not None
    scheme = scheme_of(found)
    assert scheme is not None
    return found, scheme


@pytest.mark.parametrize(
    ("id", "expected"),
    [
        ("TheBloke/Llama-2-70B-AWQ",
         {"method": "awq", "weight": "int4", "group": 128, "zero_points": True, "seen": "config"}),
        ("TheBloke/Llama-2-70B-GPTQ",
         {"method": "gptq", "group": 0, "activation_order": True, "seen": "config"}),
        ("TheBloke/Mixtral-8x7B-Instruct-v0.1-AWQ", {"excluded": ("gate",)}),
        ("Qwen/Qwen3-0.6B-FP8",
         {"method": "fp8", "block": (128, 128), "activation": "fp8", "seen": "total"}),
        ("nm-testing/DeepSeek-Coder-V2-Lite-Instruct-W8A8",
         {"weight": "int8", "activation": "int8", "excluded": ("lm_head",)}),
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8",
         {"weight": "fp8_e4m3", "group": -1, "activation_static": True}),
        ("amd/Llama-3.1-8B-Instruct-FP8-KV", {"method": "quark", "kv": "fp8_e4m3"}),
        ("Accio-Lab/occamy-1.0-NVFP4",
         {"weight": "nvfp4", "group": 16, "roles": ("expert",), "seen": "total"}),
        ("openai/gpt-oss-120b", {"method": "mxfp4", "experts_only": True, "seen": "config"}),
        ("cyankiwi/Qwen3.6-27B-AWQ-BF16-INT4",
         {"method": "compressed-tensors", "group": 32, "zero_points": True}),
    ],
)  # fmt: skip
def test_schemes_of_known_uploads(id: str, expected: dict[str, object]) -> None:
    _, scheme = known(id)
    assert {name: getattr(scheme, name) for name in expected} == expected


def test_mixed_precision_keeps_its_parts() -> None:
    _, scheme = known("unsloth/Qwen3.8-27B-NVFP4")
    assert [part.weight for part in scheme.parts] == ["fp8_e4m3", "nvfp4"]
    assert "layers.{56-63}.mlp" in scheme.parts[0].targets


def test_a_dynamic_upload_packs_a_share() -> None:
    shares = [one.scheme.share for one in EVERY if one.scheme is not None]
    assert 0.6 < min(shares) < 1.0


def test_padding_is_told() -> None:
    found, _ = known("Qwen/Qwen2.5-72B-Instruct-AWQ")
    assert found.differs["intermediate_size"] == 29696
    other, _ = known("ellamind/qwen2-72b-instruct-awq-de")
    assert other.differs["intermediate_size"] == 29568


def test_lookups_ignore_case_and_other_owners_are_found_by_name() -> None:
    assert checkpoint("qwen/qwen3-8B-awq") == checkpoint("Qwen/Qwen3-8B-AWQ")
    assert [one.id for one in checkpoints_named("qwen3-8b-awq")] == ["Qwen/Qwen3-8B-AWQ"]
    assert checkpoint("Qwen/Qwen3-8B-AW") is None
    assert checkpoint('x"/y') is None


def test_aliases() -> None:
    found = alias("unsloth/llama-3.1-8B-instruct")
    assert found is not None
    assert (found.base, found.how) == ("meta-llama/Llama-3.1-8B", "pattern")
    assert found in aliases_named("Llama-3.1-8B-Instruct")
    assert alias("nobody/nothing") is None


# Where a whole configuration was seen, reading it gives what the record says.
READABLE = [
    one for one in EVERY if one.seen == "config" and one.config.get("quant_method") and one.scheme
]


@pytest.mark.parametrize("one", READABLE, ids=[one.id for one in READABLE])
def test_the_record_is_what_the_configuration_says(one: Checkpoint) -> None:
    read = from_config(one.config, "config")
    assert read is not None
    assert one.scheme is not None
    told = [name for name in ("method", "weight", "bits", "group", "zero_points", "activation")
            if name not in one.scheme.guessed]  # fmt: skip
    assert {name: getattr(read, name) for name in told} == {
        name: getattr(one.scheme, name) for name in told
    }
