"""Command lines, images, releases and the engine's own configuration file."""

from __future__ import annotations

import pytest

from capcheck.testing import check, run
from capcheck_sglang.launching import image
from capcheck_sglang.releases import releases

MANIFEST = """
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
      containers:
        - name: server
          image: lmsysorg/sglang:v0.4.6.post5-cu124
          command: COMMAND
          resources: {limits: {nvidia.com/gpu: "1"}}
"""
COMMANDS = [
    "[python3, -m, sglang.launch_server, --model-path, Qwen/Qwen2.5-32B-Instruct]",
    "[python, -m, sglang.launch_server, --model-path=Qwen/Qwen2.5-32B-Instruct, --tp, '1']",
    "[sglang, serve, --model-path, Qwen/Qwen2.5-32B-Instruct]",
    "[bash, -c, 'exec python3 -m sglang.launch_server --model-path Qwen/Qwen2.5-32B-Instruct']",
]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_line_is_read(command: str) -> None:
    report = run({"d.yaml": MANIFEST.replace("COMMAND", command)})
    assert [one.rule for one in report.findings] == ["weights/fit"]


@pytest.mark.parametrize(
    ("reference", "version"),
    [
        ("lmsysorg/sglang:v0.4.6-cu124", "0.4.6"),
        ("lmsysorg/sglang:v0.5.8.post1-rocm700-mi35x", "0.5.8.post1"),
        ("docker.io/lmsysorg/sglang:v0.5.4", "0.5.4"),
        ("lmsysorg/sglang:latest", None),
        ("lmsysorg/sglang:dev-cu13", None),
        ("registry.example.com/team/sglang:v0.5.4", None),
    ],
)
def test_images(reference: str, version: str | None) -> None:
    found = image(reference)
    assert found is not None
    assert found.version == version
    assert not found.starts_server
    assert version or found.why


@pytest.mark.parametrize("reference", ["vllm/vllm-openai:v0.11.0", "nginx:1.27"])
def test_other_images(reference: str) -> None:
    assert image(reference) is None


def test_releases_by_name_or_one_for_each_era() -> None:
    assert releases("0.4.6.post5", "")[0].version == (0, 4, 6, 5)
    patched = releases("0.5.12 (patched tree)", "")
    assert patched[0].version == (0, 5, 12)
    assert patched[0].foreign
    eras = releases(None, "the image has no tag")
    assert 2 <= len(eras) <= 8
    assert not any(era.known for era in eras)


def test_an_own_configuration_file_is_read() -> None:
    text = "model-path: Qwen/Qwen2.5-7B-Instruct\nmem-fraction-static: 0.8\ncontext-length: 8192\n"
    report = run({"serve.yaml": text})
    assert [one.format for one in report.deployments] == ["sglang-config"]


SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine:
  name: sglang
  version: "0.5.4"
  args: {max_model_len: 8192}
"""


def test_another_engines_option_is_named_with_ours() -> None:
    (finding,) = check(SPEC)
    assert finding.rule == "options/unknown"
    assert any("context_length" in help for help in finding.help)
