"""Measured percentiles as deployments: one line of JSON to a capcheck/v1 spec.

Lengths whose distribution is known are declared by it: drawn evenly up to a nominal length, or
chat data sets by mean and maximum. A closed loop began with all its requests at once. Requests
that several replicas are dealt in turn come to each more evenly, by the number of replicas.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

FEWEST_PROMPTS = 100  # below, a 99th percentile is the maximum
FEW_RAN = 0.25  # of those in flight
COLD = 20.0  # a p99 above so many medians, far below saturation, is a cold start
QUEUED = 10.0  # a median wait above so many prefills is a queue
SHORT_OF = 0.9  # a throughput below this share of the offered rate is saturation
EXPERIMENTAL = "SemiAnalysisAI/InferenceX"  # its two closed-loop studies are marked so
EVEN = 100.0  # burstiness of evenly spaced arrivals
# Own sizes by engine: tensor parallel, expert parallel on, attention data parallel on.
SIZES = {"vllm": "tensor_parallel_size", "sglang": "tp_size", "tensorrt-llm": "tp_size"}
PACKED = {"fp8": "fp8", "fp4": "nvfp4"}  # of checkpoints named after the unpacked model
OWN = ("FP8", "FP4", "GPTQ", "DeepSeek-R1-0528", "DeepSeek-V3", "MiniMax")  # packed as published
LONGEST = {  # tokens: the most that the client or data set sends, and asks for
    "sharegpt": (1024, 2048), "open-orca": (1024, 1024), "cnn-dailymail": (2540, 128),
    "mlperf-405b": (20000, 2000), "mlperf-mixtral": (2048, 1024),
    "mlperf-reasoning": (3136, 20000),
}  # fmt: skip

LONG_DOCUMENTS = {"p50": 9000, "p99": 19000, "max": 20000}  # tokens: summaries and questions


class Point(NamedTuple):
    """One measurement, and which class it is scored in."""

    row: Mapping[str, Any]

    @property
    def id(self) -> str:
        return str(self.row["id"])

    @property
    def load(self) -> str:
        """open (a rate), closed (a number in flight), or uncapped (all at once)."""
        if self.row["request_rate"]:
            return "open"
        return "closed" if self.row["concurrency"] else "uncapped"

    @property
    def lengths(self) -> str:
        """fixed, near-fixed, uniform or chat."""
        kind = str(self.row["lengths"])
        return kind if kind in ("fixed", "near-fixed", "uniform") else "chat"

    @property
    def doubtful(self) -> str:
        """Why the measurement says little about a tail; "" when it says much."""
        if not self.row["accelerator"]:
            return "accelerator not named"
        if self.row["source"] == EXPERIMENTAL:
            return "an experiment, by its own word"
        prompts = self.row["prompts"]
        if prompts is not None and prompts < FEWEST_PROMPTS:
            return "under 100 prompts"
        if self.row["failed"] > 0.1 * (prompts or 1):
            return "requests failed"
        median, tail = self.row["ttft_p50_ms"], self.row["ttft_p99_ms"]
        if median and tail and tail > COLD * median:
            return "cold start"
        return "few ran of those sent" if self._ran() < FEW_RAN else ""

    def _ran(self) -> float:
        """Requests that decoded at once over those in flight (Little); 1 where it cannot be told.

        An engine that was built for few sequences says so nowhere.
        """
        row = self.row
        served, tpot, flight = row["request_throughput"], row["tpot_p50_ms"], row["concurrency"]
        if not (served and tpot and flight):
            return 1.0
        return float(served * row["output_mean"] * tpot / 1e3 / flight)

    @property
    def overload(self) -> float | None:
        """The offered rate over the measured throughput; None without a rate or a throughput."""
        rate, served = self.row["request_rate"], self.row["request_throughput"]
        return rate / served if rate and served else None

    @property
    def saturated(self) -> bool | None:
        """Whether requests came faster than they were served; None where no rate is given.

        A run of so many seconds ends with its last answer: over all of it, even an idle server
        serves less than was offered.
        """
        over = self.overload
        if over is None:
            return None
        median = (self.row["ttft_p50_ms"] or 0.0) / 1e3
        length = self.row["duration_s"] or 0.0
        return (over > 1.0 / SHORT_OF and median > 2.0) or (length > 0 and median > 0.05 * length)

    def measured(self, name: str) -> float | None:
        """A figure such as `tpot_p99`, seconds."""
        value = self.row.get(f"{name}_ms")
        return value / 1e3 if value else None


def points(paths: Sequence[Path]) -> Iterator[Point]:
    """Every measurement of the files."""
    for path in paths:
        for line in path.read_text(encoding="utf-8").splitlines():
            if line.strip():
                yield Point(json.loads(line))


def _uniform(longest: float) -> dict[str, float]:
    return {"p50": round(0.5 * longest), "p90": round(0.9 * longest), "p99": round(0.99 * longest),
            "max": round(longest)}  # fmt: skip


def _tokens(row: Mapping[str, Any], name: str, at: int) -> Any:
    mean = max(1.0, row[f"{name}_mean"])
    if row["lengths"] == "uniform":
        return _uniform(row[f"{name}_longest"])
    if row["lengths"] == "mlperf-405b" and name == "prompt":
        return LONG_DOCUMENTS
    longest = LONGEST.get(row["lengths"])
    if longest is None or mean >= longest[at] * 0.98:
        return round(mean)
    return {"mean": mean, "max": longest[at]}


def _workload(point: Point) -> dict[str, Any]:
    row = point.row
    made: dict[str, Any] = {
        "prompt_tokens": _tokens(row, "prompt", 0),
        "output_tokens": _tokens(row, "output", 1),
    }
    if row["prefix_hit_rate"]:
        made["prefix_hit_rate"] = row["prefix_hit_rate"]
    if point.load == "open":
        made["request_rate"] = f"{row['request_rate']:g}/s"
        even = EVEN if row["evenly_spaced"] else float(row["replicas"])
        if even != 1.0:
            made["burstiness"] = even
        if row["prompts"]:
            made["prompts"] = row["prompts"]
        return made
    made["concurrency"] = row["concurrency"] or row["prompts"]
    if row["prompts"]:
        made |= {"start": "burst", "prompts": row["prompts"]}
    return made


def _engine(row: Mapping[str, Any]) -> dict[str, Any]:
    name = row["engine"]
    args: dict[str, Any] = dict(row["options"])
    if row["tensor_parallel"] > 1:
        args[SIZES[name]] = row["tensor_parallel"]
    spread = row["expert_parallel"]
    if spread > 1 and name == "vllm":
        args["enable_expert_parallel"] = True
    elif spread > 1 and name == "sglang":
        args["ep_size"] = spread
    elif spread > 1:
        args["moe_expert_parallel_size"] = spread
    if row["attention_data_parallel"] > 1:
        args["enable_attention_dp"] = True
    if row["speculative"]:
        args["speculative_config"] = {"method": "mtp", "num_speculative_tokens": 1}
    made: dict[str, Any] = {"name": name, "args": args}
    if row["engine_version"]:
        made["version"] = row["engine_version"]
    return made


def spec_of(point: Point) -> str:
    """The deployment that was measured, as YAML (JSON is YAML)."""
    row = point.row
    model: dict[str, Any] = {"id": row["model"]}
    if row["precision"] in PACKED and not any(word in row["model"] for word in OWN):
        model["weights"] = {"precision": PACKED[row["precision"]]}
    hardware: dict[str, Any] = {"count": row["tensor_parallel"]}
    if row["accelerator"]:
        hardware["accelerator"] = row["accelerator"]
    workload = _workload(point)
    if row["speculative"]:
        workload["acceptance_rate"] = 0.8
    return json.dumps({
        "apiVersion": "capcheck/v1", "kind": "Deployment", "name": row["id"], "model": model,
        "hardware": hardware, "engine": _engine(row), "replicas": row["replicas"],
        "workload": workload,
    })  # fmt: skip
