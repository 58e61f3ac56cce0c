"""Mistral's own params.json, told as the config.json of the same model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

MOST_POSITIONS = 128_000  # what vLLM takes when the file does not tell
_KEYS = {
    "dim": "hidden_size", "n_layers": "num_hidden_layers", "n_heads": "num_attention_heads",
    "n_kv_heads": "num_key_value_heads", "hidden_dim": "intermediate_size",
    "tied_embeddings": "tie_word_embeddings",
}  # fmt: skip
_SAME = (
    "head_dim", "vocab_size", "rope_theta", "q_lora_rank", "kv_lora_rank", "qk_nope_head_dim",
    "qk_rope_head_dim", "v_head_dim",
)  # fmt: skip
_MOE = {
    "num_experts": "num_local_experts", "num_experts_per_tok": "num_experts_per_tok",
}  # fmt: skip
_MOE_SHARED = {
    "num_experts": "n_routed_experts", "num_experts_per_tok": "num_experts_per_tok",
    "expert_hidden_dim": "moe_intermediate_size", "num_shared_experts": "n_shared_experts",
    "first_k_dense_replace": "first_k_dense_replace", "route_every_n": "moe_layer_freq",
}  # fmt: skip
_TOWERS = ("vision_encoder", "multimodal")


def is_params(config: Mapping[str, Any]) -> bool:
    """Whether a configuration is Mistral's own."""
    return "dim" in config and "n_layers" in config and "hidden_size" not in config


def config_of(params: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a config.json. Raises ValueError for what it cannot tell."""
    for key in _TOWERS:
        if params.get(key):
            raise ValueError(f"{key} is not read from params.json: add the config.json")
    config: dict[str, Any] = {"model_type": "mistral", "torch_dtype": "bfloat16"}
    config |= {name: params[key] for key, name in _KEYS.items() if key in params}
    config |= {key: params[key] for key in _SAME if key in params}
    positions = params.get("max_position_embeddings") or params.get("max_seq_len")
    config["max_position_embeddings"] = positions or MOST_POSITIONS
    config.setdefault("tie_word_embeddings", False)
    config |= _experts(params.get("moe"), latent="kv_lora_rank" in params)
    config |= _window(params.get("sliding_window"), params["n_layers"])
    if params.get("quantization"):
        config["quantization_config"] = _quantization(params["quantization"])
    for key in ("quantization_config", "compression_config"):
        if params.get(key):
            config[key] = params[key]
    return config


def _experts(moe: object, *, latent: bool) -> dict[str, Any]:
    if not isinstance(moe, Mapping) or not moe:
        return {"model_type": "deepseek_v3"} if latent else {}
    shared = bool(moe.get("num_shared_experts"))
    if shared != latent:
        raise ValueError("moe: no family has such experts with such attention")
    keys = _MOE_SHARED if shared else _MOE
    told = {name: moe[key] for key, name in keys.items() if key in moe}
    return {"model_type": "deepseek_v3" if shared else "mixtral", **told}


def _window(window: object, layers: object) -> dict[str, Any]:
    """One window for all layers, or a list that repeats: null is a full layer."""
    if not window:
        return {}
    if not isinstance(window, list):
        return {"sliding_window": window}
    sizes = {one for one in window if one}
    if not isinstance(layers, int) or len(sizes) > 1 or layers > 10_000:
        raise ValueError("sliding_window: expected one size, and null for full layers")
    kinds = ["sliding_attention" if one else "full_attention" for one in window]
    types = (kinds * (layers // len(kinds) + 1))[:layers]
    return {"sliding_window": next(iter(sizes), None), "layer_types": types}


def _quantization(told: object) -> dict[str, Any]:
    """Mistral's fp8: one scale per tensor, activations by a stored one unless told otherwise."""
    if not isinstance(told, Mapping) or told.get("qformat_weight") != "fp8_e4m3":
        raise ValueError(f"quantization: {str(told)[:80]} is not known")
    dynamic = told.get("qscheme_act") == "NO_SCALES"
    return {"quant_method": "fp8", "activation_scheme": "dynamic" if dynamic else "static"}
