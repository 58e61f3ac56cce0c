"""Command lines and images that start llama.cpp or Ollama, and changes in their words."""

from __future__ import annotations

import pytest
from llama_kit import LLAMA_3, case_of

from capcheck import Change, Place
from capcheck.testing import check
from capcheck.words import Word
from capcheck_llama_cpp.engine import LlamaCpp
from capcheck_llama_cpp.names import file_type
from capcheck_llama_cpp.ollama import Ollama

LLAMA, OLLAMA = LlamaCpp(), Ollama()


def words(text: str) -> list[Word]:
    return [Word(one, Place("run.sh")) for one in text.split()]


@pytest.mark.parametrize(
    "text",
    [
        "llama-server -m m.gguf -c 4096",
        "/app/llama-server -m m.gguf -c 4096",
        "./build/bin/llama-cli -m m.gguf -c 4096",
        "CUDA_VISIBLE_DEVICES=0 llama-server -m m.gguf -c 4096",
        "numactl --interleave=all llama-server -m m.gguf -c 4096",
        "./server -m m.gguf -c 4096",
        "python3 -m llama_cpp.server -m m.gguf -c 4096",
        "llama serve -m m.gguf -c 4096",
    ],
)
def test_servers(text: str) -> None:
    found = LLAMA.launch(words(text), None)
    assert found is not None
    assert [one.text for one in found.arguments] == ["-m", "m.gguf", "-c", "4096"]


@pytest.mark.parametrize("text", ["", "A=1", "llama-bench -m m", "server --port 80", "./server --x",
                                  "python -m vllm", "ollama serve", "llama run x"])  # fmt: skip
def test_other_commands(text: str) -> None:
    assert LLAMA.launch(words(text), None) is None


@pytest.mark.parametrize(
    ("reference", "version", "serves"),
    [
        ("ghcr.io/ggml-org/llama.cpp:server-cuda-b5427", "b5427", True),
        ("ghcr.io/ggerganov/llama.cpp:server-b2824", "b2824", True),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", None, True),
        ("ghcr.io/ggml-org/llama.cpp:full-cuda-b5427", "b5427", False),
        ("ghcr.io/ggml-org/llama.cpp", None, True),
        ("me/ik-llama-cpp:latest", None, False),
        ("ghcr.io/abetlen/llama-cpp-python:v0.3.16", "v0.3.16", True),
    ],
)
def test_images(reference: str, version: str | None, serves: bool) -> None:
    found = LLAMA.image(reference)
    assert found is not None and (found.version, found.starts_server) == (version, serves)
    assert (version is None) == bool(found.why)
    assert OLLAMA.image(reference) is None


def test_other_images() -> None:
    assert LLAMA.image("vllm/vllm-openai:v0.11.0") is None
    assert LLAMA.image("ollama/ollama:0.12.6") is None


def test_arguments_of_an_image() -> None:
    image = LLAMA.image("ghcr.io/ggml-org/llama.cpp:full-cuda-b5427")
    assert image is not None
    found = LLAMA.launch(words("--server -m m.gguf"), image)
    assert found is not None and found.arguments[0].text == "-m"
    assert LLAMA.launch(words("--run -m m.gguf"), image) is None


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("unsloth/Qwen3-8B-GGUF:Q4_K_M", "q4_k_m"),
        ("/models/Qwen3-32B-IQ4_XS.gguf", "iq4_xs"),
        ("Llama-3.1-8B-Instruct-Q8_0-00001-of-00002.gguf", "q8_0"),
        ("Qwen3-8B-UD-Q4_K_XL.gguf", "ud-q4_k_xl"),
        ("gpt-oss-20b-mxfp4.gguf", "mxfp4_moe"),
        ("gemma-3-4b-it-f16.gguf", "fp16"),
        ("DeepSeek-V3-IQ2_K_R4.gguf", "iq2_k_r4"),
        ("Qwen3-8B.gguf", None),
        ("Qwen3-8B", None),
    ],
)
def test_file_types(name: str, found: str | None) -> None:
    assert file_type(name) == found


def test_repositories_name_model_and_type() -> None:
    manifest = """
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
  - name: main
    image: ghcr.io/ggml-org/llama.cpp:server-cuda-b9000
    args: [-hf, "unsloth/Qwen3-32B-GGUF:Q4_K_M", -c, "131072", -np, "1", -ngl, "99"]
    resources: {limits: {nvidia.com/gpu: "1"}}
  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
"""
    found = {one.rule: one for one in check(manifest)}
    assert "kv-cache/one-request" in found
    assert "131,072 tokens = 32.0 GiB" in found["kv-cache/one-request"].arithmetic


def test_a_repository_without_a_type_is_q4_k_m() -> None:
    case = case_of(LLAMA_3, hf_repo="ggml-org/Qwen3-8B-GGUF")
    value = LLAMA.precision(case.deployment)
    assert value is not None and value.get() == "q4_k_m" and value.origin.kind == "default"


def test_a_bare_flash_flag_takes_the_next_word() -> None:
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
  - name: main
    image: ghcr.io/ggml-org/llama.cpp:server-cuda-BUILD
    args: [-hf, "unsloth/Qwen3-8B-GGUF:Q4_K_M", -c, "8192", -fa, -ngl, "99"]
    resources: {limits: {nvidia.com/gpu: "1"}}
"""
    rules = {
        build: [one.rule for one in check(pod.replace("BUILD", build))]
        for build in ("b5000", "b9000")
    }
    assert "options/value" in rules["b9000"] and "options/value" not in rules["b5000"]


def test_changes() -> None:
    case = case_of(LLAMA_3, "q4_k_m", **{"ctx-size": 32768, "parallel": 4})
    edit = LLAMA.write(Change("max_request_tokens", 4096), case.deployment)
    assert edit is not None and edit.words == "ctx-size: 16384"  # four slots of 4,096
    step = LLAMA.write(Change("max_step_tokens", 256), case.deployment)
    assert step is not None and step.words == "ubatch-size: 256"
    assert LLAMA.write(Change("kv_dtype", "fp8_e4m3"), case.deployment) is None
