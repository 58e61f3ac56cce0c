"""What tensors are called in a GGUF file, as far as patterns for their places tell them apart."""

from __future__ import annotations

_ATTENTION = {
    "q_proj": "attn_q", "k_proj": "attn_k", "v_proj": "attn_v", "o_proj": "attn_output",
    "dense": "attn_output", "out_proj": "attn_output", "c_proj": "attn_output", "wo": "attn_output",
    "qkv_proj": "attn_qkv", "query_key_value": "attn_qkv", "c_attn": "attn_qkv",
    "q_a_proj": "attn_q_a", "q_b_proj": "attn_q_b", "kv_a_proj_with_mqa": "attn_kv_a_mqa",
    "kv_b_proj": "attn_kv_b", "sinks": "attn_sinks",
}  # fmt: skip
_FEEDING = {
    "gate_proj": "ffn_gate", "w1": "ffn_gate", "c_fc_0": "ffn_gate",
    "up_proj": "ffn_up", "w3": "ffn_up", "c_fc": "ffn_up", "c_fc_1": "ffn_up", "fc1": "ffn_up",
    "dense_h_to_4h": "ffn_up", "gate_up_proj": "ffn_up", "input_linear": "ffn_up",
    "down_proj": "ffn_down", "w2": "ffn_down", "c_proj": "ffn_down", "fc2": "ffn_down",
    "dense_4h_to_h": "ffn_down", "output_linear": "ffn_down",
}  # fmt: skip
_ENDINGS = {"expert": "_exps", "shared_expert": "_shexp", "mlp": ""}


def stem(module: str, role: str) -> str:
    """`ffn_down_exps` for a module's name inside its layer and its role."""
    kind = "bias" if module.endswith(".bias") else "weight"
    last = module.removesuffix(".bias").rpartition(".")[2]
    if role in _ENDINGS:
        return f"{_FEEDING.get(last, 'ffn_up')}{_ENDINGS[role]}.{kind}"
    if role == "router":
        return f"ffn_gate_inp.{kind}"
    if role == "norm":
        return f"{'ffn' if 'post' in last or 'ffn' in last else 'attn'}_norm.{kind}"
    if role == "state":
        return f"ssm_{last.removesuffix('_proj')}.{kind}"
    return f"{_ATTENTION.get(last, 'attn_' + last)}.{kind}"


def whole(layer: int, name: str) -> str:
    """`blk.3.ffn_down_exps.weight`."""
    return f"blk.{layer}.{name}"
