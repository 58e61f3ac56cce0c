"""Serving measurements as deployments: one line of CSV to a capcheck/v1 spec.

What the columns leave out is assumed here:

* Shapes whose lengths were drawn from a range have a mean of 0.9 x nominal. All tests start with
  as many prompts as may be in flight and send ten for each.
* The KV cache is fp8 on Blackwell and under TensorRT-LLM, as their rows behave, the engine's own
  choice elsewhere.
* SGLang looked for requests every 10 steps, every 30 on Blackwell from 16 requests on, where the
  lengths were drawn from a range.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

PROMPTS_A_REQUEST = 10
RANGE = (0.8, 0.9)  # least and mean of drawn lengths over the nominal one
OWN_PRECISION = {  # checkpoints that are published in this one
    "deepseek-ai/DeepSeek-R1": "fp8",
    "deepseek-ai/DeepSeek-V3": "fp8",
    "MiniMaxAI/MiniMax-M2.5": "fp8",
    "openai/gpt-oss-120b": "mxfp4",
}
FP8_CACHE: Mapping[str, dict[str, Any]] = {
    "tensorrt-llm": {"kv_cache_config": {"dtype": "fp8"}},
    "vllm": {"kv_cache_dtype": "fp8"},
    "sglang": {"kv_cache_dtype": "fp8_e4m3"},
}


class Row(NamedTuple):
    """One measurement. Tokens, seconds."""

    id: str
    model: str
    accelerator: str
    engine: str
    version: str
    precision: str
    devices: int
    tensor: int
    data: int  # attention data-parallel ranks
    expert_tensor: int
    expert: int
    concurrency: int
    prompt: int
    output: int
    fixed: bool
    suspect: str
    ttft: float
    tpot: float

    @property
    def blackwell(self) -> bool:
        """Whether the accelerator is of that generation."""
        return "b200" in self.accelerator

    @property
    def configuration(self) -> tuple[Any, ...]:
        """All that is deployed: rows of one differ in the load."""
        return self[1:11]


def rows(path: Path) -> Iterator[Row]:
    """The measurements of a file; totals of prefill and decode servers apart are left out."""
    with path.open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            if record["suspect"] != "disaggregated":
                yield _row(record)


def _row(record: Mapping[str, str]) -> Row:
    return Row(
        id=record["id"],
        model=record["model"],
        accelerator=record["accelerator"],
        engine=record["engine"],
        version=record["engine_version"],
        precision=record["precision"],
        devices=int(record["devices"]),
        tensor=int(record["tensor_parallel"]),
        data=int(record["attention_data_parallel"]),
        expert_tensor=int(record["moe_tensor_parallel"]),
        expert=int(record["expert_parallel"]),
        concurrency=max(1, int(float(record["concurrency"] or 1))),
        prompt=int(record["isl"]),
        output=max(1, int(record["osl"])),
        fixed=record["lengths"] == "fixed",
        suspect=record["suspect"],
        ttft=float(record["ttft_ms"]) / 1e3,
        tpot=float(record["tpot_ms"]) / 1e3,
    )


def is_clean(row: Row) -> bool:
    """Whether the columns tell what was measured.

    Speculation that is not in the columns, start-up inside the first token, and rows several
    times off their own neighbours are not clean.
    """
    odd = (
        row.suspect
        or row.model in ("nvidia/DeepSeek-R1-NVFP4", "nvidia/Llama-3.1-8B-Instruct-FP8")
        or row.version == "1.2.0rc6.post1"
    )
    first = (row.model, row.engine, row.version)
    return not (
        odd
        or (row.model == "Qwen/Qwen3-32B" and row.accelerator == "nvidia/gb200-186gb")
        or (first[0] == "openai/gpt-oss-120b" and _gpt_oss_is_odd(row))
        or (first == ("Qwen/Qwen3-32B", "vllm", "0.12.0")
            and row.prompt == 4000 and row.precision == "fp8")
    )  # fmt: skip


def _gpt_oss_is_odd(row: Row) -> bool:
    if row.engine == "vllm":
        return row.concurrency == 512 and "h100" in row.accelerator
    return row.version == "1.3.0rc1" and row.prompt == 4000


def _layout(row: Row) -> dict[str, Any]:
    args: dict[str, Any] = {}
    devices = max(row.tensor, row.data)
    if row.engine == "vllm":
        args |= {"tensor_parallel_size": row.tensor, "data_parallel_size": row.data}
        if row.expert > 1:
            args["enable_expert_parallel"] = True
    elif row.engine == "sglang":
        args["tp_size"] = devices
        if row.data > 1:
            args |= {"dp_size": row.data, "enable_dp_attention": True}
        if row.expert > 1:
            args["ep_size"] = row.expert
    else:
        args["tensor_parallel_size"] = devices
        if row.data > 1:
            args["enable_attention_dp"] = True
        if row.expert > 1:
            args["moe_expert_parallel_size"] = row.expert
            if row.expert_tensor > 1:
                args["moe_tensor_parallel_size"] = row.expert_tensor
    return args


def _lengths(nominal: int, fixed: bool) -> Any:
    if fixed:
        return nominal
    least, mean = (round(share * nominal) for share in RANGE)
    return {"min": least, "mean": mean, "max": nominal}


def spec_of(row: Row) -> str:
    """The deployment that a row describes, as YAML (JSON is YAML)."""
    args = _layout(row)
    if row.engine == "tensorrt-llm" or row.blackwell:
        args |= FP8_CACHE[row.engine]
    if row.engine == "sglang" and not row.fixed:
        every = 30 if row.blackwell and row.concurrency >= 16 else 10
        args["scheduler_recv_interval"] = every
    model: dict[str, Any] = {"id": row.model}
    own = OWN_PRECISION.get(row.model, "bf16")
    if row.precision != own and not row.model.startswith("nvidia/"):
        model["weights"] = {"precision": row.precision}
    engine: dict[str, Any] = {"name": row.engine, "args": args}
    if row.version[:1].isdigit():
        engine["version"] = row.version
    return json.dumps({
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": row.id,
        "model": model,
        "hardware": {"accelerator": row.accelerator, "count": row.devices},
        "engine": engine,
        "workload": {
            "prompt_tokens": _lengths(row.prompt, row.fixed),
            "output_tokens": _lengths(row.output, row.fixed),
            "concurrency": row.concurrency,
            "start": "burst",
            "prompts": PROMPTS_A_REQUEST * row.concurrency,
        },
    })  # fmt: skip
