"""What goes wrong after an image bump: names and values by release."""

from __future__ import annotations

import json
import re
import time

import pytest
from vllm_tables import DATA, ENVIRONMENT, TABLE, resolve, v

from capcheck.argv import read_argv
from capcheck.options import OptionTable
from capcheck.values import Place
from capcheck.words import Word

# (name, the last release that takes it, the first that does not)
TRAPS = [
    ("swap_space", "0.17.1", "0.18.0"),
    ("preemption_mode", "0.10.2", "0.11.0"),
    ("max_seq_len_to_capture", "0.10.2", "0.11.0"),
    ("scheduler_delay_factor", "0.10.2", "0.11.0"),
    ("num_scheduler_steps", "0.10.0", "0.10.1"),
    ("speculative_model", "0.8.2", "0.8.3"),
    ("num_speculative_tokens", "0.8.2", "0.8.3"),
    ("speculative_draft_tensor_parallel_size", "0.8.2", "0.8.3"),
    ("task", "0.12.0", "0.13.0"),
    ("device", "0.9.2", "0.10.0"),
    ("device", "0.9.2", "0.33.0"),
    ("use_v2_block_manager", "0.9.2", "0.10.0"),
    ("cuda_graph_sizes", "0.12.0", "0.13.0"),
    ("rope_scaling", "0.11.0", "0.11.1"),
    ("rope_theta", "0.11.0", "0.12.0"),
    ("guided_decoding_backend", "0.11.2", "0.12.0"),
    ("guided_decoding_disable_fallback", "0.11.2", "0.12.0"),
    ("disable_log_requests", "0.16.0", "0.17.0"),
    ("calculate_kv_scales", "0.27.1", "0.28.0"),
    ("max_num_partial_prefills", "0.26.0", "0.27.0"),
    ("enable_reasoning", "0.9.2", "0.10.0"),
    ("worker_use_ray", "0.6.6", "0.7.3"),
    ("disable_mm_preprocessor_cache", "0.12.0", "0.13.0"),
]


@pytest.mark.parametrize(("name", "last", "gone"), TRAPS)
def test_what_an_image_bump_removes(name: str, last: str, gone: str) -> None:
    assert resolve(f"--{name.replace('_', '-')}", last).verdict == "known"
    removed = resolve(name, gone)
    assert removed.verdict == "removed"
    assert removed.instead, "nothing is said of what to write instead"


# (written, the newest release that does not take it, the first that does)
TOO_EARLY = [
    ("--kv-cache-memory-bytes", "0.10.1.1", "0.10.2"),
    ("-dcp", "0.10.1.1", "0.10.2"),
    ("-sc", "0.18.1", "0.19.0"),
    ("--log-level", "0.30.0", "0.31.0"),
    ("--speculative-config", "0.8.1", "0.8.2"),
    ("--attention-backend", "0.12.0", "0.13.0"),
    ("--async-scheduling", "0.9.2", "0.10.0"),
    ("--enable-log-requests", "0.10.0", "0.10.1"),
    ("--runner", "0.10.0", "0.10.1"),
    ("--device-memory-utilization", "0.30.0", "0.31.0"),
    ("--no-enable-prefix-caching", "0.6.4.post1", "0.6.5"),
    ("--no-enforce-eager", "0.8.5.post1", "0.9.0"),
    ("--disable-prefix-caching", "0.32.0", "0.33.0"),
]


@pytest.mark.parametrize(("written", "lacks", "has"), TOO_EARLY)
def test_what_older_images_do_not_take(written: str, lacks: str, has: str) -> None:
    assert resolve(written, lacks).verdict == "not yet"
    assert resolve(written, has).verdict == "known"


def test_log_requests_turn_around() -> None:
    """A switch until 0.16, an error from 0.17, the negation of another one since 0.33."""
    assert not resolve("disable_log_requests", "0.16.0").negated
    assert resolve("disable_log_requests", "0.32.0").verdict == "removed"
    again = resolve("disable_log_requests", "0.33.0")
    assert (again.verdict, again.negated, again.matched) == ("known", True, "disable_log_requests")
    assert again.option is not None and again.option.name == "enable_log_requests"


def test_a_removed_option_that_abbreviates_a_new_one() -> None:
    assert resolve("--device", "0.24.0").candidates == ("device_ids",)
    assert resolve("--device", "0.31.0").candidates == ("device_ids", "device_memory_utilization")


@pytest.mark.parametrize(
    ("written", "release", "verdict", "matched"),
    [
        ("--max-num-s", "0.25.1", "known", "max_num_seqs"),
        ("--max-num-s", "0.26.0", "ambiguous", ""),
        ("--gpu-memory-util", "0.11.0", "known", "gpu_memory_utilization"),
        ("--max-num-batched-token", "0.11.0", "known", "max_num_batched_tokens"),
        ("--enable-prefix", "0.11.0", "known", "enable_prefix_caching"),
        ("--tensor-parallel", "0.11.0", "known", "tensor_parallel_size"),
        ("--no-enable-chunked", "0.11.0", "known", "no_enable_chunked_prefill"),
        ("--quant", "0.19.1", "known", "quantization"),
        ("--quant", "0.22.1", "ambiguous", ""),
        ("--enable", "0.11.0", "ambiguous", ""),
    ],
)
def test_prefixes(written: str, release: str, verdict: str, matched: str) -> None:
    standing = resolve(written, release)
    assert (standing.verdict, standing.matched) == (verdict, matched)


def test_ambiguous_prefixes_tell_what_they_could_be() -> None:
    found = resolve("--max-num-s", "0.26.0").candidates
    assert found == ("max_num_scheduled_tokens", "max_num_seqs")


@pytest.mark.parametrize(
    ("name", "value", "release", "taken"),
    [
        ("max_model_len", "32k", "0.8.3", False),
        ("max_model_len", "32k", "0.8.5", True),
        ("max_model_len", "auto", "0.13.0", False),
        ("max_model_len", "auto", "0.14.0", True),
        ("max_model_len", "-1", "0.13.0", False),
        ("max_model_len", "-1", "0.14.0", True),
        ("max_num_batched_tokens", "8k", "0.9.0", False),
        ("max_num_batched_tokens", "8k", "0.9.1", True),
        ("max_num_seqs", "1k", "0.33.0", False),
        ("gpu_memory_utilization", "0.95", "0.11.0", True),
        ("gpu_memory_utilization", "95", "0.6.0", False),
        ("gpu_memory_utilization", "0", "0.33.0", False),
        ("kv_cache_dtype", "nvfp4", "0.11.0", False),
        ("kv_cache_dtype", "nvfp4", "0.33.0", True),
        ("quantization", "mxfp8", "0.33.0", True),
        ("quantization", "fp8_e4m3", "0.33.0", False),
        ("block_size", 256, "0.11.0", False),
        ("block_size", 256, "0.11.1", True),
        ("block_size", 48, "0.33.0", True),
        ("max_lora_rank", 320, "0.6.6", False),
        ("max_lora_rank", 320, "0.8.5", True),
        ("max_lora_rank", 48, "0.33.0", False),
        ("limit_mm_per_prompt", "image=5", "0.8.4", True),
        ("limit_mm_per_prompt", "image=5", "0.9.2", True),
        ("limit_mm_per_prompt", "image=5", "0.10.0", False),
        ("limit_mm_per_prompt", '{"image": 5}', "0.8.4", False),
        ("limit_mm_per_prompt", '{"image": 5}', "0.8.5", True),
        ("limit_mm_per_prompt", "'image=5'", "0.8.4", False),
        ("enable_chunked_prefill", "False", "0.8.0", True),
        ("enable_chunked_prefill", "False", "0.9.0", False),
        ("trust_remote_code", "true", "0.33.0", False),
        ("attention_backend", "flashinfer", "0.13.0", True),
        ("attention_backend", "auto", "0.13.0", False),
        ("attention_backend", "auto", "0.20.0", True),
        ("attention_backend", "XFORMERS", "0.33.0", False),
        ("distributed_executor_backend", "my.own.Executor", "0.33.0", True),
        ("served_model_name", ["a", "b"], "0.33.0", True),
        ("hf_overrides", {"rope_parameters": {}}, "0.33.0", True),
    ],
)
def test_values_by_release(name: str, value: object, release: str, taken: bool) -> None:
    expected = TABLE.check_value(name, value, v(release))
    assert (expected is None) is taken, expected


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("mem_fraction_static", "gpu_memory_utilization"),
        ("context_length", "max_model_len"),
        ("max_total_tokens", "max_model_len"),
        ("tp_size", "tensor_parallel_size"),
        ("max_running_requests", "max_num_seqs"),
        ("enable_radix_cache", "enable_prefix_caching"),
        ("model_path", "model"),
    ],
)
def test_names_of_other_engines(name: str, words: str) -> None:
    standing = resolve(name, "0.31.0")
    assert standing.verdict == "unknown"
    assert words in standing.instead


def test_replacements_are_options_of_the_release_they_are_given_for() -> None:
    """What `use NAME` recommends exists when it is recommended."""
    for line in (DATA / "renamed.jsonl").read_text().splitlines():
        record = json.loads(line)
        found = re.match(r"use (?:the option )?(?!the key)([a-z_0-9]+)\b", record["write"])
        if found is None:
            continue
        name = found[1]
        release = v(record["since"]) if "since" in record else None
        if release is None and "before" in record:
            release = max(one for one in TABLE.releases if one < v(record["before"]))
        assert TABLE.option(name) is not None, record
        assert TABLE.has(name, release) is not False, record


def test_frontend_options_are_known() -> None:
    for name in ("host", "port", "api_key", "chat_template", "tool_call_parser", "config"):
        standing = resolve(name, "0.11.0")
        assert standing.option is not None and standing.verdict == "known"
        assert standing.option.group == "frontend"
    assert TABLE.option("model_tag") is not None


def test_open_json_options_take_any_key() -> None:
    for option in ("limit_mm_per_prompt", "hf_overrides", "additional_config"):
        assert TABLE.resolve_key(option, "anything", v("0.11.0")).verdict == "known"
    known = TABLE.resolve_key("kv_transfer_config", "kv_connector", v("0.11.0"))
    assert known.verdict == "known"
    assert TABLE.resolve_key("compilation_config", "levl", v("0.11.0")).candidates == ("level",)


@pytest.mark.parametrize(
    ("name", "last", "gone"),
    [
        ("VLLM_USE_V1", "0.11.0", "0.12.0"),
        ("VLLM_ATTENTION_BACKEND", "0.14.1", "0.16.0"),
        ("VLLM_ALL2ALL_BACKEND", "0.15.1", "0.18.1"),
        ("VLLM_FLASH_ATTN_VERSION", "0.14.1", "0.16.0"),
    ],
)
def test_variables_that_newer_releases_ignore(name: str, last: str, gone: str) -> None:
    assert ENVIRONMENT.resolve(name, v(last), prefixes=False).verdict == "known"
    removed = ENVIRONMENT.resolve(name, v(gone), prefixes=False)
    assert removed.verdict == "removed" and removed.instead


def test_defaults_of_variables() -> None:
    graphs = "VLLM_MEMORY_PROFILER_ESTIMATE_CUDAGRAPHS"
    assert ENVIRONMENT.has(graphs, v("0.17.1")) is False
    assert ENVIRONMENT.default(graphs, v("0.19.1")) == (False,)
    assert ENVIRONMENT.default(graphs, v("0.20.0")) == (True,)
    assert ENVIRONMENT.default("VLLM_FLASHINFER_WORKSPACE_BUFFER_SIZE", v("0.20.0")) == (394 << 20,)
    assert ENVIRONMENT.check_value("VLLM_PORT", "tcp://10.0.0.1:8000", v("0.11.0"))
    assert ENVIRONMENT.check_value("VLLM_USE_V1", "1", v("0.10.0")) is None
    assert ENVIRONMENT.check_value("VLLM_USE_V1", "yes", v("0.10.0")) == "0 or 1"


def test_a_real_command_line() -> None:
    line = (
        "meta-llama/Llama-3.1-8B --gpu-memory-util 0.85 -tp 2 -O3 --served-model-name a b "
        "--speculative-config.num_speculative_tokens 3 --no-enable-prefix-caching"
    )
    place = Place("run.sh")
    argv = read_argv([Word(text, place) for text in line.split()], TABLE)
    assert [word.text for word in argv.positionals] == ["meta-llama/Llama-3.1-8B"]
    assert [option.name for option in argv.options] == [
        "gpu_memory_utilization",
        "tensor_parallel_size",
        "optimization_level",
        "served_model_name",
        "speculative_config.num_speculative_tokens",
        "enable_prefix_caching",
    ]


def test_reading_the_table_is_quick() -> None:
    """A few milliseconds; the bound leaves room for slow machines."""
    times = []
    for _ in range(5):
        start = time.perf_counter()
        OptionTable(DATA / "options.jsonl").resolve("--max-num-s", v("0.26.0"))
        times.append(time.perf_counter() - start)
    assert min(times) < 0.05
