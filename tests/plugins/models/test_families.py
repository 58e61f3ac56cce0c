"""Families: what layers keep per token, how tensors are shared out, config.json alone."""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

import capcheck_models
from capcheck.architecture import Architecture, Cache, Layer, Tensor
from capcheck_models.build import architecture

DATA = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"
RECORDS: dict[str, dict[str, Any]] = {
    record["id"]: record for record in map(json.loads, DATA.read_text("utf-8").splitlines())
}


@cache
def model(id: str) -> Architecture:
    return architecture(RECORDS[id])


def kinds(id: str) -> Counter[str]:
    caches = (layer.cache for layer in model(id).layers)
    return Counter(cache.kind if cache else "" for cache in caches)


def token_elements(cache: Cache | None) -> float:
    """Elements that one token adds to a layer's cache."""
    if cache is None or cache.kind == "state":
        return 0.0
    return cache.heads * (cache.key + cache.value) / cache.compress


def named(layer: Layer, name: str) -> Tensor:
    return next(t for t in layer.tensors if any(part.name == name for part in t.parts))


# Bytes per token with a 16-bit cache, from engines' logs and documentation.
KV_BYTES = {
    "meta-llama/Meta-Llama-3-8B": 131_072,
    "meta-llama/Meta-Llama-3-70B": 327_680,
    "meta-llama/Llama-3.1-405B": 516_096,
    "Qwen/Qwen2.5-7B": 57_344,
    "Qwen/Qwen3-32B": 262_144,
    "deepseek-ai/DeepSeek-V3": 70_272,
    "deepseek-ai/DeepSeek-V2-Lite-Chat": 31_104,
    "moonshotai/Kimi-K2-Instruct": 70_272,
    "mistralai/Mixtral-8x7B-v0.1": 131_072,
    "openai/gpt-oss-20b": 49_152,
    "google/gemma-3-27b-it": 62 * 2 * 16 * 128 * 2,
    "tiiuae/falcon-7b": 32 * 2 * 64 * 2,
    "Qwen/Qwen3.5-9B": 8 * 2 * 4 * 256 * 2,
}


@pytest.mark.parametrize(("id", "told"), KV_BYTES.items())
def test_kv_bytes_per_token(id: str, told: int) -> None:
    assert sum(2 * token_elements(layer.cache) for layer in model(id).layers) == told


CACHE_KINDS = {
    "openai/gpt-oss-20b": {"full": 12, "sliding": 12},
    "google/gemma-3-27b-it": {"full": 10, "sliding": 52},
    "google/gemma-2-9b": {"full": 21, "sliding": 21},
    "mistralai/Mistral-7B-v0.1": {"sliding": 32},
    "mistralai/Mistral-7B-v0.3": {"full": 32},
    "meta-llama/Llama-4-Scout-17B-16E-Instruct": {"chunked": 36, "full": 12},
    "Qwen/Qwen3-Next-80B-A3B-Instruct": {"state": 36, "full": 12},
    "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16": {"state": 23, "": 23, "full": 6},
    "ai21labs/Jamba-v0.1": {"state": 28, "full": 4},
    "moonshotai/Kimi-Linear-48B-A3B-Instruct": {"state": 20, "latent": 7},
    "google/gemma-3n-E4B-it": {"sliding": 16, "full": 4, "": 15},
    "google/gemma-4-E2B-it": {"sliding": 12, "full": 3, "": 20},
    "deepseek-ai/DeepSeek-V4-Flash": {"sliding": 2, "latent": 41},
    "meta-llama/Llama-3.2-11B-Vision": {"full": 32, "cross": 8},
    "LiquidAI/LFM2-1.2B": {"state": 10, "full": 6},
    "MiniMaxAI/MiniMax-Text-01": {"state": 70, "full": 10},
    "stepfun-ai/Step-3.5-Flash": {"full": 12, "sliding": 33},
}


@pytest.mark.parametrize(("id", "told"), CACHE_KINDS.items())
def test_what_layers_keep(id: str, told: dict[str, int]) -> None:
    assert kinds(id) == told


def test_windows_chunks_and_shared_layers() -> None:
    assert {c.window for c in caches("google/gemma-3-27b-it", "sliding")} == {1024}
    assert {c.window for c in caches("openai/gpt-oss-120b", "sliding")} == {128}
    scout = "meta-llama/Llama-4-Scout-17B-16E-Instruct"
    assert {c.window for c in caches(scout, "chunked")} == {8192}
    shared = [layer for layer in model("google/gemma-4-E2B-it").layers if layer.cache is None]
    assert all(len(named(layer, "self_attn.q_proj").parts) == 1 for layer in shared)


def caches(id: str, kind: str) -> list[Cache]:
    found = (layer.cache for layer in model(id).layers)
    return [cache for cache in found if cache and cache.kind == kind]


def test_heads_that_differ_by_layer() -> None:
    shapes = Counter((c.kind, c.heads, c.key) for c in all_caches("google/gemma-4-26B-A4B"))
    assert shapes == {("sliding", 8, 256): 25, ("full", 2, 512): 5}
    values = {(c.kind, c.heads, c.key, c.value) for c in all_caches("XiaomiMiMo/MiMo-V2-Flash")}
    assert values == {("full", 4, 192, 128), ("sliding", 8, 192, 128)}
    queries = {
        (layer.mixer.kind, layer.mixer.heads) for layer in model("stepfun-ai/Step-3.5-Flash").layers
    }
    assert queries == {("full", 64), ("sliding", 96)}


def all_caches(id: str) -> list[Cache]:
    return [layer.cache for layer in model(id).layers if layer.cache]


def test_latents_with_and_without_an_indexer() -> None:
    (plain,) = set(all_caches("deepseek-ai/DeepSeek-V3"))
    assert (plain.heads, plain.key, plain.value, plain.indexer) == (1, 576, 0, 0)
    (sparse,) = set(all_caches("deepseek-ai/DeepSeek-V3.2"))
    assert (sparse.key, sparse.indexer) == (576, 128)
    # GLM 5.2 shares one layer's choice among four: 21 of 78 layers score.
    assert Counter(c.indexer for c in all_caches("zai-org/GLM-5.2")) == {0: 57, 128: 21}
    assert model("zai-org/GLM-5.2").layers[4].mixer.topk == 2048
    compressed = {(c.compress, c.indexer) for c in all_caches("deepseek-ai/DeepSeek-V4-Flash")}
    assert compressed == {(1, 0), (4, 128), (128, 0)}


def test_states_of_recurrent_layers() -> None:
    (delta,) = {c for c in all_caches("Qwen/Qwen3-Next-80B-A3B-Instruct") if c.kind == "state"}
    assert delta.conv == 3 * (2 * 16 * 128 + 32 * 128)
    assert delta.ssm == 32 * 128 * 128
    nano = "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16"
    (mamba,) = {c for c in all_caches(nano) if c.kind == "state"}
    assert (mamba.conv, mamba.ssm) == (3 * (4096 + 2 * 8 * 128), 64 * 64 * 128)
    assert (mamba.conv_kernel, mamba.state_dtype) == (4, "fp32")
    (convolution,) = {c for c in all_caches("LiquidAI/LFM2-1.2B") if c.kind == "state"}
    assert (convolution.conv, convolution.ssm) == (2048 * 2, 0)
    (jamba,) = {c for c in all_caches("ai21labs/Jamba-v0.1") if c.kind == "state"}
    assert (jamba.conv, jamba.ssm) == (8192 * 3, 8192 * 16)


def test_fused_tensors_keep_the_checkpoints_names_and_shares() -> None:
    layer = model("meta-llama/Meta-Llama-3-70B").layers[0]
    qkv = named(layer, "self_attn.q_proj")
    assert [(part.name, part.out, part.heads) for part in qkv.parts] == [
        ("self_attn.q_proj", 8192, 0),
        ("self_attn.k_proj", 1024, 8),
        ("self_attn.v_proj", 1024, 8),
    ]
    assert (qkv.into, qkv.split) == (8192, "column")
    assert named(layer, "self_attn.o_proj").split == "row"
    wide = named(layer, "mlp.gate_proj")
    assert [part.name for part in wide.parts] == ["mlp.gate_proj", "mlp.up_proj"]
    assert not named(layer, "input_layernorm").linear


def test_experts_are_stacked_and_routers_replicated() -> None:
    layer = model("mistralai/Mixtral-8x7B-v0.1").layers[0]
    wide = named(layer, "block_sparse_moe.experts.w1")
    assert [part.name for part in wide.parts] == [
        "block_sparse_moe.experts.w1",
        "block_sparse_moe.experts.w3",
    ]
    assert (wide.copies, wide.out, wide.into, wide.split) == (8, 28_672, 4096, "column")
    assert named(layer, "block_sparse_moe.gate").split == "replicated"
    assert (layer.experts, layer.experts_per_token) == (8, 2)
    assert named(model("MiniMaxAI/MiniMax-M2").layers[0], "block_sparse_moe.gate").dtype == "fp32"


def test_latent_down_projections_are_one_replicated_tensor() -> None:
    layer = model("deepseek-ai/DeepSeek-V3").layers[0]
    down = named(layer, "self_attn.q_a_proj")
    assert [part.out for part in down.parts] == [1536, 576]
    assert down.split == "replicated"
    assert named(layer, "self_attn.q_b_proj").split == "column"
    assert named(layer, "self_attn.kv_b_proj").split == "column"


def test_embedding_and_head_are_shared_out_by_vocabulary() -> None:
    outer = {
        part.name: tensor for tensor in model("Qwen/Qwen2.5-7B").outer for part in tensor.parts
    }
    assert outer["model.embed_tokens"].split == "vocabulary" == outer["lm_head"].split
    assert outer["lm_head"].linear
    assert not outer["model.embed_tokens"].linear
    assert model("Qwen/Qwen2.5-0.5B").tied
    assert all(tensor.role != "head" for tensor in model("Qwen/Qwen2.5-0.5B").outer)


def test_names_under_multimodal_checkpoints() -> None:
    qwen, gemma = model("Qwen/Qwen3.5-9B"), model("google/gemma-3-4b-it")
    assert qwen.layer_prefix == "model.language_model.layers"
    assert gemma.layer_prefix == "language_model.model.layers"
    assert model("moonshotai/Kimi-K2.5").layer_prefix == "language_model.model.layers"
    assert model("Qwen/Qwen2.5-VL-7B-Instruct").layer_prefix == "model.layers"
    towers = {part.name for tensor in qwen.towers for part in tensor.parts}
    assert "model.visual.blocks.26.attn.qkv" in towers
    assert "model.visual.merger.linear_fc2" in towers


def test_rope_tables() -> None:
    (llama,) = model("meta-llama/Llama-3.1-8B").ropes
    assert (llama.positions, llama.dimensions, llama.copies, llama.base) == (131_072, 128, 1, 5e5)
    (visual,) = model("Qwen/Qwen2.5-VL-7B-Instruct").ropes
    assert (visual.positions, visual.dimensions, visual.copies) == (128_000, 128, 4)
    assert model("Qwen/Qwen3.5-9B").ropes[0].dimensions == 64
    scaled, local = model("google/gemma-3-27b-it").ropes
    assert (scaled.positions, local.positions) == (8 * 131_072, 131_072)
    (longrope,) = model("microsoft/Phi-3.5-mini-instruct").ropes
    assert longrope.positions == 131_072 + 4096
    assert model("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16").ropes == ()
    # Gemma 4's full layers cover whole heads; MiMo's two kinds of layers turn at other speeds.
    assert [rope.dimensions for rope in model("google/gemma-4-26B-A4B").ropes] == [256, 512]
    assert {rope.base for rope in model("XiaomiMiMo/MiMo-V2-Flash").ropes} == {5e6, 1e4}
    assert {rope.base for rope in model("google/gemma-3n-E2B-it").ropes} == {1e6, 1e4}
    assert [rope.copies for rope in model("deepseek-ai/DeepSeek-V3.2").ropes] == [2]
    assert {rope.dtype for rope in model("deepseek-ai/DeepSeek-V4-Flash").ropes} == {"fp32"}


def test_dtype_and_quantization() -> None:
    assert model("deepseek-ai/DeepSeek-V3").dtype == "bf16"
    assert model("deepseek-ai/DeepSeek-V3").quantization == {
        "activation_scheme": "dynamic",
        "fmt": "e4m3",
        "quant_method": "fp8",
        "weight_block_size": [128, 128],
    }
    assert model("Qwen/Qwen2.5-7B").quantization is None


def test_what_divides() -> None:
    found = model("Qwen/Qwen2.5-7B")
    assert (found.heads, found.kv_heads, found.head_size, found.intermediate) == (
        28,
        4,
        128,
        18_944,
    )
    sparse = model("Qwen/Qwen3-30B-A3B")
    assert (sparse.experts, sparse.experts_per_token, sparse.expert_intermediate) == (128, 8, 768)
    assert (model("tiiuae/falcon-7b").heads, model("tiiuae/falcon-7b").kv_heads) == (71, 1)
    assert model("deepseek-ai/DeepSeek-V3").kv_heads == 1


def test_vision_facts() -> None:
    vision = model("Qwen/Qwen3-VL-8B-Instruct").vision
    assert vision is not None
    assert vision[:7] == (1152, 27, 4304, 16, 2, 16_384, 3)
    assert (vision.video_tokens, vision.frames) == (12_288, 2)
    gemma = model("google/gemma-3-27b-it").vision
    assert gemma is not None
    assert (gemma.image_tokens, gemma.merge) == (256, 4)  # 64 x 64 patches
    pixtral = model("mistralai/Mistral-Small-3.1-24B-Instruct-2503").vision
    assert pixtral is not None
    assert pixtral.image_tokens == 55 * 56


def test_prediction_layers_are_apart() -> None:
    found = model("deepseek-ai/DeepSeek-R1")
    assert (len(found.layers), len(found.draft)) == (61, 1)
    assert {tensor.role for tensor in found.draft_outer} >= {"draft", "embedding", "head"}
    assert all(t.role not in ("embedding", "head") for t in model("zai-org/GLM-4.6").draft_outer)
