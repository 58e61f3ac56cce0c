"""Options as arguments and as variables, images, commands, and what the launcher refuses."""

from __future__ import annotations

from typing import Any

import pytest
from tgi_specs import bench, case_of, spec, verdicts

from capcheck import Change
from capcheck.testing import run
from capcheck_tgi.launching import image
from capcheck_tgi.table import TABLE

MANIFEST = """\
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
          image: ghcr.io/huggingface/text-generation-inference:3.3.4
          env:
            - {name: MODEL_ID, value: meta-llama/Llama-3.1-8B-Instruct}
            - {name: MAX_TOTAL_TOKENS, value: "8192"}
          resources: {limits: {nvidia.com/gpu: "2"}}
"""


@pytest.mark.parametrize(
    ("name", "release", "verdict"),
    [("--max-input-tokens", (3, 3, 4), "known"), ("--max-input-tokens", (1, 4, 0), "not yet"),
     ("--kv-cache-dtype", (2, 4, 0), "known"), ("--disable-usage-stats", (2, 3, 0), "removed"),
     ("--max-model-len", (3, 3, 4), "unknown"), ("--payload-limit", (2, 4, 0), "not yet")],
)  # fmt: skip
def test_edges_of_the_table(name: str, release: tuple[int, ...], verdict: str) -> None:
    assert TABLE.resolve(name, release).verdict == verdict


def test_defaults_of_the_table() -> None:
    assert TABLE.default("max_concurrent_requests", (3, 3, 4)) == (128,)
    assert TABLE.default("waiting_served_ratio", (1, 4, 0)) == (1.2,)
    assert TABLE.default("waiting_served_ratio", (3, 0, 0)) == (0.3,)


def test_variables_are_options() -> None:
    by_argument = case_of(args={"max_total_tokens": 8192, "num_shard": 2}, count=2)
    by_variable = case_of(env={"MAX_TOTAL_TOKENS": "8192", "NUM_SHARD": "2"}, count=2)
    for field in ("tensor", "max_request_tokens", "max_step_tokens", "kv_dtype"):
        assert getattr(by_variable.plan, field).get() == getattr(by_argument.plan, field).get()


def test_an_argument_wins_over_its_variable() -> None:
    case = case_of(args={"max_total_tokens": 4096}, env={"MAX_TOTAL_TOKENS": "8192"})
    assert case.plan.max_request_tokens.get() == 4096


def test_without_num_shard_every_visible_device_is_one() -> None:
    assert case_of(count=4).plan.tensor.get() == 4
    assert case_of(count=4, args={"sharded": False}).plan.tensor.get() == 1


@pytest.mark.parametrize(
    ("version", "total", "prompt", "step"),
    [("1.4.0", 2048, 1024, 4096), ("2.2.0", 4096, 4095, 4145)],
)
def test_lengths_by_default(version: str, total: int, prompt: int, step: int) -> None:
    plan = case_of(version=version).plan
    assert plan.max_request_tokens.get() == total
    assert plan.extra["max_input_tokens"].get() == prompt
    assert plan.max_step_tokens.get() == step


def test_from_3_the_length_is_fitted_at_start() -> None:
    case = case_of()
    assert case.plan.max_request_tokens.unknown
    assert "fitted to the memory" in case.plan.max_request_tokens.origin.why
    assert verdicts()["kv-cache/one-request"] == {"skip"}


@pytest.mark.parametrize(
    ("rule", "version", "args"),
    [
        ("options/conflict", "3.3.4", {"max_input_tokens": 4096, "max_total_tokens": 4096}),
        ("options/conflict", "2.0.4", {"max_input_tokens": 5000}),
        ("options/conflict", "2.3.0", {"max_input_tokens": 3000, "max_batch_prefill_tokens": 2048}),
        ("options/conflict", "3.3.4", {"max_input_tokens": 9, "max_input_length": 9}),
        ("options/conflict", "2.4.1", {"max_batch_total_tokens": 2048}),
        ("options/conflict", "3.3.4", {"max_total_tokens": 4096, "max_batch_total_tokens": 2048}),
        ("options/conflict", "3.3.4", {"sharded": True, "num_shard": 1}),
        ("options/value", "3.3.4", {"cuda_memory_fraction": 1.5}),
        ("options/value", "3.3.4", {"max_batch_size": 0}),
        ("options/value", "3.3.4", {"quantize": "int4"}),
        ("sharding/divisible", "3.3.4", {"num_shard": 3}),
        ("options/unknown", "3.3.4", {"max_total_token": 4096}),
        ("options/removed", "1.4.0", {"cuda_graphs": "1,2"}),
    ],
)
def test_refusals(rule: str, version: str, args: dict[str, Any]) -> None:
    count = args.get("num_shard", 1)
    assert "fail" in verdicts(version=version, args=args, count=count)[rule]


@pytest.mark.parametrize(
    ("version", "args"),
    [
        ("3.3.4", {"max_input_tokens": 4000, "max_batch_prefill_tokens": 2048,
                   "max_total_tokens": 4096}),
        ("3.3.4", {"max_batch_total_tokens": 2048}),
        ("2.4.1", {"max_input_tokens": 1024, "max_total_tokens": 2048}),
        ("1.4.0", {"max_input_length": 1500, "max_total_tokens": 2048}),
    ],
)  # fmt: skip
def test_what_starts(version: str, args: dict[str, Any]) -> None:
    found = verdicts(version=version, args=args)
    for rule in ("options/conflict", "options/value", "options/unknown", "options/removed"):
        assert "fail" not in found.get(rule, set())


def test_kv_heads_are_never_held_twice() -> None:
    """Qwen2.5-7B has 28 heads and 4 KV heads: 7 shards divide the heads only."""
    (outcome,) = bench().outcomes(spec("Qwen/Qwen2.5-7B-Instruct", count=7))
    (found,) = outcome.judged["sharding/divisible"]
    assert "4 KV heads" in str(found.result)


def test_an_old_release_has_to_be_told_of_the_packing() -> None:
    args = {"max_total_tokens": 2048}
    packed = {"id": "TheBloke/Llama-2-70B-chat-GPTQ", "weights": {"precision": "gptq-int4"}}
    for given, verdict in ((args, {"fail"}), ({**args, "quantize": "gptq"}, {"pass"})):
        text = spec(version="1.1.0", args=given, count=4)
        text = text.replace('{"id": "meta-llama/Llama-3.1-8B-Instruct"}', str(packed))
        (outcome,) = bench().outcomes(text.replace("'", '"'))
        found = {one.result.verdict for one in outcome.judged["quantization/supported"]}
        assert found == verdict


@pytest.mark.parametrize(
    ("reference", "version"),
    [
        ("ghcr.io/huggingface/text-generation-inference:3.3.4", "3.3.4"),
        ("ghcr.io/huggingface/text-generation-inference:3.3.4-rocm", "3.3.4"),
        ("ghcr.io/huggingface/text-generation-inference:latest", None),
        ("ghcr.io/huggingface/text-generation-inference:sha-1f7a17d", None),
        ("763104351884.dkr.ecr.us-east-1.amazonaws.com/huggingface-pytorch-tgi-inference:"
         "2.6.0-tgi3.2.3-gpu-py311-cu124-ubuntu22.04", "3.2.3"),
    ],
)  # fmt: skip
def test_images(reference: str, version: str | None) -> None:
    found = image(reference)
    assert found is not None
    assert found.version == version


def test_images_of_others() -> None:
    assert image("vllm/vllm-openai:v0.11.0") is None
    assert image("ghcr.io/huggingface/text-generation-inference:3.3.4-trtllm") is None


def test_a_manifest_with_variables() -> None:
    report = run({"app.yaml": MANIFEST})
    (one,) = report.deployments
    assert one.resolved["engine"] == "tgi"
    assert one.resolved["engine_version"] == "3.3.4"
    assert one.resolved["tensor_parallel_size"] == 2
    assert one.resolved["max_model_len"] == 8192


def test_a_manifest_with_arguments() -> None:
    text = MANIFEST.replace('- {name: MAX_TOTAL_TOKENS, value: "8192"}', "")
    text = text.replace('gpu: "2"', 'gpu: "1"').replace(
        "          env:",
        "          args: [--max-total-tokens, '8192', --max-input-tokens, '9000']\n          env:",
    )
    findings = [one for one in run({"app.yaml": text}).findings if one.severity == "error"]
    assert [one.rule for one in findings] == ["options/conflict"]
    assert findings[0].message.startswith("--max-input-tokens 9,000 is not below")


def test_underscores_are_no_spelling_of_the_launcher() -> None:
    text = MANIFEST.replace('gpu: "2"', 'gpu: "1"').replace(
        "          env:", "          args: [--max_input_tokens, '4000']\n          env:"
    )
    (found,) = (one for one in run({"app.yaml": text}).findings if one.severity == "error")
    assert found.rule == "options/value"
    assert found.help == ("--max-input-tokens",)


@pytest.mark.parametrize(
    ("args", "env", "path", "words"),
    [
        ({"max_total_tokens": 8192}, {}, ("engine", "args", "max_total_tokens"),
         "max_total_tokens: 4096"),
        ({}, {"MAX_TOTAL_TOKENS": "8192"}, ("engine", "env", "MAX_TOTAL_TOKENS"),
         "MAX_TOTAL_TOKENS: 4096"),
        ({}, {"NUM_SHARD": "1"}, ("engine", "env", "MAX_TOTAL_TOKENS"), "MAX_TOTAL_TOKENS: 4096"),
    ],
)  # fmt: skip
def test_changes_are_written_the_way_the_user_writes(
    args: dict[str, Any], env: dict[str, str], path: tuple[str, ...], words: str
) -> None:
    case = case_of(args=args, env=env)
    edit = case.engine.write(Change("max_request_tokens", 4096), case.deployment)
    assert edit is not None
    assert (edit.path, edit.words) == (path, words)


def test_a_length_below_the_stated_prompt_is_no_change() -> None:
    case = case_of(args={"max_total_tokens": 8192, "max_input_tokens": 8000})
    assert case.engine.write(Change("max_request_tokens", 4096), case.deployment) is None


def test_a_length_above_the_models_is_only_doubtful() -> None:
    """The launcher does not ask."""
    found = verdicts("Qwen/Qwen3-0.6B", args={"max_total_tokens": 100_000})
    assert found["options/context-limit"] == {"at risk"}
    assert verdicts(args={"max_total_tokens": 8192})["options/context-limit"] == {"pass"}
