from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import capcheck_quantization
from capcheck.quantization import Scheme
from capcheck_models.checkpoints import all_checkpoints
from capcheck_quantization.legality import (
    capability_problems,
    dead_end,
    dtype_problems,
    kv_problems,
    method_key,
    method_problems,
    rows,
)
from capcheck_quantization.releases import Version, holds, version
from capcheck_quantization.schemes import from_words

DATA = Path(capcheck_quantization.__file__).parent / "data"
TABLES = ("capabilities.jsonl", "methods.jsonl", "dtypes.jsonl", "shapes.jsonl", "kv.jsonl",
          "kernels.jsonl")  # fmt: skip
AWQ = Scheme("awq", "int4", 4, 128, zero_points=True)
BLOCK = Scheme("fp8", "fp8_e4m3", 8, 0, (128, 128), activation="fp8")


@pytest.mark.parametrize("table", TABLES)
def test_every_row_has_a_source_and_edges_in_order(table: str) -> None:
    for line in (DATA / table).read_text("utf-8").splitlines():
        row = json.loads(line)
        assert row["source"]
        assert row["engine"]
        edges = [version(edge) for key in ("since", "until") for edge in row.get(key, ())]
        assert edges == sorted(edges), row


@pytest.mark.parametrize(
    ("row", "release", "answer"),
    [
        ({}, None, True),
        ({}, (0, 1), True),
        ({"since": ["0.11.2", "0.12.0"]}, (0, 12, 0), True),
        ({"since": ["0.11.2", "0.12.0"]}, (0, 11, 2), False),
        ({"since": ["0.11.2", "0.12.0"]}, (0, 11, 3), None),
        ({"since": ["0.11.2", "0.12.0"]}, None, None),
        ({"until": ["0.11.2", "0.12.0"]}, (0, 11, 2), True),
        ({"until": ["0.11.2", "0.12.0"]}, (0, 12, 0), False),
        ({"since": ["0.9", "0.10"], "until": ["0.11.2", "0.12.0"]}, (0, 12, 0), False),
        ({"since": ["0.9", "0.10"], "until": ["0.11.2", "0.12.0"]}, (0, 10, 1), True),
    ],
)
def test_release_ranges(row: dict[str, Any], release: Version | None, answer: bool | None) -> None:
    assert holds(row, release) is answer


@pytest.mark.parametrize(
    ("word", "key"),
    [("awq-int4", "awq"), ("fp8", "fp8"), ("fp8-block", "fp8-block"), ("fp8-channel", "w8a8-fp8"),
     ("int8", "w8a8-int8"), ("int4", "w4a16"), ("nvfp4", "modelopt-nvfp4"),
     ("nvfp4-w4a16", "nvfp4-ct"), ("mxfp4", "mxfp4"), ("bnb-nf4", "bitsandbytes"),
     ("q4_k_m", "gguf")],
)  # fmt: skip
def test_method_keys(word: str, key: str) -> None:
    scheme = from_words(word)
    assert scheme is not None
    assert method_key(scheme) == key


def test_every_known_method_is_in_the_tables() -> None:
    judged = {row["method"] for row in rows("capabilities.jsonl")}
    assert {method_key(one.scheme) for one in all_checkpoints() if one.scheme} <= judged


@pytest.mark.parametrize(
    ("word", "capability", "release", "need", "sure"),
    [
        ("awq-int4", 70, (0, 11, 0), 75, True),
        ("awq-int4", 75, (0, 11, 0), None, False),
        ("int4", 70, (0, 10, 0), 80, True),
        ("int4", 75, (0, 11, 0), 80, True),
        ("int4", 75, (0, 12, 0), None, False),
        ("int4", 75, None, 80, False),
        ("int4", 70, None, 75, True),
        ("fp8", 75, (0, 11, 0), 80, True),
        ("fp8", 75, (0, 14, 0), None, False),
        ("fp8-block", 80, (0, 8, 5), 89, True),
        ("fp8-block", 80, (0, 9, 2), None, False),
        ("fp8-channel", 80, (0, 11, 0), None, False),
        ("nvfp4", 90, (0, 8, 5), 100, True),
        ("nvfp4", 80, (0, 11, 0), None, False),
        ("mxfp4", 75, (0, 11, 0), 80, True),
        ("bnb-nf4", 61, (0, 11, 0), 70, True),
    ],
)
def test_capabilities(
    word: str, capability: int, release: Version | None, need: int | None, sure: bool
) -> None:
    scheme = from_words(word)
    assert scheme is not None
    found = capability_problems(scheme, "vllm", "nvidia", capability, release)
    assert [(one.need, one.sure) for one in found] == ([] if need is None else [(need, sure)])
    assert capability_problems(scheme, "vllm", "amd", None, release) == ()
    assert capability_problems(scheme, "tgi", "nvidia", 10, release) == ()


def test_a_part_that_the_device_lacks_is_found() -> None:
    mixed = BLOCK._replace(parts=(Scheme("modelopt", "nvfp4", 4, 16), BLOCK))
    (found,) = capability_problems(mixed, "vllm", "nvidia", 90, (0, 8, 5))
    assert found.what == "modelopt-nvfp4"


def test_a_guessed_method_is_never_sure() -> None:
    named = AWQ._replace(seen="name")
    (found,) = capability_problems(named, "vllm", "nvidia", 70, (0, 11, 0))
    assert not found.sure
    guessed = AWQ._replace(guessed=("method",))
    assert not capability_problems(guessed, "vllm", "nvidia", 70, (0, 11, 0))[0].sure


@pytest.mark.parametrize(
    ("word", "release", "sure"),
    [("q4_k_m", (0, 23, 0), None), ("q4_k_m", (0, 24, 0), True), ("q4_k_m", None, None),
     ("bnb-nf4", (0, 28, 0), True), ("bnb-nf4", (0, 27, 5), False), ("mxfp4", (0, 10, 0), True),
     ("hqq-int4", (0, 15, 0), True), ("awq-int4", (0, 32, 0), None)],
)  # fmt: skip
def test_methods_come_and_go(word: str, release: Version | None, sure: bool | None) -> None:
    scheme = from_words(word)
    assert scheme is not None
    found = method_problems(scheme, "vllm", release)
    assert [one.sure for one in found] == ([] if sure is None else [sure])


def test_a_method_that_moved_out_says_where_to() -> None:
    (found,) = method_problems(Scheme("gguf", "q4_k_m", 4.9), "vllm", (0, 30, 0))
    assert "0.5.5 to 0.23.0" in found.words
    assert "vllm-gguf-plugin" in found.words


@pytest.mark.parametrize(
    ("scheme", "dtype", "more", "refused"),
    [
        (None, "bf16", {"vendor": "nvidia", "capability": 75}, True),
        (None, "bf16", {"vendor": "nvidia", "capability": 80}, False),
        (None, "fp16", {"vendor": "nvidia", "capability": 75}, False),
        (None, "fp16", {"model_type": "gemma3"}, True),
        (None, "bf16", {"model_type": "gemma3"}, False),
        (None, "fp16", {"model_type": "llama"}, False),
        (None, "fp16", {"model_type": "gemma2", "release": (0, 8, 5)}, False),
        (AWQ, "bf16", {"forced": "awq"}, True),
        (AWQ, "bf16", {"forced": "awq", "release": (0, 24, 0)}, False),
        (AWQ, "bf16", {"vendor": "nvidia", "capability": 90}, False),
        (Scheme("mxfp4", "mxfp4", 4, 32), "fp16", {}, True),
        (Scheme("gguf", "q4_k_m", 4.9), "bf16", {"capability": 100, "release": (0, 14, 0)}, True),
        (Scheme("gguf", "q4_k_m", 4.9), "bf16", {"capability": 90, "release": (0, 14, 0)}, False),
    ],
)
def test_dtypes(scheme: Scheme | None, dtype: str, more: dict[str, Any], refused: bool) -> None:
    told = {"engine": "vllm", "release": (0, 11, 0), **more}
    found = dtype_problems(scheme, dtype, **told)
    assert bool(found) is refused
    assert all(one.sure for one in found)


def test_models_without_a_legal_16_bit_dtype() -> None:
    told: dict[str, Any] = {"engine": "vllm", "release": (0, 11, 0), "vendor": "nvidia"}
    both = ("fp16", "bf16")
    assert dead_end(None, both, capability=75, model_type="gemma3", **told)
    assert not dead_end(None, both, capability=80, model_type="gemma3", **told)
    assert dead_end(AWQ, both, capability=90, model_type="gemma3", forced="awq", **told)


def test_kv_dtypes_are_doubts() -> None:
    (found,) = kv_problems("fp8_e4m3", "vllm", "nvidia", 86, (0, 11, 0))
    assert not found.sure
    assert "8.9" in found.words
    assert kv_problems("fp8_e4m3", "vllm", "nvidia", 89, None) == ()
    assert kv_problems("fp8_e5m2", "vllm", "nvidia", 86, None) == ()
