"""From the header of a GGUF file to the configuration that its model was converted from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capcheck import Architecture, Scheme
from capcheck.gguf_header import TYPES, GgufArray, GgufHeader

from .gguf_types import parts_of

MOST_DIFFERENCE = 0.005  # of the file's parameters: more, and the drawing is not the file's
# Tables that are computed from the configuration when the model is not converted.
_TABLES = frozenset(("rope_freqs.weight", "rope_factors_long.weight", "rope_factors_short.weight"))
# The configuration's key of each of the file's own keys.
_SIZES = {
    "embedding_length": "hidden_size", "block_count": "num_hidden_layers",
    "feed_forward_length": "intermediate_size", "attention.head_count": "num_attention_heads",
    "attention.head_count_kv": "num_key_value_heads", "attention.key_length": "head_dim",
    "context_length": "max_position_embeddings", "rope.freq_base": "rope_theta",
    "attention.sliding_window": "sliding_window",
}  # fmt: skip
_MIXTURE = {
    "expert_count": "num_experts", "expert_used_count": "num_experts_per_tok",
    "expert_feed_forward_length": "moe_intermediate_size",
    "expert_shared_feed_forward_length": "shared_expert_intermediate_size",
}  # fmt: skip
_LOCAL = {"expert_count": "num_local_experts", "expert_used_count": "num_experts_per_tok"}
_LATENT = {
    "attention.q_lora_rank": "q_lora_rank", "attention.kv_lora_rank": "kv_lora_rank",
    "rope.dimension_count": "qk_rope_head_dim", "expert_count": "n_routed_experts",
    "expert_used_count": "num_experts_per_tok", "expert_shared_count": "n_shared_experts",
    "expert_feed_forward_length": "moe_intermediate_size",
    "leading_dense_block_count": "first_k_dense_replace",
}  # fmt: skip
# The model_type of each architecture, and the keys that it has besides.
_TYPES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **{one: (one, {}) for one in ("llama", "qwen2", "qwen3", "gemma", "gemma2", "phi3")},
    **{one: (one, {}) for one in ("glm4", "granite", "olmo2", "cohere2", "starcoder2", "smollm3")},
    "gemma3": ("gemma3_text", {}),
    "mistral3": ("ministral3", {}),
    "seed_oss": ("seed_oss", {}),
    "qwen2moe": ("qwen2_moe", _MIXTURE),
    "qwen3moe": ("qwen3_moe", _MIXTURE),
    "gpt-oss": ("gpt_oss", {**_LOCAL, "expert_feed_forward_length": "intermediate_size"}),
    "deepseek2": ("deepseek_v2", _LATENT),
}
_BIASED = ("llama", "qwen3", "glm4", "granite", "olmo2", "seed_oss")  # where a key tells of it
SOURCE = "the header of its GGUF file"
_BITS = {one.name: one.size * 8 / one.block for one in TYPES.values()}
_PLAIN = {"F32": "float32", "F16": "float16", "BF16": "bfloat16"}
_FILE_TYPES = {
    2: "q4_0", 3: "q4_1", 7: "q8_0", 8: "q5_0", 9: "q5_1", 10: "q2_k", 11: "q3_k_s",
    12: "q3_k_m", 13: "q3_k_l", 14: "q4_k_s", 15: "q4_k_m", 16: "q5_k_s", 17: "q5_k_m",
    18: "q6_k", 19: "iq2_xxs", 20: "iq2_xs", 21: "q2_k_s", 22: "iq3_xs", 23: "iq3_xxs",
    24: "iq1_s", 25: "iq4_nl", 26: "iq3_s", 27: "iq3_m", 28: "iq2_s", 29: "iq2_m", 30: "iq4_xs",
    31: "iq1_m", 36: "tq1_0", 37: "tq2_0", 38: "mxfp4", 39: "nvfp4",
}  # fmt: skip


def parameters_of(header: GgufHeader) -> int:
    """The weights of all tensors, without computed tables."""
    return sum(one.parameters for one in header.tensors if one.name not in _TABLES)


def scheme_of(header: GgufHeader, model: Architecture) -> Scheme | None:
    """How the file's weights are packed, module by module; None: they are not."""
    matrices = [one for one in header.tensors if len(one.shape) > 1 and one.name not in _TABLES]
    types = header.bytes_by_type()
    if not matrices or {one.type for one in matrices} <= set(_PLAIN):
        return None
    packed = next(one for one in types if one not in _PLAIN)
    told = header.metadata.get("general.file_type")
    word = _FILE_TYPES.get(told) if isinstance(told, int) else None
    bits = sum(one.bytes for one in matrices) * 8 / sum(one.parameters for one in matrices)
    parts = parts_of(header, model, _BITS)
    # Without its parts the types follow from the rules of files of that word.
    guessed = () if parts else ("bits",)
    return Scheme(
        "gguf", word or packed.lower(), round(bits, 4), parts=parts, guessed=guessed, source=SOURCE
    )


def config_of(header: GgufHeader) -> dict[str, Any]:
    """The configuration. Raises ValueError for an architecture that is not known here."""
    arch = header.architecture
    if arch not in _TYPES:
        raise ValueError(f"the GGUF architecture {arch or 'of no name'!r} is not known")
    model_type, more = _TYPES[arch]
    shapes = {one.name: one.shape for one in header.tensors}
    if arch == "llama" and _own(header, "expert_count"):
        model_type, more = "mixtral", _LOCAL
    config: dict[str, Any] = {"model_type": model_type}
    for key, name in {**_SIZES, **more}.items():
        told = _own(header, key)
        if told is not None:
            config[name] = told
    config["vocab_size"] = _vocabulary(header, shapes)
    config["tie_word_embeddings"] = "output.weight" not in shapes
    config["torch_dtype"] = _dtype(header)
    if arch in _BIASED and "blk.0.attn_q.bias" in shapes:
        config["attention_bias"] = True
    return _latent(header, config, shapes) if more is _LATENT else config


def _own(header: GgufHeader, key: str) -> int | float | None:
    """One of the architecture's own numbers. Raises ValueError when layers differ in it."""
    told = header.own(key)
    if isinstance(told, GgufArray):
        several = set(told.values)
        if len(several) != 1:
            raise ValueError(f"{header.architecture}.{key} differs from layer to layer")
        told = several.pop()  # type: ignore[assignment]
    return told if isinstance(told, (int, float)) and not isinstance(told, bool) else None


def _vocabulary(header: GgufHeader, shapes: Mapping[str, tuple[int, ...]]) -> int | float | None:
    """The rows of the embedding: engines pad the list of tokens up to them."""
    embedding = shapes.get("token_embd.weight", ())
    return embedding[1] if len(embedding) > 1 else _own(header, "vocab_size")


def _dtype(header: GgufHeader) -> str:
    """The dtype of plain weights; packed ones are multiplied as fp16."""
    types = header.bytes_by_type()
    return _PLAIN.get(next(iter(types), ""), "float16")


def _latent(
    header: GgufHeader, config: dict[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> dict[str, Any]:
    """The head sizes of latent attention; older files tell them as if nothing were latent."""
    config.pop("head_dim", None)
    query = _own(header, "attention.key_length_mla") or _own(header, "attention.key_length") or 0
    config["qk_nope_head_dim"] = query - config.get("qk_rope_head_dim", 0)
    config["v_head_dim"] = _own(header, "attention.value_length_mla") or _own(
        header, "attention.value_length"
    )
    if any(name.endswith("exp_probs_b.bias") for name in shapes):
        config["model_type"] = "deepseek_v3"
    return config
