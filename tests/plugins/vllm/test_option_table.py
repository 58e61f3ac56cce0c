"""The shipped vLLM table against what was read in the sources by hand."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from vllm_tables import TABLE, resolve, v

EDGES = Path(__file__).with_name("option_edges.tsv")
RELEASES = EDGES.read_text().partition("\n")[0].partition(": ")[2].split(" ")

# Fields of the engine's arguments that the command line does not have, or not in all releases.
NO_OPTION = {
    "_api_process_count",
    "_api_process_rank",
    "enable_mm_processor_stats",
    "mamba_config",
    "model_weights",
}
OPTION_BEFORE_FIELD = {
    "data_parallel_start_rank": "0.9.0",
    "enable_reasoning": "0.7.3",
    "log_config_file": "0.9.2",
    "reasoning_parser": "0.7.3",
}
OPTION_AFTER_FIELD = {"quantization_config": "0.22.1"}


def edges() -> list[tuple[str, str, str]]:
    rows = []
    for line in EDGES.read_text().splitlines()[1:]:
        name, first, last = line.split("\t")
        rows.append((name, first or RELEASES[0], last or RELEASES[-1]))
    return rows


@pytest.mark.parametrize(("name", "first", "last"), edges(), ids=lambda value: value)
def test_edges_agree_with_a_reading_by_hand(name: str, first: str, last: str) -> None:
    have = [release for release in RELEASES if TABLE.has(name, v(release))]
    if name in NO_OPTION:
        assert have == []
        return
    first = OPTION_BEFORE_FIELD.get(name, OPTION_AFTER_FIELD.get(name, first))
    start, end = RELEASES.index(first), RELEASES.index(last)
    assert have == RELEASES[start : end + 1]


DEFAULTS: list[tuple[str, str, Any]] = [
    ("gpu_memory_utilization", "0.19.1", 0.9),
    ("gpu_memory_utilization", "0.20.0", 0.92),
    ("model", "0.9.2", "facebook/opt-125m"),
    ("model", "0.10.0", "Qwen/Qwen3-0.6B"),
    ("max_num_seqs", "0.5.5", 256),
    ("max_num_seqs", "0.6.6", None),
    ("block_size", "0.6.0", 16),
    ("block_size", "0.6.6", None),
    ("enable_prefix_caching", "0.6.0", False),
    ("enable_prefix_caching", "0.6.6", None),
    ("async_scheduling", "0.13.0", False),
    ("async_scheduling", "0.14.1", None),
    ("seed", "0.7.3", 0),
    ("seed", "0.8.0", None),
    ("seed", "0.12.0", 0),
    ("generation_config", "0.7.3", None),
    ("generation_config", "0.8.0", "auto"),
    ("disable_cascade_attn", "0.17.1", False),
    ("disable_cascade_attn", "0.18.1", True),
    ("disable_cascade_attn", "0.32.0", None),
    ("cuda_graph_sizes", "0.9.2", [512]),
    ("cuda_graph_sizes", "0.10.0", []),
    ("cuda_graph_sizes", "0.12.0", None),
    ("prefix_caching_hash_algo", "0.10.1", "builtin"),
    ("prefix_caching_hash_algo", "0.10.2", "sha256"),
    ("task", "0.10.0", "auto"),
    ("task", "0.10.1", None),
    ("kv_offloading_backend", "0.12.0", None),
    ("kv_offloading_backend", "0.14.1", "native"),
    ("scheduler_cls", "0.11.0", "vllm.core.scheduler.Scheduler"),
    ("scheduler_cls", "0.12.0", None),
    ("use_v2_block_manager", "0.5.5", False),
    ("use_v2_block_manager", "0.6.6", True),
    ("mamba_cache_mode", "0.32.0", "none"),
    ("mamba_cache_mode", "0.33.0", None),
    ("safetensors_load_strategy", "0.18.1", "lazy"),
    ("safetensors_load_strategy", "0.19.1", None),
    ("all2all_backend", "0.14.1", "allgather_reducescatter"),
    ("swap_space", "0.17.1", 4),
    ("max_seq_len_to_capture", "0.10.2", 8192),
    ("max_lora_rank", "0.33.0", 16),
    ("max_logprobs", "0.33.0", 20),
    ("tensor_parallel_size", "0.33.0", 1),
    ("mm_processor_cache_gb", "0.33.0", 4),
    ("optimization_level", "0.33.0", 2),
    ("ignore_patterns", "0.33.0", ["original/**/*"]),
    ("port", "0.33.0", 8000),
    ("guided_decoding_backend", "0.6.0", "outlines"),
    ("guided_decoding_backend", "0.7.3", "xgrammar"),
    ("kv_cache_dtype", "0.33.0", "auto"),
]


@pytest.mark.parametrize(("name", "release", "value"), DEFAULTS)
def test_defaults_by_release(name: str, release: str, value: Any) -> None:
    assert TABLE.default(name, v(release)) == (value,)


def test_a_default_that_depends_on_the_environment_is_not_given() -> None:
    assert TABLE.default("guided_decoding_backend", v("0.9.0")) == ()


SAMPLE = (
    "model", "tensor_parallel_size", "max_model_len", "max_num_seqs", "max_num_batched_tokens",
    "gpu_memory_utilization", "quantization", "enforce_eager", "disable_log_stats",
    "enable_prefix_caching", "speculative_config", "chunked_prefill_enabled",
    "max_num_batched_tokens_prefill", "preemption_mode", "enable_metrics", "metrics_port",
    "log_level",
)  # fmt: skip
NEVER = {
    "chunked_prefill_enabled": "use enable_chunked_prefill, which is on by default",
    "max_num_batched_tokens_prefill": "use max_num_batched_tokens, the tokens of one step, or "
    "long_prefill_token_threshold",
    "enable_metrics": "remove it: metrics are always served at /metrics; disable_log_stats turns "
    "them off",
    "metrics_port": "remove it: metrics are served at /metrics on the API's port",
}
OTHERWISE_WRONG = {
    "0.10.2": {"log_level": "not yet"},
    "0.11.0": {"log_level": "not yet", "preemption_mode": "removed"},
    "0.31.0": {"preemption_mode": "removed"},
}


@pytest.mark.parametrize("release", OTHERWISE_WRONG)
def test_the_sizing_guides_sample(release: str) -> None:
    wrong = {
        name: standing.verdict
        for name in SAMPLE
        if (standing := resolve(name, release)).verdict != "known"
    }
    assert wrong == dict.fromkeys(NEVER, "unknown") | OTHERWISE_WRONG[release]
    for name, words in NEVER.items():
        assert resolve(name, release).instead == words
    if "log_level" in wrong:
        assert "VLLM_LOGGING_LEVEL" in resolve("log_level", release).instead
    if "preemption_mode" in wrong:
        assert resolve("preemption_mode", release).instead.startswith("remove it")


@pytest.mark.parametrize(
    ("release", "stray"),
    [("0.8.5", "error"), ("0.10.2", "ignored"), ("0.11.0", "ignored"), ("0.31.0", "error")],
)
def test_the_samples_speculative_keys(release: str, stray: str) -> None:
    for key in ("model", "num_speculative_tokens", "method", "draft_tensor_parallel_size"):
        assert TABLE.resolve_key("speculative_config", key, v(release)).verdict == "known"
    wrong = "speculative_draft_tensor_parallel_size"
    standing = TABLE.resolve_key("speculative_config", wrong, v(release))
    assert (standing.verdict, standing.stray) == ("unknown", stray)
    assert standing.instead == "use the key draft_tensor_parallel_size"
