"""Real models as the headers of their GGUF files describe them, against their config.json."""

from __future__ import annotations

import contextlib
import json
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import capcheck_models
from capcheck import Architecture
from capcheck.gguf_header import GgufArray, GgufHeader, GgufTensor, GgufValue
from capcheck.model_records import trimmed
from capcheck_models import gguf
from capcheck_models.build import architecture
from capcheck_models.gguf_types import parts_of
from capcheck_models.mistral import config_of as of_params
from capcheck_models.source import Models

RECORDS = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"

# What llama.cpp's converter writes for each: its keys, whether the head is stored, the vocabulary.
MODELS: dict[str, tuple[str, dict[str, GgufValue], bool, int]] = {
    "meta-llama/Llama-3.1-8B": (
        "llama",
        {"block_count": 32, "context_length": 131072, "embedding_length": 4096,
         "feed_forward_length": 14336, "attention.head_count": 32,
         "attention.head_count_kv": 8, "attention.key_length": 128, "vocab_size": 128256},
        False, 128256,
    ),
    "mistralai/Mixtral-8x7B-Instruct-v0.1": (
        "llama",
        {"block_count": 32, "context_length": 32768, "embedding_length": 4096,
         "feed_forward_length": 14336, "attention.head_count": 32,
         "attention.head_count_kv": 8, "expert_count": 8, "expert_used_count": 2},
        False, 32000,
    ),
    "Qwen/Qwen3-30B-A3B": (
        "qwen3moe",
        {"block_count": 48, "context_length": 40960, "embedding_length": 2048,
         "feed_forward_length": 6144, "attention.head_count": 32,
         "attention.head_count_kv": 4, "attention.key_length": 128, "expert_count": 128,
         "expert_used_count": 8, "expert_feed_forward_length": 768},
        False, 151936,
    ),
    "google/gemma-2-9b": (
        "gemma2",
        {"block_count": 42, "context_length": 8192, "embedding_length": 3584,
         "feed_forward_length": 14336, "attention.head_count": 16,
         "attention.head_count_kv": 8, "attention.key_length": 256,
         "attention.sliding_window": 4096},
        True, 256000,
    ),
    "openai/gpt-oss-20b": (
        "gpt-oss",
        {"block_count": 24, "context_length": 131072, "embedding_length": 2880,
         "feed_forward_length": 2880, "attention.head_count": 64,
         "attention.head_count_kv": 8, "attention.key_length": 64, "expert_count": 32,
         "expert_used_count": 4, "expert_feed_forward_length": 2880,
         "attention.sliding_window": 128},
        False, 201088,
    ),
    "deepseek-ai/DeepSeek-V2-Lite-Chat": (
        "deepseek2",
        {"block_count": 27, "context_length": 163840, "embedding_length": 2048,
         "feed_forward_length": 10944, "attention.head_count": 16,
         "attention.head_count_kv": 16, "attention.kv_lora_rank": 512,
         "attention.key_length": 192, "attention.value_length": 128,
         "rope.dimension_count": 64, "expert_count": 64, "expert_used_count": 6,
         "expert_feed_forward_length": 1408, "expert_shared_count": 2,
         "leading_dense_block_count": 1},
        False, 102400,
    ),
}  # fmt: skip


def header_of(name: str) -> GgufHeader:
    arch, keys, tied, vocabulary = MODELS[name]
    metadata: dict[str, GgufValue] = {f"{arch}.{key}": value for key, value in keys.items()}
    hidden = keys["embedding_length"]
    assert isinstance(hidden, int)
    ends = ["token_embd.weight"] if tied else ["token_embd.weight", "output.weight"]
    tensors = tuple(GgufTensor(end, (hidden, vocabulary), "F16", 0) for end in ends)
    return GgufHeader(3, {"general.architecture": arch, **metadata}, tensors)


def listed(name: str) -> Architecture:
    rows = (json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines())
    return architecture(next(row for row in rows if row["id"] == name))


@pytest.mark.parametrize("name", MODELS)
def test_a_header_gives_the_same_model_as_its_config(name: str) -> None:
    found, known = architecture(gguf.config_of(header_of(name))), listed(name)
    assert found.parameters == known.parameters
    assert [layer.cache for layer in found.layers] == [layer.cache for layer in known.layers]
    assert found.max_positions == known.max_positions
    assert found.tied == known.tied


def test_counts_that_are_published() -> None:
    """Meta and OpenAI: 8.03 and 20.91 thousand million parameters."""
    counts = {
        "meta-llama/Llama-3.1-8B": 8_030_261_248, "openai/gpt-oss-20b": 20_914_757_184,
    }  # fmt: skip
    for name, count in counts.items():
        assert architecture(gguf.config_of(header_of(name))).parameters == count


def test_lists_of_one_number_are_that_number() -> None:
    header = header_of("meta-llama/Llama-3.1-8B")
    metadata = {**header.metadata, "llama.attention.head_count_kv": GgufArray(32, (8,) * 32)}
    assert gguf.config_of(header._replace(metadata=metadata))["num_key_value_heads"] == 8
    metadata["llama.attention.head_count_kv"] = GgufArray(2, (8, 4))
    with pytest.raises(ValueError, match="differs from layer to layer"):
        gguf.config_of(header._replace(metadata=metadata))


def test_an_unknown_architecture_is_said() -> None:
    header = GgufHeader(3, {"general.architecture": "acme"}, ())
    with pytest.raises(ValueError, match="architecture 'acme' is not known"):
        gguf.config_of(header)


def stored(model: Architecture) -> tuple[GgufTensor, ...]:
    """Mixtral's tensors, the second half of its experts' down projections in more bits."""
    names = {"attn_q": "Q4_K", "attn_k": "Q8_0", "attn_v": "Q8_0", "attn_output": "Q4_K",
             "ffn_gate_exps": "Q4_K", "ffn_up_exps": "Q4_K", "ffn_down_exps": "Q4_K"}  # fmt: skip
    found = [GgufTensor("token_embd.weight", (4096, 32000), "Q4_K", 1),
             GgufTensor("output.weight", (4096, 32000), "Q6_K", 1)]  # fmt: skip
    for number in range(len(model.layers)):
        for name, kind in names.items():
            more = name == "ffn_down_exps" and number >= 16
            whole = f"blk.{number}.{name}.weight"
            found.append(GgufTensor(whole, (4096, 8), "Q6_K" if more else kind, 1))
    return tuple(found)


def test_the_type_of_each_module() -> None:
    model = listed("mistralai/Mixtral-8x7B-Instruct-v0.1")
    header = GgufHeader(3, {"general.architecture": "llama"}, stored(model))
    six, eight, four = parts_of(header, model, {"Q4_K": 4.5, "Q6_K": 6.5625, "Q8_0": 8.5})
    assert (six.weight, six.bits) == ("q6_k", 6.5625)
    assert six.targets == ("lm_head", "layers.{16-31}.block_sparse_moe.experts.w2")
    assert (eight.weight, eight.targets) == (
        "q8_0", ("layers.{0-31}.self_attn.k_proj", "layers.{0-31}.self_attn.v_proj"),
    )  # fmt: skip
    assert (four.weight, four.targets) == ("q4_k", ())


def test_a_module_that_is_not_found_leaves_the_types_open() -> None:
    model = listed("mistralai/Mixtral-8x7B-Instruct-v0.1")
    header = GgufHeader(3, {"general.architecture": "llama"}, stored(model)[:-1])
    assert parts_of(header, model, {"Q4_K": 4.5, "Q6_K": 6.5625, "Q8_0": 8.5}) == ()


# Mistral's own form

MISTRAL_7B = {
    "dim": 4096, "n_layers": 32, "head_dim": 128, "hidden_dim": 14336, "n_heads": 32,
    "n_kv_heads": 8, "norm_eps": 1e-5, "vocab_size": 32768, "rope_theta": 1e6,
}  # fmt: skip


def test_mistral_7b_by_its_params() -> None:
    """The card of v0.3: 7.25 thousand million parameters."""
    assert architecture(of_params(MISTRAL_7B)).parameters == 7_248_023_552


def test_experts_in_params() -> None:
    moe = {"num_experts": 8, "num_experts_per_tok": 2}
    params = {**MISTRAL_7B, "vocab_size": 32000, "moe": moe}
    assert architecture(of_params(params)).parameters == 46_702_792_704


def test_windows_that_alternate() -> None:
    params = {**MISTRAL_7B, "n_layers": 5, "sliding_window": [None, 1024, 1024, 1024]}
    config = of_params(params)
    assert config["sliding_window"] == 1024
    assert config["layer_types"] == ["full_attention", *["sliding_attention"] * 3, "full_attention"]


@pytest.mark.parametrize(
    ("more", "why"),
    [
        ({"vision_encoder": {"hidden_size": 1024}}, "vision_encoder is not read"),
        ({"quantization": {"qformat_weight": "int3"}}, "is not known"),
        ({"sliding_window": [1, 2]}, "expected one size"),
        ({"moe": {"num_experts": 8, "num_shared_experts": 1}}, "no family"),
    ],
)
def test_params_that_cannot_be_told(more: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        of_params({**MISTRAL_7B, **more})


_VALUE = st.integers(0, 2**32) | st.floats() | st.booleans() | st.text(max_size=4) | st.builds(
    GgufArray, st.integers(0, 9), st.lists(st.integers(-1, 9), max_size=3).map(tuple)
)  # fmt: skip
_KEYS = sorted({key for _, keys, _, _ in MODELS.values() for key in keys})
_ARCHITECTURES = sorted({arch for arch, _, _, _ in MODELS.values()})


@settings(max_examples=200, deadline=None)
@given(
    st.sampled_from(_ARCHITECTURES),
    st.dictionaries(st.sampled_from(_KEYS), _VALUE),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), max_size=2),
)
def test_no_header_raises_anything_but_value_errors(
    arch: str, keys: dict[str, GgufValue], shapes: list[tuple[int, int]]
) -> None:
    names = ("token_embd.weight", "output.weight")
    tensors = tuple(
        GgufTensor(name, shape, "Q8_0", 1) for name, shape in zip(names, shapes, strict=False)
    )
    metadata = {"general.architecture": arch, **{f"{arch}.{key}": keys[key] for key in keys}}
    with contextlib.suppress(ValueError):
        Models().build({"gguf": GgufHeader(3, metadata, tensors)}, "acme")


def test_trimmed_configurations_are_the_same_models() -> None:
    rows = [json.loads(line) for line in RECORDS.read_text(encoding="utf-8").splitlines()]
    whole = [row for row in rows if "incomplete" not in row]
    assert len(whole) > 100
    for row in whole:
        noisy = {**row["config"], "transformers_version": "5", "bos_token_id": 1, "top_k": 50}
        kept = trimmed(noisy)
        assert kept.keys() <= row["config"].keys(), row["id"]
        same = architecture(row["config"])._replace(config={})
        assert architecture(kept)._replace(config={}) == same, row["id"]
