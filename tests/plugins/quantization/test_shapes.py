"""Sizes that do not divide: failures that users reported."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import capcheck_models
from capcheck.architecture import Architecture
from capcheck.physics.memory import Split
from capcheck.quantization import Scheme
from capcheck_models.build import architecture
from capcheck_models.checkpoints import checkpoint
from capcheck_quantization.releases import Version
from capcheck_quantization.schemes import read
from capcheck_quantization.shapes import shape_problems

MODELS = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"
BLOCK = Scheme("fp8", "fp8_e4m3", 8, 0, (128, 128), activation="fp8")


def model(id: str, **changes: Any) -> Architecture:
    for line in MODELS.read_text("utf-8").splitlines():
        if line.startswith(f'{{"id": "{id}"'):
            record = json.loads(line)
            return architecture({**record, "config": {**record["config"], **changes}})
    raise AssertionError(id)


def problems(
    id: str,
    upload: str,
    tensor: int,
    release: Version | None,
    *,
    dtype: str = "bf16",
    expert: int = 1,
    **changes: Any,
) -> list[tuple[str, str, float, float, bool]]:
    built = model(id, **changes)
    found = checkpoint(upload)
    scheme = found.scheme if found is not None else read(built.quantization or {})
    assert scheme is not None
    split = Split(tensor=tensor, expert=expert)
    told = shape_problems(scheme, built, split, engine="vllm", release=release, dtype=dtype)
    return [(one.kind, one.what.split(",")[0], one.have, one.need, one.sure) for one in told]


def test_groups_of_awq_do_not_split_qwen2_72b() -> None:
    args = ("Qwen/Qwen2-72B-Instruct", "ellamind/qwen2-72b-instruct-awq-de")
    assert problems(*args, 2, (0, 11, 0)) == [("group", "mlp.down_proj", 14784, 128, True)]
    assert problems(*args, 1, (0, 11, 0), dtype="fp16") == []


def test_the_padded_upload_splits() -> None:
    args = ("Qwen/Qwen2.5-72B", "Qwen/Qwen2.5-72B-Instruct-AWQ", 8, (0, 11, 0))
    assert problems(*args, intermediate_size=29696) == []


def test_a_guessed_group_is_only_a_doubt() -> None:
    found = problems("Qwen/Qwen1.5-14B-Chat", "Qwen/Qwen1.5-14B-Chat-AWQ", 2, (0, 11, 0))
    assert found == [("group", "mlp.down_proj", 6848, 128, False)]


def test_tiles_refuse_deepseek_v2_lite_even_on_one_device() -> None:
    args = ("deepseek-ai/DeepSeek-V2-Lite-Chat", "TechxGenus/DeepSeek-Coder-V2-Lite-Instruct-AWQ")
    assert problems(*args, 1, (0, 6, 3), dtype="fp16") == [
        ("tiles", "mlp.down_proj", 10944, 128, True)
    ]
    assert problems(*args, 1, (0, 7, 3), dtype="fp16") == []


def test_blocks_of_experts() -> None:
    qwen = ("Qwen/Qwen3-235B-A22B-FP8", "Qwen/Qwen3-235B-A22B-FP8")
    assert problems(*qwen, 8, (0, 9, 0)) == [
        ("block", "mlp.experts.gate_proj", 192, 128, True),
        ("block", "mlp.experts.down_proj", 192, 128, True),
    ]
    assert problems(*qwen, 4, (0, 9, 0)) == []
    assert problems(*qwen, 8, (0, 9, 0), expert=8) == []  # experts stay whole
    minimax = problems("MiniMaxAI/MiniMax-M2.7", "MiniMaxAI/MiniMax-M2.7", 8, (0, 14, 0))
    assert {(kind, have) for kind, _, have, _, _ in minimax} == {("block", 192)}


def test_blocks_of_deepseek() -> None:
    args = ("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1")
    wide = problems(*args, 32, (0, 11, 0))
    assert ("block", "mlp.down_proj", 576, 128, True) in wide
    assert ("block", "mlp.experts.gate_proj", 64, 128, True) in wide
    # Latent down-projections are fused but not split: the last part may end inside a block.
    assert not any("kv_a" in name or "q_a" in name for _, name, _, _, _ in wide)
    assert problems(*args, 16, (0, 11, 0)) == []


def test_weight_only_kernels_and_bf16() -> None:
    args = ("meta-llama/Llama-2-7b-hf", "TheBloke/Llama-2-7B-Chat-GPTQ", 4)
    found = problems(*args, (0, 11, 0))
    assert ("group", "mlp.down_proj", 2752, 128, True) in found
    assert ("tiles", "mlp.down_proj", 2752, 128, False) in found
    assert {kind for kind, *_ in problems(*args, (0, 11, 0), dtype="fp16")} == {"group"}
    assert {kind for kind, *_ in problems(*args, (0, 24, 0))} == {"group"}


def test_packed_bitsandbytes_does_not_split() -> None:
    args = ("meta-llama/Llama-3.2-1B", "unsloth/Llama-3.2-1B-Instruct-bnb-4bit")
    assert problems(*args, 2, (0, 10, 0)) == [("whole", "bitsandbytes", 2, 1, True)]
    assert problems(*args, 1, (0, 10, 0)) == []
    assert problems(*args, 2, (0, 5, 5)) == []


def test_online_bitsandbytes_splits() -> None:
    scheme = Scheme("bitsandbytes", "nf4", 4, 64, seen="online")
    built = model("meta-llama/Llama-3.2-1B")
    assert shape_problems(scheme, built, Split(2), engine="vllm", release=(0, 10, 0)) == ()


def test_other_engines_are_not_judged() -> None:
    built = model("Qwen/Qwen3-235B-A22B-FP8")
    assert shape_problems(BLOCK, built, Split(8), engine="sglang", release=None) == ()
