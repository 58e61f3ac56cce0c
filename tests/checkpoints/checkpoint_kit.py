"""Small checkpoints as files: safetensors with holes for weights, GGUF, and their config.json."""

from __future__ import annotations

import json
import math
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from capcheck.ggml_types import TYPES

Shapes = Mapping[str, tuple[str, tuple[int, ...]]]  # name -> dtype, shape
_BYTES = {"BF16": 2, "F16": 2, "F32": 4, "I32": 4, "U8": 1, "F8_E4M3": 1}

CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 256,
    "intermediate_size": 512,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "head_dim": 64,
    "vocab_size": 1024,
    "max_position_embeddings": 4096,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
    "transformers_version": "4.57.0",
}
# Embedding and head 2 x 1024 x 256, final norm 256; a layer: q and o 2 x 256 x 256, k and v
# 2 x 128 x 256, three matrices of 512 x 256, two norms of 256.
PARAMETERS = 2 * 1024 * 256 + 256 + 2 * (2 * 256 * 256 + 2 * 128 * 256 + 3 * 512 * 256 + 2 * 256)

_LAYER = {
    "self_attn.q_proj": (256, 256), "self_attn.k_proj": (128, 256),
    "self_attn.v_proj": (128, 256), "self_attn.o_proj": (256, 256), "mlp.gate_proj": (512, 256),
    "mlp.up_proj": (512, 256), "mlp.down_proj": (256, 512),
}  # fmt: skip


def llama_tensors(layers: int = 2, linear: str = "BF16") -> dict[str, tuple[str, tuple[int, ...]]]:
    """What the checkpoint of CONFIG holds."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {
        "model.embed_tokens.weight": ("BF16", (1024, 256)),
        "lm_head.weight": ("BF16", (1024, 256)),
        "model.norm.weight": ("BF16", (256,)),
    }
    for number in range(layers):
        root = f"model.layers.{number}"
        for name, shape in _LAYER.items():
            found[f"{root}.{name}.weight"] = (linear, shape)
        found[f"{root}.input_layernorm.weight"] = ("BF16", (256,))
        found[f"{root}.post_attention_layernorm.weight"] = ("BF16", (256,))
    return found


def gptq_tensors(bits: int = 4, group: int = 128) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The same checkpoint with its linear layers packed as GPTQ packs them."""
    found = {}
    for name, (dtype, shape) in llama_tensors().items():
        stem = name.removesuffix(".weight")
        if "proj" not in stem:
            found[name] = (dtype, shape)
            continue
        out, into = shape
        found[f"{stem}.qweight"] = ("I32", (into * bits // 32, out))
        found[f"{stem}.qzeros"] = ("I32", (into // group, out * bits // 32))
        found[f"{stem}.scales"] = ("F16", (into // group, out))
        found[f"{stem}.g_idx"] = ("I32", (into,))
    return found


def safetensors(tensors: Shapes) -> bytes:
    """A whole file; its weights are zeros."""
    header, at = {}, 0
    for name, (dtype, shape) in tensors.items():
        size = math.prod(shape) * _BYTES[dtype]
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps({"__metadata__": {"format": "pt"}, **header}).encode()
    return len(text).to_bytes(8, "little") + text + bytes(at)


def write_checkpoint(
    folder: Path,
    tensors: Shapes | None = None,
    config: Mapping[str, Any] | None = None,
    files: int = 1,
) -> Path:
    """A folder as the hub has it; with several files there is an index."""
    folder.mkdir(parents=True, exist_ok=True)
    told = CONFIG if config is None else config
    (folder / "config.json").write_text(json.dumps(told), encoding="utf-8")
    stored = llama_tensors() if tensors is None else tensors
    if files == 1:
        (folder / "model.safetensors").write_bytes(safetensors(stored))
        return folder
    weight_map: dict[str, str] = {}
    for number in range(files):
        name = f"model-{number + 1:05d}-of-{files:05d}.safetensors"
        part = {key: stored[key] for key in list(stored)[number::files]}
        (folder / name).write_bytes(safetensors(part))
        weight_map |= dict.fromkeys(part, name)
    index = json.dumps({"metadata": {}, "weight_map": weight_map})
    (folder / "model.safetensors.index.json").write_text(index, encoding="utf-8")
    return folder


# GGUF

_NUMBERS = {name: number for number, (name, _, _) in TYPES.items()}


def _text(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _value(value: object) -> bytes:
    """A value with its type before it."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    assert isinstance(value, (list, tuple))
    kind = 8 if value and isinstance(value[0], str) else 5
    items = b"".join(_text(one) if kind == 8 else struct.pack("<i", one) for one in value)
    return struct.pack("<IIQ", 9, kind, len(value)) + items


def stored_bytes(kind: str, shape: Sequence[int]) -> int:
    type = TYPES[_NUMBERS[kind]]
    return math.prod(shape) // type.block * type.size


def gguf(metadata: Mapping[str, object], tensors: Shapes, version: int = 3) -> bytes:
    """A whole file; shapes are in the file's order, a row's length first."""
    out = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(metadata))
    for key, value in metadata.items():
        out += _text(key) + _value(value)
    at = 0
    for name, (kind, shape) in tensors.items():
        out += _text(name) + struct.pack("<I", len(shape))
        out += struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", _NUMBERS[kind], at)
        at += -(-stored_bytes(kind, shape) // 32) * 32
    return out + bytes(-len(out) % 32) + bytes(at)


GGUF_METADATA: dict[str, object] = {
    "general.architecture": "llama",
    "general.name": "Acme",
    "general.file_type": 15,
    "llama.context_length": 4096,
    "llama.embedding_length": 256,
    "llama.block_count": 2,
    "llama.feed_forward_length": 512,
    "llama.attention.head_count": 4,
    "llama.attention.head_count_kv": 2,
    "llama.attention.key_length": 64,
    "llama.rope.freq_base": 10000.0,
    "tokenizer.ggml.tokens": [f"t{number}" for number in range(1024)],
}


def gguf_tensors(
    linear: str = "Q4_K", head: str = "Q6_K"
) -> dict[str, tuple[str, tuple[int, ...]]]:
    """The tensors of CONFIG under the names and in the order that GGUF has."""
    found: dict[str, tuple[str, tuple[int, ...]]] = {
        "token_embd.weight": (linear, (256, 1024)),
        "output.weight": (head, (256, 1024)),
        "output_norm.weight": ("F32", (256,)),
    }
    for number in range(2):
        root = f"blk.{number}"
        for name, shape in {
            "attn_q": (256, 256), "attn_k": (256, 128), "attn_v": (256, 128),
            "attn_output": (256, 256), "ffn_gate": (256, 512), "ffn_up": (256, 512),
            "ffn_down": (512, 256),
        }.items():  # fmt: skip
            found[f"{root}.{name}.weight"] = (linear, shape)
        found[f"{root}.attn_norm.weight"] = ("F32", (256,))
        found[f"{root}.ffn_norm.weight"] = ("F32", (256,))
    return found
