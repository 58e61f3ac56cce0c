"""The catalogue against the families: every record builds, and counts to the last parameter."""

from __future__ import annotations

import json
import time
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema
import pytest

import capcheck_models
from capcheck.architecture import Architecture, Layer, Tensor
from capcheck_models.build import BadConfig, UnknownFamily, architecture

DATA = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"
SCHEMA = Path(__file__).parents[3] / "schemas" / "model.schema.json"
RECORDS: dict[str, dict[str, Any]] = {
    record["id"]: record for record in map(json.loads, DATA.read_text("utf-8").splitlines())
}
COMPLETE = [id for id, record in RECORDS.items() if "incomplete" not in record]
COUNTED = [id for id in COMPLETE if "parameters" in RECORDS[id]]

# Prediction layers whose size is proven by the published total: what is left over is the router
# bias of the prediction layers (one element an expert), or what the note says.
PROVEN_DRAFTS = {
    "Qwen/Qwen3-Next-80B-A3B-Instruct": 0,
    "Qwen/Qwen3.5-0.8B": 0,
    "Qwen/Qwen3.5-9B": 0,
    "Qwen/Qwen3.6-27B": 0,
    "Qwen/Qwen3.6-35B-A3B": 0,
    "Qwen/Qwen3.8-2.4T-A95B": 0,
    "Qwen/Qwen3.8-Flash-Next": 35,  # constants of the n-gram hash
    "XiaomiMiMo/MiMo-V2.5-Pro": 0,
    "deepseek-ai/DeepSeek-R1": 256,
    "deepseek-ai/DeepSeek-V3.2": 256,
    "deepseek-ai/DeepSeek-V4-Flash": 256 + 3 * 129_280 * 6,  # and the hash tables of three layers
    "deepseek-ai/DeepSeek-V4-Pro": 384 + 3 * 129_280 * 6,
    "inclusionAI/Ling-3.0-flash": 512,
    "meituan-longcat/LongCat-Flash-Chat": 0,
    "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-FP8": -20_480,  # its total leaves the bias out
    "stepfun-ai/Step-3.5-Flash": 0,
    "tencent/Hy3": 192,
    "zai-org/GLM-4.5": 160,
    "zai-org/GLM-4.5-Air": 128,
    "zai-org/GLM-4.6": 160,
    "zai-org/GLM-4.7": 160,
    "zai-org/GLM-5": 256,
    "zai-org/GLM-5.2": 256,
}
PROVEN_MTP_FIELDS = {
    "XiaomiMiMo/MiMo-7B-Base": 210_790_400,
    "baidu/ERNIE-4.5-21B-A3B-PT": 123_217_920,
}


@cache
def built(id: str) -> Architecture:
    return architecture(RECORDS[id])


def elements(layers: tuple[Layer, ...], outer: tuple[Tensor, ...]) -> int:
    tensors = [*outer, *(tensor for layer in layers for tensor in layer.tensors)]
    return sum(tensor.elements for tensor in tensors)


def draft_parameters(id: str) -> int:
    return elements(built(id).draft, built(id).draft_outer)


def test_records_are_sorted_unique_and_follow_the_schema() -> None:
    lines = DATA.read_text("utf-8").splitlines()
    assert len(RECORDS) == len(lines) >= 407
    assert list(RECORDS) == sorted(RECORDS, key=str.lower)
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text("utf-8")))
    for record in RECORDS.values():
        assert not list(validator.iter_errors(record)), record["id"]


def test_lines_are_json_that_any_reader_accepts() -> None:
    def refuse(constant: str) -> None:
        raise AssertionError(constant)

    for line in DATA.read_text("utf-8").splitlines():
        json.loads(line, parse_constant=refuse)


def test_nearly_all_records_are_counted() -> None:
    assert len(RECORDS) - len(COMPLETE) <= 3
    assert len(COMPLETE) - len(COUNTED) <= 1


@pytest.mark.parametrize("id", COUNTED)
def test_parameters_are_exact(id: str) -> None:
    assert built(id).parameters == RECORDS[id]["parameters"]


@pytest.mark.parametrize("id", [id for id in COMPLETE if "active_parameters" in RECORDS[id]])
def test_active_parameters(id: str) -> None:
    told = RECORDS[id]["active_parameters"]
    assert built(id).active_parameters == pytest.approx(told, rel=1e-3)


@pytest.mark.parametrize("id", [id for id in COMPLETE if "split" in RECORDS[id]])
def test_sums_by_role_agree_with_an_independent_count(id: str) -> None:
    sums: dict[str, int] = {}
    for tensor in built(id).tensors():
        sums[tensor.role] = sums.get(tensor.role, 0) + tensor.elements
    for role, told in RECORDS[id]["split"].items():
        assert sums.get(role) == told, role


@pytest.mark.parametrize(
    "id", [id for id in COMPLETE if RECORDS[id].get("vision_parameters") and built(id).towers]
)
def test_towers_and_projectors_sum_to_what_is_told(id: str) -> None:
    towers = sum(tensor.elements for tensor in built(id).towers)
    assert towers == RECORDS[id]["vision_parameters"]


@pytest.mark.parametrize(
    "id",
    [
        id
        for id in COUNTED
        if "published_parameters" in RECORDS[id] and "published_difference" not in RECORDS[id]
    ],
)
def test_published_totals_without_a_note_are_the_exact_count(id: str) -> None:
    rest = RECORDS[id]["published_parameters"] - built(id).parameters - draft_parameters(id)
    assert rest in (0, RECORDS[id].get("router_bias_parameters", 0))


@pytest.mark.parametrize(("id", "left"), sorted(PROVEN_DRAFTS.items()))
def test_prediction_layers_explain_the_published_total(id: str, left: int) -> None:
    record = RECORDS[id]
    explained = (
        built(id).parameters + draft_parameters(id) + record.get("router_bias_parameters", 0)
    )
    assert record["published_parameters"] - explained == left
    assert record["mtp"]["parameters"] == draft_parameters(id)
    assert record["mtp"]["layers"] >= 1


@pytest.mark.parametrize(("id", "told"), sorted(PROVEN_MTP_FIELDS.items()))
def test_prediction_layers_of_totals_without_a_record(id: str, told: int) -> None:
    assert draft_parameters(id) == told


def test_a_checkpoint_without_the_prediction_layers_it_tells_has_none() -> None:
    assert built("moonshotai/Moonlight-16B-A3B-Instruct").draft == ()


@pytest.mark.parametrize("id", sorted(set(RECORDS) - set(COMPLETE)))
def test_incomplete_records_say_why_and_do_not_build(id: str) -> None:
    with pytest.raises((BadConfig, UnknownFamily)):
        architecture(RECORDS[id])


@pytest.mark.parametrize("id", COMPLETE)
def test_layers_are_consistent(id: str) -> None:
    """Caches, mixers, experts and shards agree, whatever the family."""
    for layer in {*built(id).layers, *built(id).draft}:
        cache, mixer = layer.cache, layer.mixer
        assert bool(layer.experts) == any(tensor.role == "expert" for tensor in layer.tensors)
        assert 0 <= layer.experts_per_token <= layer.experts
        if mixer.kind == "none":
            assert cache is None
        elif cache is not None and cache.kind in ("full", "sliding", "chunked"):
            assert (cache.heads, cache.key) == (mixer.kv_heads, mixer.head_size)
            assert bool(cache.window) == (cache.kind != "full")
        elif cache is not None and cache.kind == "state":
            assert cache.conv + cache.ssm > 0
        for tensor in layer.tensors:
            assert tensor.elements > 0
            assert all(part.out > 0 and part.name for part in tensor.parts)
            assert tensor.into or not tensor.linear  # what is packed is a matrix
            heads = [part.heads for part in tensor.parts if part.heads]
            assert not heads or tensor.split == "column"


@pytest.mark.parametrize("id", COMPLETE)
def test_facts_that_every_model_tells(id: str) -> None:
    model = built(id)
    assert model.id == id
    assert model.hidden > 0 < model.vocabulary
    assert model.heads >= model.kv_heads >= 1
    assert model.layers
    told = any(tensor.role == "head" for tensor in model.outer)
    assert told != model.tied
    if model.max_positions is not None:
        assert model.start_positions is not None
        assert model.start_positions <= model.max_positions
        assert model.most_positions_without_yarn is not None


def test_building_is_fast() -> None:
    """A catalogue line becomes an architecture in far less than a check may take."""
    architecture(RECORDS["deepseek-ai/DeepSeek-V3"])  # modules are imported once
    for id in COMPLETE:
        built(id)
    start = time.perf_counter()
    for id in COMPLETE:
        architecture(RECORDS[id])
    assert (time.perf_counter() - start) / len(COMPLETE) < 0.003
