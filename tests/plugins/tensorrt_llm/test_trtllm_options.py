"""Options of command line and YAML, images and commands, and what TensorRT-LLM refuses."""

from __future__ import annotations

from typing import Any

import pytest
from trtllm_specs import bench, case_of, spec, verdicts

from capcheck import Change
from capcheck.testing import run
from capcheck_tensorrt_llm.launching import image
from capcheck_tensorrt_llm.table import TABLE

MANIFEST = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: chat}
spec:
  selector: {matchLabels: {app: chat}}
  template:
    metadata: {labels: {app: chat}}
    spec:
      nodeSelector: {cloud.google.com/gke-accelerator: nvidia-h100-80gb}
      volumes: [{name: options, configMap: {name: chat-options}}]
      containers:
        - name: server
          image: nvcr.io/nvidia/tensorrt-llm/release:1.0.0
          command: [trtllm-serve, meta-llama/Llama-3.1-8B-Instruct]
          args: [--max_batch_size, "64", --max_seq_len, "8192", ARGS
                 --extra_llm_api_options, /options/options.yaml]
          volumeMounts: [{name: options, mountPath: /options}]
          resources: {limits: {nvidia.com/gpu: "1"}}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: chat-options}
data:
  options.yaml: |
    max_batch_size: 16
    FILE
"""
SPEC = """\
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: meta-llama/Llama-3.1-8B-Instruct}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 1}
engine:
  name: tensorrt-llm
  version: "RELEASE"
  config: ./options.yaml
  args: {max_seq_len: 8192, max_batch_size: 64}
"""


def _manifest(args: str = "", file: str = "max_num_tokens: 4096") -> str:
    return MANIFEST.replace("ARGS", args).replace("FILE", file)


@pytest.mark.parametrize(
    ("name", "release", "verdict"),
    [("--tp_size", (0, 17, 0), "known"), ("--max_batch_size", (1, 3, 0), "known"),
     ("cuda_graph_config", (1, 0, 0), "known"), ("cuda_graph_config", (0, 20, 0), "not yet"),
     ("use_cuda_graph", (1, 0, 0), "removed"), ("max_num_toknes", (1, 0, 0), "unknown"),
     ("max_num", (1, 0, 0), "unknown"), ("sampler_type", (1, 1, 0), "unsure")],
)  # fmt: skip
def test_edges_of_the_table(name: str, release: tuple[int, ...], verdict: str) -> None:
    assert TABLE.resolve(name, release).verdict == verdict


def test_keys_of_the_kv_cache() -> None:
    assert TABLE.resolve_key("kv_cache_config", "tokens_per_block", (1, 0, 0)).verdict == "known"
    assert TABLE.resolve_key("kv_cache_config", "dtype", (0, 20, 0)).stray == "ignored"
    assert TABLE.resolve_key("kv_cache_config", "tokens_per_blok", (1, 3, 0)).stray == "error"


@pytest.mark.parametrize(
    ("version", "args", "backend"),
    [("0.20.0", {}, "tensorrt"), ("0.20.0", {"kv_cache_free_gpu_mem_fraction": 0.9}, "pytorch"),
     ("0.19.0", {"kv_cache_free_gpu_mem_fraction": 0.9}, "tensorrt"), ("1.0.0", {}, "pytorch"),
     ("1.0.0", {"backend": "trt"}, "tensorrt"), (None, {}, "pytorch")],
)  # fmt: skip
def test_what_runs_the_model(version: str | None, args: dict[str, Any], backend: str) -> None:
    """trtllm-serve builds an engine before 1.0; trtllm-bench does so before 0.20."""
    assert case_of(version=version, args=args).plan.extra["backend"].get() == backend


@pytest.mark.parametrize("release", ["0.21.0", "1.0.0", "1.3.0"])
def test_the_file_wins_over_the_command_line(release: str) -> None:
    files = {"chat.yaml": SPEC.replace("RELEASE", release), "options.yaml": "max_batch_size: 16\n"}
    (one,) = run(files, paths=("chat.yaml",)).deployments
    assert one.resolved["max_num_seqs"] == 16
    assert one.resolved["max_model_len"] == 8192


def test_the_file_of_a_config_map_wins_too() -> None:
    (one,) = run({"app.yaml": _manifest()}).deployments
    assert one.resolved["engine"] == "tensorrt-llm"
    assert one.resolved["engine_version"] == "1.0.0"
    assert one.resolved["max_num_seqs"] == 16
    assert one.resolved["max_num_batched_tokens"] == 4096


def test_a_remedy_turns_the_value_that_counts() -> None:
    files = {
        "chat.yaml": SPEC.replace("RELEASE", "1.0.0").replace("h100-sxm5-80gb", "rtx-4090"),
        "options.yaml": "max_seq_len: 131072\nmax_batch_size: 16\n",
    }
    (found,) = run(files, paths=("chat.yaml",), select=("kv-cache/one-request",)).findings
    assert found.place.file == "options.yaml"
    assert any(help.startswith("max_seq_len: ") for help in found.help)


def test_a_misspelt_key_of_the_file() -> None:
    text = _manifest(file="max_num_toknes: 4096")
    (found,) = (one for one in run({"app.yaml": text}).findings if one.severity == "error")
    assert found.rule == "options/unknown"
    assert found.help == ("did you mean max_num_tokens?",)


def test_dashes_are_no_spelling_of_trtllm_serve() -> None:
    text = _manifest(args='--max-num-tokens, "4096",', file="print_iter_log: true")
    (found,) = (one for one in run({"app.yaml": text}).findings if one.severity == "error")
    assert found.rule == "options/value"
    assert "--max_num_tokens" in found.message


def test_trtllm_bench_has_a_name_of_its_own() -> None:
    text = _manifest(args='--kv_cache_free_gpu_mem_fraction, "0.8",')
    (found,) = (one for one in run({"app.yaml": text}).findings if one.severity == "error")
    assert "trtllm-bench" in found.message


def test_a_kv_cache_config_makes_the_share_forgotten() -> None:
    """Up to 1.1 the file's kv_cache_config replaces the command line's; from 1.3 on they merge."""
    args = '--kv_cache_free_gpu_memory_fraction, "0.8",'
    text = _manifest(args=args, file="kv_cache_config: {enable_block_reuse: false}")
    for release, share in (("1.0.0", 0.9), ("1.3.0", 0.8)):
        session = bench().session
        drafts = session.intake.read((), stdin=("app.yaml", text.replace("1.0.0", release)))
        (case,) = session.resolve(drafts[0]).cases
        assert case.plan.memory.get().amount == share
    found = [one.message for one in run({"app.yaml": text}).findings]
    assert any("the share is 0.9" in message for message in found)


@pytest.mark.parametrize(
    ("rule", "args", "more"),
    [
        ("options/value", {"max_batch_size": 0}, {}),
        ("options/value", {"kv_cache_config": {"free_gpu_memory_fraction": 1.0}}, {}),
        ("options/value", {"kv_cache_config": {"tokens_per_block": 48}}, {}),
        ("options/value", {"kv_cache_config": {"dtype": "fp8_e4m3"}}, {}),
        ("options/value", {"backend": "triton"}, {}),
        ("options/conflict", {"tp_size": 4, "moe_expert_parallel_size": 3}, {"count": 4}),
        ("options/conflict", {"tp_size": 4, "ep_size": 2, "moe_tensor_parallel_size": 4},
         {"count": 4}),
        ("options/conflict", {"max_num_tokens": 8192}, {"workload": {"prompt_tokens": 9351}}),
        ("options/conflict", {"cache_transceiver_config": {"max_tokens_in_buffer": 6500}},
         {"version": "1.2.0"}),
        ("sharding/divisible", {"tp_size": 3}, {"count": 3}),
        ("options/unknown", {"max_num_token": 4096}, {}),
        ("options/unknown", {"kv_cache_config": {"tokens_per_blok": 32}}, {}),
        ("options/removed", {"use_cuda_graph": True}, {}),
        ("quantization/supported", {"dtype": "bfloat16"}, {"accelerator": "nvidia/t4"}),
    ],
)  # fmt: skip
def test_refusals(rule: str, args: dict[str, Any], more: dict[str, Any]) -> None:
    assert "fail" in verdicts(args=args, **more)[rule]


@pytest.mark.parametrize(
    ("args", "more"),
    [
        ({"tp_size": 4, "ep_size": 2, "moe_tensor_parallel_size": 2}, {"count": 4}),
        ({"enable_chunked_prefill": True}, {"workload": {"prompt_tokens": 9351}}),
        ({"cache_transceiver_config": {"max_tokens_in_buffer": 6500}}, {"version": "1.0.0"}),
        ({"kv_cache_config": {"dtype": "fp8", "tokens_per_block": 64}}, {}),
        ({"cuda_graph_config": {"enable_padding": True, "batch_sizes": [1, 2, 4]}}, {}),
    ],
)
def test_what_starts(args: dict[str, Any], more: dict[str, Any]) -> None:
    found = verdicts(args=args, **more)
    for rule in ("options/value", "options/conflict", "options/unknown", "options/removed"):
        assert "fail" not in found.get(rule, set())


def test_a_length_above_the_models_is_lowered() -> None:
    case = case_of("Qwen/Qwen3-0.6B", args={"max_seq_len": 1_000_000})
    assert case.plan.max_request_tokens.get() == 40960
    found = verdicts("Qwen/Qwen3-0.6B", args={"max_seq_len": 1_000_000})
    assert found["options/context-limit"] == {"at risk"}


def test_a_checkpoint_that_was_not_read_leaves_the_kv_dtype_open() -> None:
    either = case_of("Llama-3.1-8B-Instruct-FP8").plan.kv_dtype
    assert either.options == ("fp8_e4m3", "bf16")
    stated = case_of(
        "Llama-3.1-8B-Instruct-FP8", args={"kv_cache_config": {"dtype": "fp8"}}
    ).plan.kv_dtype
    assert stated.get() == "fp8_e4m3"


@pytest.mark.parametrize(
    ("reference", "version"),
    [("nvcr.io/nvidia/tensorrt-llm/release:1.0.0", "1.0.0"),
     ("nvcr.io/nvidia/tensorrt-llm/release:1.2.0rc3", "1.2.0rc3"),
     ("nvcr.io/nvidia/tensorrt-llm/release:latest", None),
     ("nvcr.io/nvidia/tritonserver:25.08-trtllm-python-py3", None)],
)  # fmt: skip
def test_images(reference: str, version: str | None) -> None:
    found = image(reference)
    assert found is not None
    assert found.version == version
    assert not found.starts_server


def test_images_of_others() -> None:
    assert image("nvcr.io/nvidia/tritonserver:25.08-py3") is None
    assert image("vllm/vllm-openai:v0.11.0") is None


@pytest.mark.parametrize(
    ("args", "change", "path", "words"),
    [
        ({"tp_size": 2}, Change("tensor", 4), ("engine", "args", "tp_size"), "tp_size: 4"),
        ({}, Change("kv_dtype", "fp8_e4m3"), ("engine", "args", "kv_cache_config", "dtype"),
         "kv_cache_config.dtype: fp8"),
        ({}, Change("memory_fraction", 0.95),
         ("engine", "args", "kv_cache_config", "free_gpu_memory_fraction"),
         "kv_cache_config.free_gpu_memory_fraction: 0.95"),
        ({}, Change("max_sequences", 64), ("engine", "args", "max_batch_size"),
         "max_batch_size: 64"),
    ],
)  # fmt: skip
def test_changes_are_written_in_its_own_words(
    args: dict[str, Any], change: Change, path: tuple[str, ...], words: str
) -> None:
    case = case_of(args=args, count=2)
    edit = case.engine.write(change, case.deployment)
    assert edit is not None
    assert (edit.path, edit.words) == (path, words)


def test_the_yaml_alone_is_recognized() -> None:
    text = "kv_cache_config: {free_gpu_memory_fraction: 0.8}\nenable_attention_dp: true\n"
    (one,) = run({"serving.yaml": text}).deployments
    assert one.format == "tensorrt-llm-config"
    assert not run({"serving.yaml": "model: x\nseed: 1\nbackend: pytorch\n"}).deployments


def test_speculation_with_the_checkpoints_own_layers() -> None:
    args = {"tensor_parallel_size": 8, "max_seq_len": 8192}
    plain = case_of("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, args=args)
    drafted = {
        **args,
        "speculative_config": {"decoding_type": "MTP", "num_nextn_predict_layers": 1},
    }
    with_mtp = case_of("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, args=drafted)
    assert with_mtp.plan.draft_tokens is not None
    assert with_mtp.plan.draft_tokens.get() == 1
    assert with_mtp.estimate("weights_bytes").mid > plain.estimate("weights_bytes").mid
    assert with_mtp.kv().bytes_per_token == plain.kv().bytes_per_token * 62 / 61


def test_a_spec_is_one_deployment() -> None:
    assert len(bench().outcomes(spec())) == 1


def test_a_length_within_the_models_passes() -> None:
    assert verdicts(args={"max_seq_len": 8192})["options/context-limit"] == {"pass"}


def test_attention_data_parallelism_shares_the_experts() -> None:
    args = {"tensor_parallel_size": 8, "enable_attention_dp": True, "max_seq_len": 8192}
    plan = case_of("deepseek-ai/DeepSeek-R1", "nvidia/h200-sxm-141gb", 8, args=args).plan
    assert plan.expert.get() == 8


@pytest.mark.parametrize(
    ("precision", "version", "verdict"),
    [("gptq-int4", "1.3.0", "fail"), ("gptq-int4", "1.0.0", "at risk"), ("fp8", "1.3.0", "pass")],
)
def test_packings_that_the_pytorch_backend_reads(
    precision: str, version: str, verdict: str
) -> None:
    text = spec(version=version, args={"max_seq_len": 8192}).replace(
        '"id": "meta-llama/Llama-3.1-8B-Instruct"',
        f'"id": "meta-llama/Llama-3.1-8B-Instruct", "weights": {{"precision": "{precision}"}}',
    )
    (outcome,) = bench().outcomes(text)
    found = {one.result.verdict for one in outcome.judged["quantization/supported"]}
    assert found == {verdict}
