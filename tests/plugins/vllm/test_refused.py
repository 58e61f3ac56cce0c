"""What vLLM refuses while it builds its configuration: drafts, values, checkpoints."""

from __future__ import annotations

from typing import Any

import pytest
from vllm_cases import LLAMA, case_of
from vllm_tables import TABLE, v

from capcheck.testing import Bench, check

SPEC = """
apiVersion: capcheck/v1
kind: Deployment
name: chat
model: {id: MODEL}
hardware: {accelerator: nvidia/h200-sxm-141gb, count: 8}
engine: {name: vllm, version: "VERSION", args: {max_model_len: 8192, ARGS}}
"""
DRAFT = "meta-llama/Llama-3.2-1B-Instruct"


def errors(version: str, args: str, model: str = LLAMA, select: str = "options") -> list[str]:
    spec = SPEC.replace("VERSION", version).replace("ARGS", args).replace("MODEL", model)
    found = check(spec, select=(select,))
    return [f"{one.rule}: {one.message}" for one in found if one.severity == "error"]


def drafted(version: str, draft: str = DRAFT, more: str = "") -> list[str]:
    config = f"speculative_config: {{model: {draft}, num_speculative_tokens: 5{more}}}"
    return errors(version, config)


@pytest.mark.parametrize("version", ["0.10.0", "0.10.2", "0.11.0", "0.12.0", "0.14.0"])
def test_a_plain_draft_is_refused_where_nothing_can_run_it(version: str) -> None:
    words = f"vllm {version} does not take a draft model for speculative decoding"
    assert drafted(version) == [f"options/conflict: {words}"]
    assert drafted(version, more=", method: draft_model") == [f"options/conflict: {words}"]


@pytest.mark.parametrize("version", ["0.8.5", "0.9.2", "0.15.0", "0.16.0", "0.33.0"])
def test_a_plain_draft_is_taken_before_and_after(version: str) -> None:
    assert drafted(version) == []


@pytest.mark.parametrize(
    ("draft", "more"),
    [
        ("yuhuili/EAGLE3-LLaMA3.1-Instruct-8B", ", method: eagle3"),
        ("yuhuili/EAGLE-LLaMA3.1-Instruct-8B", ""),
        (DRAFT, ", method: medusa"),
        ("/models/draft", ""),
        ("ngram", ", prompt_lookup_max: 4"),
    ],
)
def test_other_methods_and_drafts_that_nobody_knows_are_left(draft: str, more: str) -> None:
    assert drafted("0.11.0", draft, more) == []


def test_without_the_release_nothing_is_told_of_a_plain_draft() -> None:
    args = f"speculative_config: {{model: {DRAFT}, num_speculative_tokens: 5}}"
    spec = SPEC.replace("ARGS", args).replace("MODEL", LLAMA).replace('version: "VERSION", ', "")
    assert "options/conflict" not in [one.rule for one in check(spec, select=("options",))]


def test_a_patched_build_may_take_a_plain_draft() -> None:
    assert drafted("0.11.0-patched") == []


def test_help_for_the_old_option_leads_to_what_the_release_takes() -> None:
    assert "no draft model" in TABLE.instead("speculative_model", v("0.11.0"))
    for version in ("0.9.2", "0.16.0"):
        assert TABLE.instead("speculative_model", v(version)).endswith("the key model")


@pytest.mark.parametrize(
    ("version", "wrong", "right"),
    [
        ("0.11.0", "gpu_memory_utilization: -0.5", "gpu_memory_utilization: 0.5"),
        ("0.11.0", "gpu_memory_utilization: 0.0", "gpu_memory_utilization: 0.9"),
        ("0.9.0", "gpu_memory_utilization: 0.0", "gpu_memory_utilization: 0.9"),
        ("0.18.0", "gpu_memory_utilization: 0.0", "gpu_memory_utilization: 0.9"),
        ("0.11.0", "kv_cache_memory_bytes: -1", "kv_cache_memory_bytes: 0"),
        ("0.11.0", "num_gpu_blocks_override: 0", "num_gpu_blocks_override: 4096"),
        ("0.14.0", "limit_mm_per_prompt: {image: -3}", "limit_mm_per_prompt: {image: 0}"),
        (
            "0.11.0",
            "compilation_config: {cudagraph_mode: BOGUS}",
            "compilation_config: {cudagraph_mode: full_decode_only}",
        ),
    ],
)
def test_values(version: str, wrong: str, right: str) -> None:
    assert [one.split(":")[0] for one in errors(version, wrong)] == ["options/value"]
    assert errors(version, right) == []


@pytest.mark.parametrize("mode", ["null", "2", "FULL"])
def test_modes_of_graphs_by_number_and_none(mode: str) -> None:
    assert errors("0.11.0", f"compilation_config: {{cudagraph_mode: {mode}}}") == []


@pytest.mark.parametrize("args", ["gpu_memory_utilization: -0.5", "kv_cache_memory_bytes: -1"])
def test_no_memory_is_told_from_an_impossible_share(args: str) -> None:
    assert errors("0.11.0", args, select="weights") == []
    assert errors("0.11.0", args, select="kv-cache") == []


def test_a_cache_of_no_bytes_is_as_if_not_given() -> None:
    args: dict[str, Any] = {"kv_cache_memory_bytes": 0, "gpu_memory_utilization": 0.8}
    policy = case_of(Bench(), "0.11.0", args).plan.memory.get("memory")
    assert (policy.kind, policy.amount) == ("fraction of total", 0.8)


@pytest.mark.parametrize("version", ["0.11.0", "0.33.0"])
def test_decode_context_parallel_divides_tensor_parallel(version: str) -> None:
    wide = "tensor_parallel_size: 8, decode_context_parallel_size: "
    model = "deepseek-ai/DeepSeek-V3"
    words = "sharding/divisible: decode context parallel 3 does not divide tensor parallel 8"
    assert errors(version, f"{wide}3", model, "sharding") == [words]
    assert errors(version, f"{wide}4", model, "sharding") == []


@pytest.mark.parametrize("method", ["awq", "gptq_marlin"])
def test_methods_of_packed_checkpoints_need_one(method: str) -> None:
    found = errors("0.11.0", f"quantization: {method}")
    assert [one.split(":")[0] for one in found] == ["options/conflict"]
    assert "is not quantized" in found[0]
    assert errors("0.11.0", "quantization: fp8") == []
    assert errors("0.11.0", "quantization: awq", "Qwen/Qwen3-8B-AWQ") == []
