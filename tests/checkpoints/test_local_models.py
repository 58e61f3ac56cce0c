"""A checkpoint's folder or file, named where a model is named."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from checkpoint_kit import (
    CONFIG,
    GGUF_METADATA,
    PARAMETERS,
    gguf,
    gguf_tensors,
    write_checkpoint,
)

from capcheck.case import Case, Model
from capcheck.config import Settings
from capcheck.session import Session
from capcheck.testing import plugins

SPEC = """\
apiVersion: capcheck/v1
kind: Deployment
name: acme
model: {%s}
hardware: {accelerator: nvidia/l4, count: 1}
engine: {name: vllm, version: "0.11.0"%s}
"""
FP8 = {"quant_method": "fp8", "activation_scheme": "dynamic"}


def session_of(root: Path) -> Session:
    return Session(plugins(), Settings(), root)


def resolved(root: Path, file: str = "deploy/spec.yaml") -> tuple[Case, list[str]]:
    """The deployment's case, and what is wrong with the input."""
    session = session_of(root)
    (draft,) = session.intake.read([root / file])
    found = session.resolve(draft)
    said = [
        f"{one.place.line}:{one.place.column} {one.rule} {one.message}"
        for one in (*session.intake.problems, *found.problems)
    ]
    said += [one.message for one in session.guard.errors]
    return found.cases[0], said


def model_of(root: Path, file: str = "deploy/spec.yaml") -> Model:
    case, problems = resolved(root, file)
    assert problems == []
    return case.model.get()


def write(root: Path, name: str, text: str) -> None:
    (root / name).parent.mkdir(parents=True, exist_ok=True)
    (root / name).write_text(text, encoding="utf-8")


def spec(root: Path, model: str, more: str = "") -> None:
    write(root, "deploy/spec.yaml", SPEC % (model, more))


@pytest.mark.parametrize(
    "model",
    [
        "id: ./models/acme",
        "id: ./models/acme/",
        "id: models/acme",
        "id: ../deploy/models/acme",
        "id: ./models/acme/config.json",
        "config: ./models/acme",
        "config: models/acme/config.json",
    ],
)
def test_a_folder_beside_the_file(tmp_path: Path, model: str) -> None:
    write_checkpoint(tmp_path / "deploy" / "models" / "acme")
    spec(tmp_path, model)
    found = model_of(tmp_path)
    assert found.architecture.parameters == PARAMETERS
    assert found.scheme.get() is None


def test_the_engines_own_option(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "deploy" / "acme")
    write(tmp_path, "deploy/vllm.yaml", "model: ./acme\ngpu-memory-utilization: 0.9\n")
    assert model_of(tmp_path, "deploy/vllm.yaml").architecture.parameters == PARAMETERS
    spec(tmp_path, "weights: {}", ", args: {model: ./acme}")
    assert model_of(tmp_path).architecture.parameters == PARAMETERS


def test_it_is_relative_to_the_file_that_says_it(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "engine" / "acme")
    write(tmp_path, "engine/vllm.yaml", "model: ./acme\n")
    spec(tmp_path, "weights: {}", ", config: ../engine/vllm.yaml")
    assert model_of(tmp_path).architecture.parameters == PARAMETERS


def test_a_draft_model(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "deploy" / "acme")
    draft = {**CONFIG, "num_hidden_layers": 1}
    write_checkpoint(tmp_path / "deploy" / "small", config=draft)
    told = "speculative_config: {model: ./small, num_speculative_tokens: 3}"
    spec(tmp_path, "id: ./acme", f", args: {{{told}}}")
    case, problems = resolved(tmp_path)
    assert problems == []
    small = case.draft_model()
    assert small is not None
    assert len(small.architecture.layers) == 1


BESIDE: list[tuple[str, Mapping[str, Any], str]] = [
    ("hf_quant_config.json", {"quantization": {"quant_algo": "FP8"}}, "fp8_e4m3"),
    ("hf_quant_config.json", {"quantization": {"quant_algo": "NVFP4", "group_size": 16}}, "nvfp4"),
    ("quantize_config.json", {"bits": 4, "group_size": 128, "desc_act": False}, "int4"),
    ("quant_config.json", {"w_bit": 4, "q_group_size": 128, "zero_point": True}, "int4"),
]


@pytest.mark.parametrize(("name", "told", "weight"), BESIDE)
def test_a_quantization_in_a_file_of_its_own(
    tmp_path: Path, name: str, told: Mapping[str, Any], weight: str
) -> None:
    folder = write_checkpoint(tmp_path / "deploy" / "acme")
    (folder / name).write_text(json.dumps(told), encoding="utf-8")
    spec(tmp_path, "id: ./acme")
    scheme = model_of(tmp_path).scheme.get()
    assert scheme is not None
    assert (scheme.weight, scheme.seen) == (weight, "config")


def test_the_configurations_own_quantization_comes_first(tmp_path: Path) -> None:
    config = {**CONFIG, "quantization_config": FP8}
    folder = write_checkpoint(tmp_path / "deploy" / "acme", config=config)
    (folder / "quantize_config.json").write_text('{"bits": 4}', encoding="utf-8")
    spec(tmp_path, "id: ./acme")
    scheme = model_of(tmp_path).scheme.get()
    assert scheme is not None
    assert scheme.weight == "fp8_e4m3"


def test_mistrals_own_form(tmp_path: Path) -> None:
    params = {
        "dim": 256, "n_layers": 2, "head_dim": 64, "hidden_dim": 512, "n_heads": 4,
        "n_kv_heads": 2, "vocab_size": 1024, "max_position_embeddings": 4096,
        "quantization": {"qformat_weight": "fp8_e4m3", "qscheme_act": "TENSOR"},
    }  # fmt: skip
    write(tmp_path, "deploy/acme/params.json", json.dumps(params))
    spec(tmp_path, "id: ./acme")
    found = model_of(tmp_path)
    assert found.architecture.parameters == PARAMETERS
    scheme = found.scheme.get()
    assert scheme is not None
    assert (scheme.weight, scheme.activation_static) == ("fp8_e4m3", True)


@pytest.mark.parametrize("name", ["./acme.gguf", "./folder", "./folder/acme.gguf"])
def test_a_gguf_file(tmp_path: Path, name: str) -> None:
    data = gguf(GGUF_METADATA, gguf_tensors())
    for place in ("acme.gguf", "folder/acme.gguf"):
        (tmp_path / "deploy" / place).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "deploy" / place).write_bytes(data)
    spec(tmp_path, f"id: {name}")
    found = model_of(tmp_path)
    assert found.architecture.parameters == found.parameters == PARAMETERS
    scheme = found.scheme.get()
    assert scheme is not None
    assert (scheme.method, scheme.weight) == ("gguf", "q4_k_m")


def test_the_spec_still_says_what_the_weights_are(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "deploy" / "acme")
    spec(tmp_path, "id: ./acme, weights: {precision: fp8}")
    scheme = model_of(tmp_path).scheme.get()
    assert scheme is not None
    assert scheme.weight == "fp8_e4m3"


# what cannot be used

FAULTS: list[tuple[str, Mapping[str, bytes], str]] = [
    ("./acme", {"acme/README.md": b""}, "holds neither config.json nor a .gguf file"),
    ("./acme", {"acme/config.json": b"{"}, "not JSON"),
    ("./acme", {"acme/config.json": b"[]"}, "expected a JSON object"),
    ("./acme", {"acme/config.json": b'{"model_type": "nope"}'}, "unknown model_type 'nope'"),
    ("./acme", {"acme/config.json": b'{"model_type": "llama"}'}, "expected a whole number"),
    ("./acme.gguf", {"acme.gguf": b"GGUF"}, "ends within the version"),
    ("./acme.gguf", {"acme.gguf": b"version https://git-lfs.github.com/x\n"}, "Git LFS"),
    ("./acme", {"acme/a.gguf": b"", "acme/b.gguf": b""}, "holds 2 models"),
    ("./acme", {"acme/params.json": b'{"dim": 1, "n_layers": 1, "vision_encoder": {"a": 1}}'},
     "vision_encoder is not read"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "files", "why"), FAULTS)
def test_what_cannot_be_used_is_said_once_at_its_place(
    tmp_path: Path, name: str, files: Mapping[str, bytes], why: str
) -> None:
    for file, data in files.items():
        path = tmp_path / "deploy" / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    spec(tmp_path, f"id: {name}")
    case, problems = resolved(tmp_path)
    assert case.model.unknown
    (said,) = problems
    assert said.startswith("4:13 spec/model-config ")
    assert why in said


def test_what_a_folder_lacks_here_is_no_error(tmp_path: Path) -> None:
    """The engine may find it there where it runs."""
    (tmp_path / "deploy" / "acme").mkdir(parents=True)
    spec(tmp_path, "id: ./acme")
    report = session_of(tmp_path).run([tmp_path / "deploy" / "spec.yaml"])
    assert [(one.rule, one.severity) for one in report.findings] == [
        ("spec/model-config", "warning")
    ]


def test_a_gguf_of_another_drawing_is_not_trusted(tmp_path: Path) -> None:
    tensors = {**gguf_tensors(), "blk.0.extra.weight": ("F32", (256, 512))}
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy" / "acme.gguf").write_bytes(gguf(GGUF_METADATA, tensors))
    spec(tmp_path, "id: ./acme.gguf")
    case, (said,) = resolved(tmp_path)
    assert case.model.unknown
    assert f"hold {PARAMETERS + 256 * 512:,} weights, where llama has {PARAMETERS:,}" in said


@pytest.mark.parametrize("name", ["./gone", "../../outside", "/models/acme-ish-9x"])
def test_paths_of_other_machines_stay_names(tmp_path: Path, name: str) -> None:
    write_checkpoint(tmp_path / "outside")
    root = tmp_path / "root"
    spec(root, f"id: {name}")
    case, (said,) = resolved(root)
    assert case.model.unknown
    assert f"the model '{name}' is not in the catalogue" in said


@pytest.mark.skipif(os.name == "nt", reason="links need rights there")
@pytest.mark.parametrize("inner", [False, True])
def test_links_do_not_lead_out_of_the_tree(tmp_path: Path, inner: bool) -> None:
    outside = write_checkpoint(tmp_path / "outside")
    root = tmp_path / "root"
    spec(root, "id: ./acme")
    if inner:
        (root / "deploy" / "acme").mkdir()
        (root / "deploy" / "acme" / "config.json").symlink_to(outside / "config.json")
    else:
        (root / "deploy" / "acme").symlink_to(outside)
    case, problems = resolved(root)
    assert case.model.unknown
    assert len(problems) == 1
    assert ("leads out of the checked tree" in problems[0]) == inner


def test_a_hubs_name_needs_a_checkpoint_to_be_a_folder(tmp_path: Path) -> None:
    """Folders are called like organizations; without a configuration the name stays a name."""
    (tmp_path / "deploy" / "Qwen" / "Qwen3-8B").mkdir(parents=True)
    spec(tmp_path, "id: Qwen/Qwen3-8B")
    assert model_of(tmp_path).architecture.family == "qwen3"


def test_a_path_in_a_container_is_still_unknown(tmp_path: Path) -> None:
    write_checkpoint(tmp_path / "models" / "foo")
    spec(tmp_path, "id: /models/foo")
    case, (said,) = resolved(tmp_path)
    assert case.model.unknown
    assert "spec/unknown-model" in said
