"""The shipped option table against what was read in the sources by hand."""

from __future__ import annotations

import pytest

from capcheck.options import parse_version
from capcheck_sglang.table import TABLE


@pytest.mark.parametrize(
    ("written", "release", "option"),
    [
        ("--tp", "0.4.6.post5", "tp_size"),
        ("--tp", "0.5.23", "tp_size"),
        ("--tensor-parallel-size", "0.3.0", "tp_size"),
        ("--dp-size", "0.5.4", "dp_size"),
        ("--model", "0.5.4", "model_path"),
        ("--model-path", "0.2.15", "model_path"),
        ("--mem-fraction-static", "0.4.0", "mem_fraction_static"),
        ("--ep", "0.5.4", "ep_size"),
        ("--config", "0.5.4", "config"),
    ],
)
def test_names(written: str, release: str, option: str) -> None:
    standing = TABLE.resolve(written, parse_version(release))
    assert standing.verdict == "known"
    assert standing.option is not None
    assert standing.option.name == option


@pytest.mark.parametrize(
    ("written", "release", "verdict"),
    [
        ("--max-model-len", "0.5.4", "unknown"),
        ("--gpu-memory-utilization", "0.4.0", "unknown"),
        ("--enable-ep-moe", "0.5.5", "removed"),
        ("--swa-full-tokens-ratio", "0.4.6", "not yet"),
        ("--page-size", "0.4.0", "not yet"),
    ],
)
def test_names_that_a_release_lacks(written: str, release: str, verdict: str) -> None:
    assert TABLE.resolve(written, parse_version(release)).verdict == verdict


def test_defaults_and_values() -> None:
    assert TABLE.default("page_size", parse_version("0.4.6")) == (1,)
    assert TABLE.default("page_size", parse_version("0.5.4")) == (None,)
    assert TABLE.default("swa_full_tokens_ratio", parse_version("0.5.12")) == (0.8,)
    assert TABLE.check_value("kv_cache_dtype", "bfloat16", parse_version("0.5.3")) is not None
    assert TABLE.check_value("kv_cache_dtype", "bfloat16", parse_version("0.5.4")) is None
    assert TABLE.check_value("kv_cache_dtype", "fp8_e4m3", parse_version("0.5.4")) is None


def test_every_reply_for_a_strangers_name_is_ours() -> None:
    for name in ("max_model_len", "max_num_seqs", "gpu_memory_utilization", "enforce_eager"):
        assert TABLE.option(name) is None
        assert TABLE.instead(name, None)
