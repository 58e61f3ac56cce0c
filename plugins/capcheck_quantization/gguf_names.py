"""What llama.cpp's quantization calls the modules of a checkpoint: attn_v, ffn_down, ..."""

from __future__ import annotations

import re
from typing import Literal

Category = Literal[
    "embedding", "output", "attn_q", "attn_k", "attn_v", "attn_qkv", "attn_output", "ffn_gate",
    "ffn_up", "ffn_down", "other",
]  # fmt: skip

_MIXING: dict[str, Category] = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "dense": "attn_output", "out_proj": "attn_output", "c_proj": "attn_output", "wo": "attn_output",
    "qkv_proj": "attn_qkv", "query_key_value": "attn_qkv", "c_attn": "attn_qkv",
    "Wqkv": "attn_qkv", "wqkv": "attn_qkv", "in_proj_qkv": "attn_qkv",
}  # fmt: skip
_FEEDING: dict[str, Category] = {
    "gate_proj": "ffn_gate", "w1": "ffn_gate", "c_fc_0": "ffn_gate",
    "up_proj": "ffn_up", "w3": "ffn_up", "v1": "ffn_up", "c_fc": "ffn_up", "c_fc_1": "ffn_up",
    "fc1": "ffn_up", "dense_h_to_4h": "ffn_up", "gate_up_proj": "ffn_up", "input_linear": "ffn_up",
    "down_proj": "ffn_down", "w2": "ffn_down", "fc2": "ffn_down", "c_proj": "ffn_down",
    "dense_4h_to_h": "ffn_down", "output_linear": "ffn_down",
}  # fmt: skip
_FEED_ROLES = frozenset(("mlp", "expert", "shared_expert"))
_RECURRENT = re.compile(r"(?:^|\.)(?:mamba|conv|mixer|linear_attn)\.")


def category(module: str, role: str) -> Category:
    """The category of a module: its name inside the layer, and its role there."""
    if role == "embedding":
        return "embedding"
    if role == "head":
        return "output"
    last = module.rpartition(".")[2]
    if role in _FEED_ROLES:
        return _FEEDING.get(last, "other")
    if role == "state" and _RECURRENT.search(module) and last != "in_proj_qkv":
        return "other"
    return _MIXING.get(last, "other") if role in ("attention", "state") else "other"
