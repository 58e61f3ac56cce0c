"""Start-up cases as deployments: one line of JSON to a capcheck/v1 spec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

NOTHING = (None, "auto", False)
# Remarks about a run that are no options of the engine.
REMARKS = frozenset({
    "azure_sku", "clients", "compilation_mode", "cudagraph_capture_max",
    "cudagraph_capture_sizes_count", "env", "executor", "flashinfer_autotune", "gpus_per_node",
    "max_tokens", "mode", "nodes", "shmSize", "speculative", "wsl",
})  # fmt: skip
COMPILATION = ("cudagraph_capture_sizes", "cudagraph_mode")  # keys of compilation_config
OWN_SIZES = {  # engine: its names of the parallel sizes, in a case's order
    "vllm": ("tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size"),
    "sglang": ("tp_size", "pp_size", "dp_size"),
    "tensorrt-llm": ("tp_size", "pp_size", ""),
    "tgi": ("num_shard", "", ""),
}
ONLINE = ("fp8", "bitsandbytes")  # quantizations that vLLM is asked for
CACHE_TYPES = {"llama.cpp": ("cache_type_k", "cache_type_v")}  # its names of kv_cache_dtype


def rows(paths: Sequence[Path]) -> Iterator[dict[str, Any]]:
    """Every case of the files."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line)


def _sizes(row: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    names = OWN_SIZES.get(row["engine"], ())
    for own, name in zip(names, OWN_SIZES["vllm"], strict=False):
        if own and (row.get(name) or 1) > 1:
            yield own, row[name]


def _vllm_args(row: Mapping[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for name in (
        "max_model_len", "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens",
        "enforce_eager", "cpu_offload_gb", "enable_expert_parallel", "kv_cache_dtype", "dtype",
    ):  # fmt: skip
        if row.get(name) not in NOTHING:
            args[name] = row[name]
    if row.get("quantization") in ONLINE:
        args["quantization"] = row["quantization"]
    for name, value in (row.get("other_flags") or {}).items():
        if name in COMPILATION:
            args.setdefault("compilation_config", {})[name] = value
        elif name not in REMARKS and not name.isupper() and value is not None:
            args[name] = value
    if isinstance(row.get("speculative"), Mapping):
        args["speculative_config"] = dict(row["speculative"])
    return args


def _args(row: Mapping[str, Any]) -> dict[str, Any]:
    if row["engine"] == "vllm":
        args = _vllm_args(row)
    else:
        given = {**(row.get("other_flags") or {}), **(row.get("args") or {})}
        args = {name: value for name, value in given.items() if name not in REMARKS}
        if row.get("kv_cache_dtype") not in NOTHING:
            for name in CACHE_TYPES.get(row["engine"], ("kv_cache_dtype",)):
                args.setdefault(name, row["kv_cache_dtype"])
        if row["engine"] == "llama.cpp" and row.get("max_model_len"):
            args.setdefault("n_ctx", row["max_model_len"])
    for own, size in _sizes(row):
        args.setdefault(own, size)
    return args


def _model(row: Mapping[str, Any]) -> dict[str, Any]:
    if not row.get("model"):
        return {}
    model: dict[str, Any] = {"id": row["model"].split(" (")[0]}
    if row["engine"] == "llama.cpp" and row.get("quantization"):
        model["weights"] = {"precision": row["quantization"].lower()}
    return {"model": model}


def spec_of(row: Mapping[str, Any]) -> str:
    """The deployment that a case describes, as YAML (JSON is YAML)."""
    engine: dict[str, Any] = {"name": row["engine"], "args": _args(row)}
    flags = row.get("other_flags") or {}
    variables = {name: str(value) for name, value in flags.items() if name.isupper()}
    if "attention_backend" in flags:  # as the log calls it: an option or, before, a variable
        engine["args"].pop("attention_backend", None)
        if row["engine"] != "vllm":
            engine["args"]["attention_backend"] = flags["attention_backend"]
    if variables:
        engine["env"] = variables
    if row.get("engine_version"):
        engine["version"] = row["engine_version"]
    hardware: dict[str, Any] = {}
    if row.get("accelerators"):
        hardware["count"] = row["accelerators"]
    name = row.get("accelerator_id") or row.get("accelerator")
    if name:
        hardware["accelerator"] = name
    spec: dict[str, Any] = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": row["id"],
        **_model(row),
        "hardware": hardware,
        "engine": engine,
    }
    return json.dumps(spec)


def source_of(row: Mapping[str, Any]) -> str:
    """Whose measurement it is, as far as a case tells: its date and the device."""
    return f"{row.get('date')} {row.get('accelerator_id') or row.get('accelerator')}"
