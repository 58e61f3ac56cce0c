"""Names in prose, inside a packer's own, and with what packers append."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import capcheck_models
from capcheck import Architecture
from capcheck.testing import Bench
from capcheck_models.build import architecture
from capcheck_models.checkpoints import checkpoint
from capcheck_models.loose_names import LooseNames, words
from capcheck_models.names import ModelMatch, resolve
from capcheck_models.packed_names import named_inside, packing_words, suffix_doubts, without_suffix
from capcheck_quantization.layouts import excluded

DATA = Path(capcheck_models.__file__).parent / "data"
RECORDS = {
    record["id"]: record
    for record in map(json.loads, (DATA / "models.jsonl").read_text("utf-8").splitlines())
}
BENCH = Bench()


def found(name: str) -> ModelMatch:
    match = resolve(name, RECORDS)
    return match if match.id is not None else resolve("-".join(name.split()), RECORDS)


@pytest.mark.parametrize(
    ("name", "id"),
    [
        ("Llama 3 8B", "meta-llama/Meta-Llama-3-8B"),
        ("Qwen2.5 32B Instruct AWQ", "Qwen/Qwen2.5-32B"),
        ("Qwen 2.5 VL 7B", "Qwen/Qwen2.5-VL-7B-Instruct"),
        ("mistral small 24b", "mistralai/Mistral-Small-24B-Instruct-2501"),
        ("llama-65b-instruct", "huggyllama/llama-65b"),
        ("LLaMA-33B", "huggyllama/llama-30b"),
        ("unsloth QwQ-32B bnb-4bit", "Qwen/QwQ-32B"),
        ("Qwen3 30B", "Qwen/Qwen3-30B-A3B"),
        ("gpt oss 120b", "openai/gpt-oss-120b"),
        ("Llama 4 Scout", "meta-llama/Llama-4-Scout-17B-16E-Instruct"),
        ("Command R+", "CohereForAI/c4ai-command-r-plus"),
        ("deepseek r1 671b", "deepseek-ai/DeepSeek-R1"),
        ("gemma-4-26B-AWQ", "google/gemma-4-26B-A4B"),
        ("Qwen2-VL-2B fine-tune", "Qwen/Qwen2-VL-2B-Instruct"),
    ],
)
def test_names_in_prose(name: str, id: str) -> None:
    assert found(name).id == id


@pytest.mark.parametrize(
    "name",
    [
        "mistral-7b",  # three releases of three architectures
        "Command R",  # two architectures
        "somebody/deepseek_r1_finetune_16bit",  # a fine-tune of no told size
        "acme/llama-3.1-8b-support",
        "acme/microsoft-Phi-3-mini-4k-instruct",  # another owner's model of that name
        "8B-parameter model",
        "Qwen3 9B",
        "Llama-3-8B-日本語",
        "Gemma 4 multimodal checkpoint",
    ],
)
def test_what_is_not_clear_stays_unknown(name: str) -> None:
    assert found(name).id is None


def test_a_loose_name_says_that_the_length_may_be_another() -> None:
    match = found("Qwen2.5 VL 7B")
    assert match.how.startswith("loosely spelled: Qwen/Qwen2.5-VL-7B")
    assert any("max_position_embeddings" in one for one in match.may_differ)


def test_an_index_gives_nothing_where_two_architectures_share_the_words() -> None:
    index = LooseNames([("x/Foo-7B-v0.1", "a"), ("x/Foo-7B-v0.2", "b"), ("y/bar-7b-it", "c")])
    assert index.find("foo 7b") is None
    assert index.find("Foo-7B v0.2") is not None
    only = index.find("Bar 7B")
    assert only is not None
    assert (only.base, only.entry, only.same_words) == ("c", "y/bar-7b-it", False)


def test_numbers_are_words_apart_from_letters() -> None:
    assert words("Qwen/Qwen2.5-VL-72B") == ("qwen", "2.5", "vl", "72b")
    assert words("InternVL2_5-8B") == ("internvl", "2.5", "8b")
    assert words("Mixtral-8x7B") == ("mixtral", "8x7b")


@given(st.text(max_size=80))
def test_any_text_has_words_or_none(name: str) -> None:
    assert all(word in name.lower().replace("_", ".").replace("+", "plus") for word in words(name))


@pytest.mark.parametrize(
    ("name", "left"),
    [
        ("x/Qwen3.8-27B-MLX-6bit", "x/Qwen3.8-27B"),
        ("x/Qwen3-235B-A22B-w8a8-QuaRot", "x/Qwen3-235B-A22B"),
        ("x/Qwen3.8-27B-Quark-AWQ-INT4-W4A16", "x/Qwen3.8-27B"),
        ("x/DeepSeek-R1-WMXFP4-AMXFP4-Scale-UINT8-MoE-Quant", "x/DeepSeek-R1"),
        ("x/gemma-3-27b-it-GPTQ-4b-128g", "x/gemma-3-27b-it"),
        ("x/gpt-oss-20b-mxfp4-abliterated-v2", "x/gpt-oss-20b"),
        ("x/Qwen3.8-27B-EXL3-3.75bpw", "x/Qwen3.8-27B"),
    ],
)
def test_what_packers_append_is_taken_off(name: str, left: str) -> None:
    assert without_suffix(name)[-1] == left


def test_words_of_another_model_stay() -> None:
    assert without_suffix("x/Qwen3.8-Flash-Next-REAP-288") == ()
    assert without_suffix("x/Qwen3-8B-Reasoning-Distilled") == ()


def test_a_fine_tune_of_the_same_packing_is_not_another_packing() -> None:
    assert suffix_doubts("x/m-7b-heretic", "x/m-7b") == ("MTP or vision tensors dropped",)
    assert "quantization_config" in suffix_doubts("x/m-7b-4bit", "x/m-7b")
    assert suffix_doubts("x/m-7b", "x/m-7b") == ()


def test_a_packers_name_holds_the_models_own() -> None:
    owners = {"qwen": "Qwen"}
    assert list(named_inside("bartowski/Qwen_Qwen3-8B", owners)) == ["Qwen/Qwen3-8B"]
    assert list(named_inside("a/Huihui-Qwen3-8B", owners)) == ["a/Qwen3-8B"]
    assert found("bartowski/Qwen_Qwen3-32B-GGUF:Q4_K_M").id == "Qwen/Qwen3-32B"


def test_the_words_of_sixteen_bit_do_not_hide_a_packing() -> None:
    for name in ("x/Qwen3-8B-BF16-INT4-AWQ", "x/Qwen3-8B-oQ4e-fp16"):
        (case,) = BENCH.cases(spec(name))
        scheme = case.model.get("model").scheme
        assert not scheme.known or scheme.get() is not None


def test_an_owners_habit_is_a_recipe_and_no_fact() -> None:
    word, scheme = packing_words("cyankiwi/Qwen3-8B-AWQ-4bit:")
    assert word == "awq-int4"
    assert scheme is not None
    assert (scheme.seen, scheme.group, scheme.method) == ("recipe", 32, "compressed-tensors")
    assert scheme.is_guess
    assert scheme.guessed
    _, plain = packing_words("somebody/Qwen3-8B-AWQ-4bit:")
    assert plain is not None
    assert (plain.seen, plain.group) == ("name", 128)


def spec(name: str) -> str:
    return json.dumps(
        {
            "apiVersion": "capcheck/v1",
            "kind": "Deployment",
            "name": "x",
            "model": {"id": name},
            "hardware": {"accelerator": "nvidia/h200-sxm-141gb", "count": 8},
            "engine": {"name": "vllm", "version": "0.33.0"},
        }
    )


def packed_elements(built: Architecture, id: str, *roles: str) -> int:
    """Elements that the upload's scheme packs: a sum over its modules, by names and roles."""
    upload = checkpoint(id)
    assert upload is not None
    scheme = upload.scheme
    assert scheme is not None
    total = 0
    layers = [*((one, False) for one in built.layers), *((one, True) for one in built.draft)]
    for index, (one, draft) in enumerate(layers):
        for tensor in one.tensors:
            if tensor.role not in roles or not tensor.linear:
                continue
            for part in tensor.parts:
                if not excluded(scheme, index, part.name, tensor.role, draft=draft):
                    total += part.out * tensor.into * tensor.copies
    return total


def test_glm_5_3_flash_has_as_many_fp8_elements_as_its_files() -> None:
    # Sum of the headers of its 62 safetensors files: 314.397e9 elements of FP8.
    id = "zai-org/GLM-5.3-Flash"
    built = architecture(RECORDS[id])
    every = ("attention", "mlp", "expert", "shared_expert", "indexer", "state", "router")
    assert packed_elements(built, id, *every) == 314_396_639_232


def test_mimo_v2_6_flash_has_as_many_fp8_elements_as_its_files() -> None:
    # Headers: 3,859,808,256 elements of FP8; 160,859,947,008 bytes of packed experts and scales.
    id = "XiaomiMiMo/MiMo-V2.6-Flash-RL"
    built = architecture(RECORDS[id])
    assert packed_elements(built, id, "attention", "mlp") == 3_859_808_256
    assert packed_elements(built, id, "expert") * 17 // 32 == 160_859_947_008


def test_nemotron_nano_4b_packs_as_many_linears_as_its_total_tells() -> None:
    # One scale for each packed matrix: the FP8 upload counts 68 elements more than the base.
    upload = checkpoint("nvidia/NVIDIA-Nemotron-3-Nano-4B-FP8")
    assert upload is not None
    assert upload.scheme is not None
    built = architecture(RECORDS["nvidia/NVIDIA-Nemotron-3-Nano-4B-BF16"])
    packed = {
        (index, part.name)
        for index, layer in enumerate(built.layers)
        for tensor in layer.tensors
        for part in tensor.parts
        if tensor.linear and not excluded(upload.scheme, index, part.name, tensor.role)
    }
    assert len(packed) == 68


@pytest.mark.parametrize("type", ["F16", "f16", "fp16"])
def test_a_file_of_sixteen_bit_values_is_the_models(type: str) -> None:
    assert found(f"Llama-3.1-8B-Instruct-{type}").id == "meta-llama/Llama-3.1-8B"
