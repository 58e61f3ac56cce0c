"""Whole models: the bytes of checkpoint files, and the weights that vLLM logs after loading."""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest

import capcheck_models
from capcheck.architecture import Architecture, Part, Tensor
from capcheck.physics import memory
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split
from capcheck.quantity import GIB
from capcheck.quantization import Scheme
from capcheck_models.build import architecture
from capcheck_models.checkpoints import checkpoint
from capcheck_quantization.kernels import kernel_of
from capcheck_quantization.layouts import allocations, of_module
from capcheck_quantization.schemes import from_words, read
from capcheck_quantization.source import Methods

MODELS = Path(capcheck_models.__file__).parent / "data" / "models.jsonl"


@lru_cache(maxsize=1)
def records() -> dict[str, dict[str, Any]]:
    found = {}
    for line in MODELS.read_text("utf-8").splitlines():
        record = json.loads(line)
        found[record["id"]] = record
    return found


def model(id: str, **changes: Any) -> Architecture:
    record = records()[id]
    return architecture({**record, "config": {**record["config"], **changes}})


def scheme_of(model_id: str, upload: str) -> Scheme:
    if upload in ("fp8-channel", "awq-int4"):
        written = from_words(upload)
        assert written is not None
        return written
    found = checkpoint(upload)
    if found is not None and found.scheme is not None:
        return found.scheme
    return read(model(model_id).quantization or {})


def tensor_sizes(
    tensor: Tensor, layer: int | None, scheme: Scheme, split: Split, kernel: str, draft: bool
) -> list[float]:
    """Allocations of one tensor, its parts grouped by what packs them."""
    groups: dict[Scheme | None, list[Part]] = {}
    for part in tensor.parts:
        leaf = None
        if tensor.linear:
            leaf = of_module(scheme, layer, part.name, tensor.role, draft=draft)
        groups.setdefault(leaf, []).append(part)
    sizes: list[float] = []
    for leaf, parts in groups.items():
        if leaf is None:
            sizes.append(memory.dense_bytes(tensor._replace(parts=tuple(parts)), split, 2.0))
            continue
        outs = [memory.part_out(part, tensor, split) for part in parts]
        into, copies = memory.rank_into(tensor, split), memory.rank_copies(tensor, split)
        sizes.extend(allocations(outs, into, copies, leaf, 2.0, kernel=kernel, split=tensor.split))
    return sizes


def weight_sizes(
    built: Architecture, scheme: Scheme, split: Split, kernel: str = "", *, draft: bool = False
) -> list[float]:
    sizes: list[float] = []
    for index, layer in enumerate(built.layers):
        for tensor in layer.tensors:
            sizes += tensor_sizes(tensor, index, scheme, split, kernel, False)
    for tensor in (*built.outer, *built.towers):
        sizes += tensor_sizes(tensor, None, scheme, split, kernel, False)
    if draft:
        for index, layer in enumerate(built.draft, len(built.layers)):
            for tensor in layer.tensors:
                sizes += tensor_sizes(tensor, index, scheme, split, kernel, True)
        for tensor in built.draft_outer:
            sizes += tensor_sizes(tensor, None, scheme, split, kernel, False)
    return sizes


@pytest.mark.parametrize(
    ("id", "upload", "draft", "file_bytes", "tolerance"),
    [
        ("meta-llama/Llama-3.1-70B", "awq-int4", False, 39_767_785_472, 0),
        ("openai/gpt-oss-120b", "openai/gpt-oss-120b", False, 65_248_815_744, 0),
        # Totals of files hold their headers too.
        ("deepseek-ai/DeepSeek-V3", "deepseek-ai/DeepSeek-V3", True, 688_586_727_753, 2e-5),
        ("Qwen/Qwen3.8-27B", "Qwen/Qwen3.8-27B-FP8", True, 30_866_866_928, 1e-4),
        ("Qwen/Qwen3.8-27B", "sakamakismile/Qwen3.8-27B-MTP-NVFP4", True, 20_559_282_592, 1e-5),
    ],
)
def test_bytes_of_checkpoint_files(
    id: str, upload: str, draft: bool, file_bytes: int, tolerance: float
) -> None:
    built = model(id)
    total = sum(weight_sizes(built, scheme_of(id, upload), Split(), draft=draft))
    assert total == pytest.approx(file_bytes, rel=tolerance, abs=0)


def test_an_upload_without_its_tower() -> None:
    built = model("Qwen/Qwen3.6-35B-A3B")._replace(towers=())
    scheme = scheme_of(built.id, "cyankiwi/Qwen-AgentWorld-35B-A3B-AWQ-INT4")
    # The files also hold the shape of each of an expert's matrices, which nobody keeps.
    shapes = 40 * 256 * 3 * 16
    assert sum(weight_sizes(built, scheme, Split())) + shapes == 23_519_913_216


LOGGED = [
    # model, upload, TP, capability, changes of its config, GiB that vLLM logs
    ("openai/gpt-oss-20b", "openai/gpt-oss-20b", 1, 80, {}, 13.7025),
    ("openai/gpt-oss-20b", "openai/gpt-oss-20b", 1, 120, {}, 13.7194),
    ("openai/gpt-oss-120b", "openai/gpt-oss-120b", 4, 80, {}, 17.2217),
    ("Qwen/Qwen3-14B", "fp8-channel", 1, 120, {}, 15.3388),
    ("Qwen/Qwen3-14B", "fp8-channel", 1, 80, {}, 15.3291),
    ("Qwen/Qwen2.5-3B", "fp8-channel", 1, 121, {}, 3.23),
    ("Qwen/Qwen3-30B-A3B", "Qwen/Qwen3-30B-A3B-GPTQ-Int4", 1, 121, {}, 15.6066),
    ("Qwen/Qwen3-235B-A22B", "Qwen/Qwen3-235B-A22B-Instruct-2507-FP8", 4, 120,
     {"max_position_embeddings": 262144}, 55.19),
    ("MiniMaxAI/MiniMax-M2.5", "MiniMaxAI/MiniMax-M2.5", 4, 90, {}, 53.75),
    ("meta-llama/Meta-Llama-3-70B", "awq-int4", 2, 89, {}, 18.55),
    # Less what is no weight: FlashInfer's workspace, 2,048 choices for each of 8,192 tokens.
    ("nvidia/GLM-5.2-NVFP4", "nvidia/GLM-5.2-NVFP4", 4, 120, {}, 106.69 - 0.385 - 0.0625),
    ("zai-org/GLM-5.1-FP8", "zai-org/GLM-5.1-FP8", 8, 90, {}, 89.39),
    ("Qwen/Qwen3.6-27B", "vrfai/Qwen3.6-27B-FP8", 1, 100, {}, 33.66),
    ("Qwen/Qwen2.5-VL-7B-Instruct", "Qwen/Qwen2.5-VL-7B-Instruct-AWQ", 1, 89, {}, 6.59),
]  # fmt: skip


@pytest.mark.parametrize(
    ("id", "upload", "tensor", "capability", "changes", "logged"),
    LOGGED,
    ids=[f"{row[1]} TP{row[2]} sm{row[3]}" for row in LOGGED],
)
def test_weights_that_vllm_logs(
    id: str, upload: str, tensor: int, capability: int, changes: dict[str, Any], logged: float
) -> None:
    built, scheme = model(id, **changes), scheme_of(id, upload)
    weigh = Weighing(
        Methods(),
        scheme,
        Split(tensor=tensor),
        "bf16",
        lambda own: kernel_of(own, "vllm", "nvidia", capability, (0, 12, 0)),
        absorbed="packed",
    )
    total = weigh.stage(built, 0, (len(built.layers),))
    assert total / GIB == pytest.approx(logged, rel=0.005)
