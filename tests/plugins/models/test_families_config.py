"""What config.json alone gives, and what a stranger's config.json cannot do."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import capcheck_models
from capcheck.architecture import Architecture
from capcheck_models import families
from capcheck_models.build import BadConfig, UnknownFamily, architecture

DATA = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"
RECORDS: dict[str, dict[str, Any]] = {
    record["id"]: record for record in map(json.loads, DATA.read_text("utf-8").splitlines())
}


def model(id: str) -> Architecture:
    return architecture(RECORDS[id])


LENGTHS = {  # most, the same without yarn's factor, served when none is asked for
    "meta-llama/Llama-3.1-8B": (131_072, 131_072, 131_072),
    "deepseek-ai/DeepSeek-R1": (163_840, 163_840, 163_840),
    "Qwen/Qwen2.5-7B-Instruct": (32_768, 32_768, 32_768),
    "Qwen/QwQ-32B": (40_960, 40_960, 40_960),
    "google/gemma-3-27b-it": (131_072, 131_072, 131_072),
    "microsoft/Phi-3.5-mini-instruct": (131_072, 131_072, 4096),
    "internlm/internlm2_5-7b-chat": (65_536, 65_536, 65_536),
    "openai/gpt-oss-120b": (131_072, 131_072, 131_072),
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": (10_485_760,) * 3,
}


@pytest.mark.parametrize(("id", "told"), LENGTHS.items())
def test_lengths_that_configurations_promise(id: str, told: tuple[int, int, int]) -> None:
    found = model(id)
    assert (
        found.max_positions,
        found.most_positions_without_yarn,
        found.start_positions,
    ) == told


def plain(**more: Any) -> dict[str, Any]:
    return {
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 100,
        "intermediate_size": 128,
        "max_position_embeddings": 4096,
        **more,
    }


def test_scaled_lengths() -> None:
    yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 1024}
    found = architecture(plain(max_position_embeddings=1024, rope_scaling=yarn))
    assert (found.max_positions, found.most_positions_without_yarn) == (4096, 1024)
    linear = architecture(plain(rope_scaling={"type": "linear", "factor": 2.0}))
    assert linear.max_positions == 8192
    assert linear.ropes[0].positions == 8192
    assert architecture(plain(model_max_length=512)).max_positions == 512
    untold = plain()
    del untold["max_position_embeddings"]
    assert architecture(untold).max_positions is None


def test_an_untold_dtype_is_empty() -> None:
    assert architecture(plain()).dtype == ""


def test_every_listed_type_has_a_family() -> None:
    for name in families.MODEL_TYPES:
        assert callable(families.family(name))


def test_an_unlisted_type_counts_by_its_class() -> None:
    found = architecture(plain(model_type="my_llama", architectures=["LlamaForCausalLM"]), "me/it")
    assert (found.family, found.id) == ("llama", "me/it")
    assert any("my_llama" in doubt for doubt in found.doubts)
    assert families.of_class("Qwen3MoeForCausalLM") == "qwen3_moe"
    assert families.of_class("GPT2LMHeadModel") == "gpt2"
    assert families.of_class("Nonsense") == ""


def test_an_unlisted_wrapper_counts_by_its_text_part() -> None:
    config = {"model_type": "new_vl", "text_config": plain(), "vision_config": {"hidden_size": 8}}
    found = architecture(config)
    assert found.parameters == architecture(plain()).parameters
    assert any("towers" in doubt for doubt in found.doubts)


def test_an_unknown_type_names_what_it_resembles() -> None:
    with pytest.raises(UnknownFamily) as caught:
        architecture(plain(model_type="qwen33"))
    assert caught.value.model_type == "qwen33"
    assert "qwen3" in caught.value.near


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("hidden_size", None),
        ("hidden_size", -1),
        ("hidden_size", "4096"),
        ("hidden_size", True),
        ("hidden_size", 10**12),
        ("num_hidden_layers", 10**6),
        ("num_attention_heads", 3),
        ("num_attention_heads", 0),
        ("rope_scaling", [1]),
        ("rope_scaling", {"factor": "many"}),
        ("intermediate_size", 0),
        ("tie_word_embeddings", "yes"),
        ("model_type", 7),
        ("sliding_window", {}),
    ],
)
def test_a_bad_value_is_named(key: str, value: object) -> None:
    with pytest.raises(BadConfig) as caught:
        architecture(plain(**{key: value}))
    assert key in caught.value.key or caught.value.key.startswith("rope_scaling")
    assert caught.value.expected


def test_an_empty_configuration_is_refused() -> None:
    with pytest.raises(BadConfig):
        architecture({})


STRANGE: tuple[object, ...] = (
    None, -1, 0, 1, "x", [], {}, True, 1.5, float("nan"), 2**70, [None], ["x"], {"a": 1},
    {"rope_type": "linear", "factor": 1e300},
)  # fmt: skip


def paths(config: dict[str, Any], at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*at, key))
        if isinstance(value, dict):
            found += paths(value, (*at, key))
    return found


SAMPLES = [
    "meta-llama/Llama-3.1-8B",
    "Qwen/Qwen3-30B-A3B",
    "deepseek-ai/DeepSeek-V3.2",
    "deepseek-ai/DeepSeek-V4-Flash",
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16",
    "google/gemma-4-E2B-it",
    "moonshotai/Kimi-K3",
    "meta-llama/Llama-3.2-11B-Vision",
    "databricks/dbrx-instruct",
]


@pytest.mark.parametrize("id", SAMPLES)
def test_hostile_values_never_escape(id: str) -> None:
    """Whatever one value of a stranger's file is, the error says which key is wrong."""
    text = json.dumps(RECORDS[id]["config"])
    for path in paths(RECORDS[id]["config"]):
        for value in STRANGE:
            config = inner = json.loads(text)
            for key in path[:-1]:
                inner = inner[key]
            inner[path[-1]] = value
            try:
                built = architecture(config)
            except (BadConfig, UnknownFamily):
                continue
            assert built.parameters > 0


def test_a_deeply_nested_configuration_is_refused() -> None:
    config: dict[str, Any] = {"model_type": "mistral3"}
    for _ in range(200):
        config = {"model_type": "mistral3", "text_config": config, "vision_config": {}}
    with pytest.raises((BadConfig, UnknownFamily)):
        architecture(config)
