from __future__ import annotations

import pytest
from formats_kit import words

from capcheck import Image
from capcheck_vllm.launching import image, launch

API = "vllm.entrypoints.openai.api_server"


def started(line: str, of: Image | None = None) -> tuple[list[str], str] | None:
    found = launch(words(*line.split()), of)
    if found is None:
        return None
    return [word.text for word in found.arguments], found.positional


@pytest.mark.parametrize(
    ("line", "arguments", "positional"),
    [
        ("vllm serve org/m --port 1", ["org/m", "--port", "1"], "model"),
        ("vllm serve --model org/m", ["--model", "org/m"], "model"),
        ("/opt/venv/bin/vllm serve m", ["m"], "model"),
        (f"python -m {API} --model m", ["--model", "m"], ""),
        (f"python3 -u -m {API} --model m", ["--model", "m"], ""),
        (f"/usr/bin/python3.12 -m {API}", [], ""),
        (f"python3 -X dev -m {API} --seed 1", ["--seed", "1"], ""),
        (f"python3 -m{API} --seed 1", ["--seed", "1"], ""),
        ("python3 -m vllm.entrypoints.api_server --model m", ["--model", "m"], ""),
        ("python3 -m vllm.entrypoints.cli.main serve m", ["m"], "model"),
        ("python3 /x/vllm/entrypoints/openai/api_server.py --model m", ["--model", "m"], ""),
        ("python3 /usr/local/bin/vllm serve m", ["m"], "model"),
        ("exec vllm serve m", ["m"], "model"),
        ("nohup vllm serve m", ["m"], "model"),
        ("numactl --cpunodebind=0 --membind 0 -- vllm serve m", ["m"], "model"),
        ("numactl -N 0 vllm serve m", ["m"], "model"),
        ("env -u X CUDA_VISIBLE_DEVICES=0,1 vllm serve m", ["m"], "model"),
        ("VLLM_USE_V1=0 HF_HOME=/x vllm serve m", ["m"], "model"),
        ("timeout 600 nice -n 5 vllm serve m", ["m"], "model"),
        ("uv run --with ray vllm serve m", ["m"], "model"),
        (f"tini -- python3 -m {API} --model m", ["--model", "m"], ""),
    ],
)
def test_commands_that_start_the_server(line: str, arguments: list[str], positional: str) -> None:
    assert started(line) == (arguments, positional)


@pytest.mark.parametrize(
    "line",
    [
        "", "vllm", "vllm bench serve m", "vllm chat", "echo vllm serve m", "sleep infinity",
        "ray start --head", "python3 -c print()", "python3 bench.py vllm serve m", "python3",
        "python3 -m sglang.launch_server --model m", "python3 -m vllm.collect_env", "python3 -m",
        "bash /vllm-workspace/examples/online_serving/multi-node-serving.sh leader", "env A=1",
        "pip install vllm==0.11.0", "docker run vllm/vllm-openai vllm serve m", "A=b",
        "vllm serve m --omni",
    ],
)  # fmt: skip
def test_commands_that_do_not(line: str) -> None:
    assert started(line) is None


OLD, NEW, LATEST = Image("0.11.0"), Image("0.12.0"), Image(None, "latest")
OTHERS = Image(None, "somebody's", starts_server=False)


@pytest.mark.parametrize(
    ("line", "of", "positional"),
    [
        ("--model m --seed 1", OLD, ""),
        ("m --seed 1", OLD, ""),
        ("m --seed 1", NEW, "model"),
        ("m --seed 1", Image("0.12.0rc1"), "model"),
        ("m --seed 1", LATEST, "model"),
        ("", NEW, "model"),
        # Taken for arguments: each of them is a stray word.
        ("vllm serve m", NEW, ""),
    ],
)
def test_arguments_of_an_images_own_server(line: str, of: Image, positional: str) -> None:
    found = started(line, of)
    assert found is not None
    assert found[1] == positional


def test_an_image_without_a_server_runs_its_arguments() -> None:
    assert started("vllm serve m", OTHERS) == (["m"], "model")
    assert started("sleep 5", OTHERS) is None
    assert started("", OTHERS) is None


def test_arguments_that_only_vllm_has_tell_what_somebodys_image_starts() -> None:
    assert started("--model m --max-model-len 4096 --port 80", OTHERS) is not None
    assert started("--model m --port 80", OTHERS) is None
    assert started("--model m --max-model-len 4096 --routing-logic session", OTHERS) is None


@pytest.mark.parametrize(
    ("reference", "version"),
    [
        ("vllm/vllm-openai:v0.11.0", "0.11.0"),
        ("vllm/vllm-openai:v0.6.6.post1", "0.6.6.post1"),
        ("vllm/vllm-openai:v0.10.1.1", "0.10.1.1"),
        ("vllm/vllm-openai:v0.11.0rc2", "0.11.0rc2"),
        ("vllm/vllm-openai:v0.10.2-x86_64", "0.10.2"),
        ("docker.io/vllm/vllm-openai:0.9.2", "0.9.2"),
        ("mirror.example:5000/vllm/vllm-openai:v0.8.5", "0.8.5"),
        ("registry.corp/ai/vllm-openai:v0.8.5", "0.8.5"),
        ("vllm/vllm-openai:v0.11.0@sha256:" + "0" * 64, "0.11.0"),
        ("aibrix/vllm-openai:v0.9.2-cu128-nixl-v0.4.1-lmcache-0.3.1", "0.9.2"),
        ("aibrix/vllm-openai-aibrix-kvcache:v0.10.2-20251022", "0.10.2"),
        ("rocm/vllm:rocm6.4.1_vllm_0.10.1_20250909", "0.10.1"),
        ("rocm/vllm:rocm6.3.1_instinct_vllm0.8.3_20250415", "0.8.3"),
        ("public.ecr.aws/deep-learning-containers/vllm:0.10.2-gpu-py312-ec2", "0.10.2"),
        ("public.ecr.aws/q9t5s3a7/vllm-cpu-release-repo:v0.11.0", "0.11.0"),
        ("vllm/vllm-openai", None),
        ("vllm/vllm-openai:latest", None),
        ("vllm/vllm-openai:nightly-0123abc", None),
        ("vllm/vllm-openai:gptoss", None),
        ("vllm/vllm-openai:v0.11", None),
        ("vllm/vllm-openai@sha256:" + "0" * 64, None),
        ("rocm/vllm:latest", None),
        ("lmcache/vllm-openai:v0.3.9", None),
        ("lmcache/vllm-openai:2025-05-27-v1", None),
        ("vllm/vllm-tpu:v0.11.1", None),
        ("ghcr.io/llm-d/llm-d-cuda:v0.4.0", None),
        ("nvcr.io/nvidia/vllm:25.09-py3", None),
        ("us-docker.pkg.dev/vertex-ai/x/pytorch-vllm-serve:20250312_0916_RC01", None),
        ("mycorp/vllm:1.2.3", None),
        ("inferex-vllm:latest", None),
        ("${VLLM_IMAGE}", None),
    ],
)
def test_images_of_vllm(reference: str, version: str | None) -> None:
    found = image(reference)
    assert found is not None
    assert found.version == version
    assert (found.why == "") == (version is not None and "cpu" not in reference)


@pytest.mark.parametrize(
    "reference",
    [
        "", "nginx", "lmsysorg/sglang:v0.5.4", "ghcr.io/llm-d/llm-d-inference-sim:v0.3.0",
        "ghcr.io/huggingface/text-generation-inference:3.3.4", "nvcr.io/nvidia/tritonserver:25.09",
        "lmcache/lmstack-router:latest", "rayproject/ray:2.9", "vllmish:1",
    ],
)  # fmt: skip
def test_images_of_others(reference: str) -> None:
    assert image(reference) is None


def test_a_processors_build_says_so() -> None:
    for reference in ("vllm/vllm-openai-cpu:v0.14.0", "vllm/vllm-cpu:v0.14.0"):
        found = image(reference)
        assert found == Image("0.14.0", "a CPU build")


@pytest.mark.parametrize(
    ("reference", "starts"),
    [("vllm/vllm-openai:v0.11.0", True), ("rocm/vllm:latest", False), ("a-vllm:1", False),
     ("nvcr.io/nvidia/vllm:25.09-py3", False)],
)  # fmt: skip
def test_which_images_start_a_server(reference: str, starts: bool) -> None:
    found = image(reference)
    assert found is not None
    assert found.starts_server is starts
