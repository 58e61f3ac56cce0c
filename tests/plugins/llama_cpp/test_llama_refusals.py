"""Values that llama-server refuses, and those that it takes."""

from __future__ import annotations

from typing import Any

import pytest
from llama_kit import LLAMA_3, case_of, refused

from capcheck import Case, Unknown

NUMBER = "a whole number"


def messages(version: str = "b9000", **args: Any) -> list[str]:
    named = {"count": args.pop("count", 1), "env": args.pop("env", None)}
    engine = args.pop("engine", "llama.cpp")
    case = case_of(LLAMA_3, "q4_k_m", version=version, engine=engine, **named, **args)
    return refused(case, "options/value")


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ({"gpu_layers": "x"}, f"gpu-layers: expected {NUMBER} or auto or all"),
        ({"ctx_size": "many"}, f"ctx-size: expected {NUMBER}"),
        ({"ctx_size": 999999999999999}, f"ctx-size: expected {NUMBER} below 2,147,483,648"),
        ({"parallel": 99999999999}, f"parallel: expected {NUMBER} below 2,147,483,648"),
        ({"parallel": 0}, "parallel: expected 1 or more, or -1 for as many as the server chooses"),
        ({"n_cpu_moe": -4}, "n-cpu-moe: expected 0 or more"),
        ({"split_mode": "bogus"}, "split-mode: expected one of none, layer, row, tensor"),
        ({"tensor_split": "a,b"}, "tensor-split: expected numbers with commas between them, such "
         "as 3,1"),
        ({"override_tensor": 7}, "override-tensor: expected patterns and their places, such as "
         "exps=CPU"),
        ({"split_mode": "none", "main_gpu": 9, "count": 3}, "main-gpu: expected one of the 3 "
         "devices, counted from 0"),
        ({"env": {"LLAMA_ARG_CTX_SIZE": "many"}}, f"ctx-size: expected {NUMBER}"),
    ],
)  # fmt: skip
def test_what_stops_the_server(args: dict[str, Any], message: str) -> None:
    assert messages(**args) == [message]


@pytest.mark.parametrize(
    "args",
    [
        {"gpu_layers": "auto"}, {"gpu_layers": "all"}, {"gpu_layers": 99}, {"parallel": -1},
        {"ctx_size": 0}, {"ubatch_size": 0}, {"tensor_split": "3,1"}, {"tensor_split": "3/1"},
        {"split_mode": "tensor"}, {"main_gpu": 9}, {"split_mode": "none", "main_gpu": 0},
        {"split_mode": "none", "main_gpu": 9, "rpc": "10.0.0.2:50052"},
        {"override_tensor": "exps=CPU"}, {"n_cpu_moe": 4}, {"threads": -1},
    ],
)  # fmt: skip
def test_what_the_server_takes(args: dict[str, Any]) -> None:
    assert messages(**args) == []


def test_what_is_not_certain() -> None:
    assert messages(version="b6000", parallel=0) == []  # older parsers take it
    assert messages(version="b99999", split_mode="new") == []
    assert messages(version="0.3.16", split_mode=1) == []  # the package has numbers
    assert messages(version="ik_llama", split_mode="graph") == []
    assert messages(engine="llama-cpp-python", split_mode=1) == []


def lost(case: Case, name: str) -> str:
    with pytest.raises(Unknown) as found:
        case.estimate(name)
    return found.value.why


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({"gpu_layers": "x"}, "gpu_layers is not"),
        ({"gpu_layers": -7}, "gpu-layers is below 0"),
        ({"ctx_size": -1}, "ctx-size is below 0"),
        ({"parallel": -2, "version": "b6000"}, "parallel is below 1"),
        ({"split_mode": "bogus"}, "bogus is no split-mode"),
        ({"tensor_split": "a,b"}, "tensor-split is not a list of numbers"),
        ({"tensor_split": "nan,1"}, "tensor-split is not a list of numbers"),
        ({"tensor_split": "-1,2"}, "tensor-split is not a list of numbers"),
        ({"n_cpu_moe": -4}, "n-cpu-moe is below 0"),
    ],
)
def test_what_cannot_be_read_is_not_the_default(args: dict[str, Any], why: str) -> None:
    case = case_of(LLAMA_3, "q4_k_m", count=2, **{"ctx_size": 8192, "version": "b9000", **args})
    assert why in lost(case, "kv_cache_bytes")


def test_an_unread_split_splits_nothing() -> None:
    plan = case_of(LLAMA_3, "q4_k_m", count=2, split_mode="bogus").plan
    assert plan.tensor.unknown and plan.pipeline.unknown
    numbered = case_of(LLAMA_3, "q4_k_m", count=2, version="0.3.16", split_mode=2).plan
    assert numbered.tensor.get() == 2


def test_no_physical_batch_is_the_logical_one() -> None:
    plan = case_of(LLAMA_3, "q4_k_m", ctx_size=8192, ubatch_size=0).plan
    assert plan.max_step_tokens.get() == 2048
