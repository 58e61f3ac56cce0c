"""A GGUF file inside the tree: its own tensors decide, not the rules of its file type."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import pytest

from capcheck import MIB
from capcheck.testing import plugins
from capcheck_quantization.gguf import stored_bytes

NUMBERS = {"F32": 0, "Q8_0": 8, "Q4_K": 12, "Q6_K": 14}
HIDDEN, FEED, VOCABULARY, LAYERS = 512, 1024, 2048, 2


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text)) + text.encode()


def _value(value: object) -> bytes:
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    return struct.pack("<II", 4, value)


def _tensors() -> dict[str, tuple[str, tuple[int, ...]]]:
    found: dict[str, tuple[str, tuple[int, ...]]] = {
        "token_embd.weight": ("Q4_K", (HIDDEN, VOCABULARY)),
        "output.weight": ("Q8_0", (HIDDEN, VOCABULARY)),
        "output_norm.weight": ("F32", (HIDDEN,)),
    }
    for layer in range(LAYERS):
        at = f"blk.{layer}."
        found |= {
            f"{at}attn_norm.weight": ("F32", (HIDDEN,)),
            f"{at}ffn_norm.weight": ("F32", (HIDDEN,)),
            f"{at}attn_q.weight": ("Q4_K", (HIDDEN, HIDDEN)),
            f"{at}attn_k.weight": ("Q8_0", (HIDDEN, HIDDEN // 2)),
            f"{at}attn_v.weight": ("Q6_K", (HIDDEN, HIDDEN // 2)),
            f"{at}attn_output.weight": ("Q4_K", (HIDDEN, HIDDEN)),
            f"{at}ffn_gate.weight": ("Q4_K", (HIDDEN, FEED)),
            f"{at}ffn_up.weight": ("Q4_K", (HIDDEN, FEED)),
            f"{at}ffn_down.weight": ("Q6_K" if layer else "Q4_K", (FEED, HIDDEN)),
        }
    return found


def _size(kind: str, shape: tuple[int, ...]) -> int:
    rows = shape[1] if len(shape) > 1 else 1
    return int(stored_bytes(kind.lower(), rows, shape[0]))


def _file() -> bytes:
    metadata: dict[str, object] = {
        "general.architecture": "llama", "general.file_type": 15, "llama.context_length": 4096,
        "llama.embedding_length": HIDDEN, "llama.block_count": LAYERS,
        "llama.feed_forward_length": FEED, "llama.attention.head_count": 8,
        "llama.attention.head_count_kv": 4, "llama.attention.key_length": 64,
        "llama.vocab_size": VOCABULARY, "llama.rope.freq_base": 10000.0,
    }  # fmt: skip
    tensors = _tensors()
    out = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(metadata))
    for key, value in metadata.items():
        out += _text(key) + _value(value)
    at = 0
    for name, (kind, shape) in tensors.items():
        out += _text(name) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *shape)
        out += struct.pack("<IQ", NUMBERS[kind], at)
        at += -(-_size(kind, shape) // 32) * 32
    return out + bytes(-len(out) % 32) + bytes(at)


@pytest.mark.parametrize("named", ["model.config", "engine.args.model"])
def test_the_files_own_tensors(tmp_path: Path, named: str) -> None:
    from capcheck.config import Settings
    from capcheck.session import Session

    (tmp_path / "acme.gguf").write_bytes(_file())
    args: dict[str, object] = {"n_ctx": 2048, "n_gpu_layers": 99}
    spec: dict[str, object] = {
        "apiVersion": "capcheck/v1", "kind": "Deployment", "name": "one",
        "hardware": {"accelerator": "nvidia/rtx-3090", "count": 1},
        "engine": {"name": "llama.cpp", "version": "b9000", "args": args},
    }  # fmt: skip
    if named == "model.config":
        spec["model"] = {"config": "./acme.gguf"}
    else:
        args["model"] = "./acme.gguf"
    (tmp_path / "one.yaml").write_text(json.dumps(spec))
    report = Session(plugins(), Settings(), tmp_path).run([tmp_path / "one.yaml"])
    (one,) = report.deployments
    tensors = _tensors()
    placed = sum(_size(*told) for name, told in tensors.items() if name != "token_embd.weight")
    assert one.estimates["weights_bytes"].band.mid / MIB == pytest.approx(placed / MIB, rel=1e-6)
    # Two layers x 2,048 cells x 4 heads x 64 x 2 x 2 bytes.
    assert one.estimates["kv_cache_bytes"].band.mid == 2 * 2048 * 4 * 64 * 2 * 2
