"""The option tables, and the tool that reads them from sources."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from llama_kit import LLAMA_3, case_of

from capcheck_llama_cpp.reading import variables
from capcheck_llama_cpp.table import OLLAMA, TABLE

sys.path.insert(0, str(Path(__file__).parents[3] / "tools"))

from llama_cpp_options import Registered, compared, parameters, registered, tables

NEW = """
    add_opt(common_arg({"-c", "--ctx-size"}, "N", text("cells (%d)", params.n_ctx),
        [](common_params & params, int many) { params.n_ctx = many; }
    ).set_env("LLAMA_ARG_CTX_SIZE"));
    add_opt(common_arg({"-kvo", "--kv-offload"}, {"-nkvo", "--no-kv-offload"}, "where cells lie",
        [](common_params & params, bool on) { params.host = !on; }));
    add_opt(common_arg({ "-fa", "--flash-attn" }, "[on|off]", "scores",
        [](common_params & params, const std::string & word) { set(word); }).set_env("FA"));
"""
OLD = """
    if (arg == "-c" || arg == "--ctx-size") { if (++i < argc) many = std::stoi(argv[i]); }
    if (arg == "-fa" || arg == "--flash-attn") { flash = true; }
"""


@pytest.mark.parametrize(
    ("written", "build", "option"),
    [
        ("-c", 9000, "ctx_size"), ("--ctx-size", 1700, "ctx_size"), ("n_ctx", 2824, "ctx_size"),
        ("-ngl", 2824, "gpu_layers"), ("n_gpu_layers", 9000, "gpu_layers"),
        ("-nkvo", 9000, "no_kv_offload"), ("-ctk", 5000, "cache_type_k"),
        ("n_ubatch", 2824, "ubatch_size"), ("-md", 9000, "model_draft"),
        ("--spec-draft-model", 11549, "model_draft"),
    ],
)  # fmt: skip
def test_names(written: str, build: int, option: str) -> None:
    standing = TABLE.resolve(written, (build,))
    assert standing.verdict == "known" and standing.option and standing.option.name == option


def test_names_cannot_be_shortened() -> None:
    assert TABLE.resolve("--ctx-siz", (9000,)).verdict == "unknown"
    assert TABLE.resolve("--fit", (5310,)).verdict == "not yet"


def test_flash_attention_takes_a_value_since_a_known_build() -> None:
    assert TABLE.shape("flash_attn", (6324,)).type == "bool"
    assert TABLE.shape("flash_attn", (6325,)).type == "text"
    assert TABLE.check_value("flash_attn", True, (9000,)) is None


def test_variables() -> None:
    assert "LLAMA_ARG_CTX_SIZE" in variables()["ctx_size"]
    assert all(TABLE.option(name) is not None for name in variables())


def test_parameters_of_ollama() -> None:
    assert OLLAMA.resolve("num_ctx", (0, 12, 6)).verdict == "known"
    assert OLLAMA.resolve("mirostat", (0, 12, 6)).verdict == "removed"


def test_newer_sources() -> None:
    assert list(registered(NEW)) == [
        Registered(("-c", "--ctx-size"), (), "int", "LLAMA_ARG_CTX_SIZE"),
        Registered(("-kvo", "--kv-offload"), ("-nkvo", "--no-kv-offload"), "bool", ""),
        Registered(("-fa", "--flash-attn"), (), "text", "FA"),
    ]


def test_older_sources() -> None:
    assert list(compared(OLD)) == [
        Registered(("-c", "--ctx-size"), (), "int", ""),
        Registered(("-fa", "--flash-attn"), (), "bool", ""),
    ]


def test_one_record_for_each_option() -> None:
    lines, environment = tables({"b2800": list(compared(OLD)), "b9000": list(registered(NEW))})
    assert lines[0] == '{"releases": [["b2800", ""], ["b9000", ""]]}'
    assert [line.split('"')[3] for line in lines[1:]] == [
        "ctx_size", "flash_attn", "kv_offload", "no_kv_offload",
    ]  # fmt: skip
    assert '"aliases": ["n_ctx"]' in lines[1] and '"shorts": ["-nkvo"]' in lines[4]
    assert environment[1] == '{"name": "LLAMA_ARG_CTX_SIZE", "option": "ctx_size"}'


def test_fields_of_go() -> None:
    source = 'type Runner struct {\n\tNumCtx int `json:"num_ctx,omitempty"`\n}\n'
    model, found = parameters(source)
    assert model.name == "model" and model.shape["positional"]
    assert (found.name, found.shape) == ("num_ctx", {"type": "int"})


@pytest.mark.parametrize(
    ("written", "option"),
    [
        ("c", "ctx_size"), ("ngl", "gpu_layers"), ("fa", "flash_attn"), ("hf", "hf_repo"),
        ("m", "model"), ("t", "threads"), ("b", "batch_size"), ("ub", "ubatch_size"),
        ("np", "parallel"), ("sm", "split_mode"), ("ts", "tensor_split"), ("mg", "main_gpu"),
        ("ctk", "cache_type_k"), ("ctv", "cache_type_v"), ("ot", "override_tensor"),
        ("cb", "cont_batching"), ("nkvo", "no_kv_offload"), ("ncmoe", "n_cpu_moe"),
        ("cmoe", "cpu_moe"), ("md", "model_draft"), ("ngld", "gpu_layers_draft"), ("a", "alias"),
    ],
)  # fmt: skip
def test_short_names_without_their_dash(written: str, option: str) -> None:
    standing = TABLE.resolve(written, (6500,))
    assert standing.option is not None and standing.option.name == option
    assert TABLE.resolve(f"--{written}", (6500,)).verdict == "unknown"


def test_names_that_are_neither() -> None:
    assert TABLE.resolve("xyz", (6500,)).verdict == "unknown"
    assert TABLE.resolve("fit", (9000,)).matched == "fit"  # a long name goes before a short one
    assert TABLE.resolve("hf", (2824,)).verdict == "not yet"


def test_short_names_are_read() -> None:
    plan = case_of(LLAMA_3, "q4_k_m", version="b6500", c=8192, ngl=16, ub=256, nkvo=True).plan
    assert plan.extra["ctx_size"].get() == 8192 and plan.extra["gpu_layers"].get() == 16
    assert plan.max_step_tokens.get() == 256 and plan.extra["kv_offload"].get() is False
