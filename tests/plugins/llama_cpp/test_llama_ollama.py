"""Ollama: slots of num_ctx tokens, defaults by release, and layers that fit."""

from __future__ import annotations

import re
from typing import Any

import pytest
from llama_kit import case_of, cases_of, mib, refused

from capcheck import Case, Change, Terms, Unknown
from capcheck.testing import check
from capcheck_llama_cpp.ollama import Ollama
from capcheck_llama_cpp.ollama_names import tagged

ENGINE = Ollama()


def ollama(model: str = "llama3.1:8b", version: str | None = "0.12.6", **more: Any) -> Case:
    return case_of(model, version=version, engine="ollama", **more)


@pytest.mark.parametrize(
    ("tag", "model", "kind"),
    [
        ("llama3.1:8b-instruct-q4_K_M", "meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
        ("llama3.1", "meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
        ("llama3.1:latest", "meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
        ("qwen3:30b-a3b-q8_0", "Qwen/Qwen3-30B-A3B", "q8_0"),
        ("gemma3:27b-it-qat", "google/gemma-3-27b-it", "q4_0"),
        ("gpt-oss:20b", "openai/gpt-oss-20b", "mxfp4_moe"),
        ("llama3:8b-instruct-fp16", "meta-llama/Meta-Llama-3-8B-Instruct", "fp16"),
        ("hf.co/unsloth/Qwen3-8B-GGUF:Q5_K_M", "unsloth/Qwen3-8B-GGUF", "q5_k_m"),
        ("hf.co/unsloth/Qwen3-8B-GGUF:latest", "unsloth/Qwen3-8B-GGUF", "q4_k_m"),
        ("llama3.1:8b-instruct", "meta-llama/Llama-3.1-8B-Instruct", "q4_k_m"),
    ],
)
def test_tags(tag: str, model: str, kind: str) -> None:
    assert tagged(tag) == (model, kind)


@pytest.mark.parametrize("tag", ["acme", "acme:8b", "llama3.1:9b"])
def test_tags_that_are_not_in_the_library(tag: str) -> None:
    assert tagged(tag) is None


def test_a_tag_is_a_model_and_a_file_type() -> None:
    # The same file as llama.cpp loads: 4,685 MiB, of which the table of 281.8 stays on the host.
    assert mib(ollama("llama3:8b-instruct-q4_K_M"), "weights_bytes") == pytest.approx(
        4403.49, rel=1e-3
    )


@pytest.mark.parametrize(
    ("version", "count", "tokens"),
    [
        ("0.5.4", 1, 2048), ("0.6.8", 1, 4096), ("0.12.6", 1, 4096), ("0.16.0", 1, 32768),
        ("0.20.0", 2, 131072),  # 262,144 by the devices' 47 GiB, but the model has no more
    ],
)  # fmt: skip
def test_the_context_by_release(version: str, count: int, tokens: int) -> None:
    assert ollama(version=version, count=count).plan.max_request_tokens.get() == tokens


def test_small_devices_get_a_small_context() -> None:
    assert ollama(version="0.16.0", on="nvidia/rtx-4080").plan.max_request_tokens.get() == 4096


def test_slots_by_release() -> None:
    found = {
        one: ollama(version=one).plan.max_sequences.options for one in ("0.5.4", "0.9.0", "0.12.6")
    }
    assert found == {"0.5.4": (4, 1), "0.9.0": (2, 1), "0.12.6": (1,)}


def test_every_slot_has_num_ctx() -> None:
    # 32 layers x 8 heads x 128 x 2 x 2 bytes x 4 x 8,192 cells.
    case = ollama(num_ctx=8192, env={"OLLAMA_NUM_PARALLEL": "4"})
    assert mib(case, "kv_cache_bytes") == 4096.0
    assert case.estimate("kv_cache_tokens").mid == 32768
    assert case.plan.max_request_tokens.get() == 8192


def test_variables() -> None:
    case = ollama(env={"OLLAMA_CONTEXT_LENGTH": "16384", "OLLAMA_KV_CACHE_TYPE": "q8_0",
                       "OLLAMA_FLASH_ATTENTION": "1"})  # fmt: skip
    assert mib(case, "kv_cache_bytes") == 2048 * 34 / 64
    assert refused(case, "options/conflict") == []


def test_a_cache_type_without_flash_attention() -> None:
    case = ollama(version="0.9.0", num_ctx=8192, env={"OLLAMA_KV_CACHE_TYPE": "q8_0"})
    assert case.plan.kv_dtype.get() == "fp16"
    assert "not used" in refused(case, "options/conflict")[0]


def test_what_does_not_fit_stays_on_the_host() -> None:
    case = ollama("llama3.1:70b", num_ctx=8192, on="nvidia/rtx-4090")
    ledger = case.ledger(case.terms())
    assert ledger.lines[0].name.endswith(" of 81 layers)") and ledger.left - ledger.kv > 0
    forced = ollama("llama3.1:70b", num_ctx=8192, num_gpu=81, on="nvidia/rtx-4090")
    assert forced.ledger(forced.terms()).left < 0


def test_steps_grow_with_the_context_in_newer_releases() -> None:
    assert ollama(num_ctx=65536).plan.max_step_tokens.get() == 512
    assert ollama(version="0.32.0", num_ctx=65536).plan.max_step_tokens.get() == 2048
    assert ollama(version="0.32.0", num_ctx=8192).plan.max_step_tokens.get() == 1024


def test_unknown_releases() -> None:
    found = cases_of("llama3.1:8b", version=None, engine="ollama")
    assert len(found) > 1 and not any(one.release.known for one in found)
    assert ENGINE.releases("latest", "")[0].why == "latest is no release of Ollama"


def test_images() -> None:
    found = ENGINE.image("ollama/ollama:0.12.6-rocm")
    assert found is not None and found.version == "0.12.6"
    unpinned = ENGINE.image("docker.io/ollama/ollama")
    assert unpinned is not None and unpinned.version is None and unpinned.why
    assert ENGINE.image("me/open-webui:ollama") is None


def test_pods() -> None:
    pod = """
apiVersion: v1
kind: Pod
metadata: {name: chat}
spec:
  containers:
  - name: main
    image: ollama/ollama:0.12.6
    command: [ollama, run, "llama3.1:8b"]
    resources: {limits: {nvidia.com/gpu: "1"}}
  nodeSelector: {cloud.google.com/gke-accelerator: nvidia-l4}
"""
    assert [one.rule for one in check(pod) if one.severity == "error"] in (
        [],
        ["quantization/evidence"],
    )


def test_changes() -> None:
    case = ollama(num_ctx=8192)
    edit = ENGINE.write(Change("max_request_tokens", 4096), case.deployment)
    assert edit is not None and edit.words == "num_ctx: 4096"
    slots = ENGINE.write(Change("max_sequences", 2), case.deployment)
    assert slots is not None and slots.path == ("engine", "env", "OLLAMA_NUM_PARALLEL")
    assert ENGINE.write(Change("tensor", 2), case.deployment) is None


@pytest.mark.parametrize(
    "tag", ["llama3.1:8b-instruct-q99_X", "llama3.1:8b-nvfp4", "hf.co/unsloth/Qwen3-8B-GGUF:Q9_9"]
)
def test_file_types_that_are_not_known(tag: str) -> None:
    found = tagged(tag)
    assert found is not None and found.type is None
    precision = ENGINE.precision(ollama(tag).deployment)
    assert precision is not None and precision.unknown
    with pytest.raises(Unknown) as lost:
        ollama(tag).estimate("weights_bytes")
    assert "no file type that is known" in lost.value.why


def test_a_file_type_that_is_stated_beside_an_unknown_tag() -> None:
    case = case_of("llama3.1:8b-instruct-q99_X", "q4_k_m", version="0.12.6", engine="ollama")
    assert mib(case, "weights_bytes") > 4000


@pytest.mark.parametrize(("slots", "tokens"), [("-3", "1e9"), ("4.0", "32k"), ("x", "-1")])
def test_numbers_that_ollama_does_not_read(slots: str, tokens: str) -> None:
    env = {"OLLAMA_NUM_PARALLEL": slots, "OLLAMA_CONTEXT_LENGTH": tokens}
    case = ollama(env=env)
    assert case.plan.max_sequences.get() == 1 and case.plan.max_request_tokens.get() == 4096
    assert mib(case, "kv_cache_bytes") == 512.0
    assert [one.split()[0] for one in refused(case, "options/conflict")] == list(env)
    assert all(one.doubt for one in case.supports("options/conflict"))


def test_numbers_that_ollama_reads() -> None:
    case = ollama(env={"OLLAMA_NUM_PARALLEL": ' "2" ', "OLLAMA_CONTEXT_LENGTH": "8192"})
    assert case.plan.max_sequences.get() == 2 and case.plan.max_request_tokens.get() == 8192
    assert refused(case, "options/conflict") == []


@pytest.mark.parametrize("option", ["num_ctx", "num_batch"])
def test_parameters_below_zero(option: str) -> None:
    with pytest.raises(Unknown) as lost:
        ollama(**{option: -5}).ledger(ollama(**{option: -5}).terms())
    assert f"{option} is below" in lost.value.why


def left_at_worst(case: Case) -> float:
    def left(t: Terms) -> float:
        ledger = case.ledger(t)
        return ledger.left - (ledger.pool or 0.0)

    return case.spread_of(left, "left").band.low


def test_slots_that_do_not_fit_are_not_taken() -> None:
    case = ollama("qwen3:30b-a3b-q4_K_M", version="0.9.0", num_ctx=40960)
    assert case.plan.extra["ctx_size"].get() == 40960  # one slot's
    assert "else 1, which is what is judged" in case.plan.max_sequences.origin.why
    assert left_at_worst(case) >= 0


def test_the_arithmetic_tells_what_is_on_the_host() -> None:
    case = ollama("qwen3:30b-a3b-q8_0", version="0.9.0", num_ctx=8192)
    names = [line.name for line in case.ledger(case.terms()).lines]
    assert re.fullmatch(r"weights \(\d+ of 49 layers\)", names[0])  # whole layers, not experts
    assert left_at_worst(case) >= 0
    forced = ollama("qwen3:30b-a3b-q8_0", version="0.9.0", num_ctx=8192, num_gpu=49)
    assert forced.ledger(forced.terms()).lines[0].name == "weights"
    assert left_at_worst(forced) < 0
