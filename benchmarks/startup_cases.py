"""Start-up cases as deployments: one line of JSON to a capcheck/v1 spec."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

PASSED_ON = (
    "block_size", "decode_context_parallel_size", "enable_chunked_prefill", "enable_lora",
    "enable_prefix_caching", "language_model_only", "limit_mm_per_prompt", "mamba_cache_mode",
    "max_cudagraph_capture_size", "max_lora_rank", "max_loras", "runner", "skip_mm_profiling",
)  # fmt: skip


def rows(paths: list[Path]) -> Iterator[dict[str, Any]]:
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield json.loads(line)


def _args(row: Mapping[str, Any]) -> dict[str, Any]:
    args: dict[str, Any] = {}
    for name in (
        "tensor_parallel_size", "pipeline_parallel_size", "data_parallel_size", "max_model_len",
        "gpu_memory_utilization", "max_num_seqs", "max_num_batched_tokens", "enforce_eager",
        "cpu_offload_gb", "enable_expert_parallel", "kv_cache_dtype", "dtype",
    ):  # fmt: skip
        value = row.get(name)
        if value not in (None, "auto", False) and not (value == 1 and name.endswith("_size")):
            args[name] = value
    if row.get("quantization") in ("fp8", "bitsandbytes"):
        args["quantization"] = row["quantization"]
    flags = row.get("other_flags") or {}
    args.update({name: flags[name] for name in PASSED_ON if name in flags})
    speculative = row.get("speculative")
    if isinstance(speculative, Mapping):
        args["speculative_config"] = dict(speculative)
    return args


def version_of(row: Mapping[str, Any]) -> str | None:
    text = row.get("engine_version")
    return text or None


def spec_of(row: Mapping[str, Any]) -> str:
    """The deployment that a case describes, as YAML (JSON is YAML)."""
    engine: dict[str, Any] = {"name": row["engine"], "args": _args(row)}
    if version_of(row):
        engine["version"] = version_of(row)
    spec: dict[str, Any] = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": row["id"],
        "hardware": {},
        "engine": engine,
    }
    if row.get("model"):
        spec["model"] = {"id": row["model"].split(" (")[0]}
    if row.get("accelerators"):
        spec["hardware"]["count"] = row["accelerators"]
    name = row.get("accelerator_id") or row.get("accelerator")
    if name:
        spec["hardware"]["accelerator"] = name
    return json.dumps(spec)
