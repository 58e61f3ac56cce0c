"""Published benchmark figures as deployments: batch-1 decoding, lone prompts, throughput.

Each point becomes a spec of its own, with the engine where a plugin knows it and without one
elsewhere (gpt-fast, exllamav2, MLC, lmdeploy, vendors' own stacks), so that what is scored is
what a user without a named engine is told.

Kinds of points, and what is predicted for them:

* decode: tokens decoded by a fixed batch. Prompts, if any, came before: they count as cached.
* prefill: one prompt on an idle device, after a cached prefix where the source has a depth.
* served: a load test with a number of requests in flight.
* batch: requests sent at once, output tokens over the whole time, prompts included.
* full: as many requests at once as memory holds.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal, NamedTuple

from capcheck.case import Case
from capcheck.physics.load import closed_loop
from capcheck.physics.server import Server, Traffic
from capcheck.quantity import Band
from capcheck.testing import Bench
from capcheck_serving import serving

Kind = Literal["decode", "prefill", "served", "batch", "full"]
Measure = Literal["tpot", "ttft", "throughput"]

ENGINES = ("llama.cpp", "vllm", "tensorrt-llm", "sglang")
SPARE_TOKENS = 8  # of the context beyond the request itself
MOST_SEQUENCES = 256  # the engines' usual limit, where a point does not exceed it


class Point(NamedTuple):
    """One published figure. Tokens, seconds, output tokens a second of the replica."""

    id: str
    kind: Kind
    model: str
    precision: str
    kv: str  # "": the engine's default
    accelerator: str
    devices: int
    tensor: int
    pipeline: int
    expert: int
    stack: str  # what ran it
    version: str
    requests: float  # in flight or in the batch; 0: as many as fit
    prompt: float
    output: float
    cached: float  # share of the prompt
    tpot: float | None
    ttft: float | None
    throughput: float | None
    suspect: str  # why it is left out of fits and of the clean scores
    link: str  # pcie: the source says that the fast link was not used
    source: str
    dated: str
    note: str

    def measured(self) -> Iterator[tuple[Measure, float]]:
        """What the source gives."""
        found: tuple[tuple[Measure, float | None], ...] = (
            ("tpot", self.tpot), ("ttft", self.ttft), ("throughput", self.throughput),
        )  # fmt: skip
        for name, value in found:
            if value is not None:
                yield name, value


_DEFAULTS: dict[str, Any] = {
    "kv": "", "expert": 1, "version": "", "cached": 0.0, "tpot": None, "ttft": None,
    "throughput": None, "suspect": "", "link": "", "dated": "", "note": "",
}  # fmt: skip


def points(path: Path) -> list[Point]:
    """The points of a file of JSON lines."""
    with path.open(encoding="utf-8") as lines:
        records = [{**_DEFAULTS, **json.loads(line)} for line in lines if line.strip()]
    return [Point(*(record[name] for name in Point._fields)) for record in records]


def class_of(point: Point, memory_class: str) -> str:
    """The class that a point is scored in: memory, vendor, and what ran it."""
    vendor = point.accelerator.partition("/")[0]
    if vendor in ("apple", "aws", "google"):
        return {"apple": "Apple", "aws": "Neuron", "google": "TPU"}[vendor]
    if vendor == "intel":
        return "Gaudi"
    if vendor == "amd":
        return "AMD Instinct" if memory_class == "hbm" else "AMD Radeon"
    if memory_class == "unified":
        return "GB10"
    if memory_class == "gddr":
        return "GDDR, llama.cpp" if point.stack == "llama.cpp" else "GDDR, others"
    if point.link == "pcie":
        return "HBM over PCIe"
    if point.stack in ("llama.cpp", "gpt-fast", "lmdeploy"):
        return f"HBM, {point.stack}"
    return "HBM, serving"


def _arguments(point: Point) -> dict[str, Any]:
    tokens = int(point.prompt + point.output) + SPARE_TOKENS
    batch = max(1, int(point.requests))
    if point.stack == "llama.cpp":
        return {"n-gpu-layers": 999, "ctx-size": tokens * batch, "parallel": batch}
    made: dict[str, Any] = {"tensor_parallel_size": point.tensor}
    if point.pipeline > 1:
        made["pipeline_parallel_size"] = point.pipeline
    if point.stack == "tensorrt-llm":
        made |= {"max_seq_len": tokens}
        if point.version.startswith("0."):
            made["backend"] = "tensorrt"
        if point.kv == "fp8":
            made["kv_cache_config"] = {"dtype": "fp8"}
        return made
    if point.stack == "sglang":
        return {**made, "context_length": tokens}
    made["max_model_len"] = tokens
    if point.stack == "vllm":
        if point.requests > MOST_SEQUENCES:
            made["max_num_seqs"] = batch
        if point.expert > 1:
            made["enable_expert_parallel"] = True
    if point.kv == "fp8":
        made["kv_cache_dtype"] = "fp8"
    return made


def spec_of(point: Point) -> str:
    """The point as a document of the spec (JSON is YAML)."""
    engine: dict[str, Any] = {"args": _arguments(point)}
    if point.stack in ENGINES:
        engine["name"] = point.stack
        if point.version:
            engine["version"] = point.version
    workload: dict[str, Any] = {
        "prompt_tokens": point.prompt,
        "output_tokens": point.output,
        "concurrency": max(1, point.requests),
    }
    cached = 1.0 if point.kind == "decode" and point.requests > 1 else point.cached
    if cached:
        workload["prefix_hit_rate"] = cached
    document = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": point.id,
        "model": {"id": point.model, "weights": {"precision": point.precision}},
        "hardware": {"accelerator": point.accelerator, "count": point.devices},
        "engine": engine,
        "workload": workload,
    }
    return json.dumps(document)


def case_of(bench: Bench, point: Point) -> Case:
    """The point as capcheck resolves it; of several releases the first."""
    return bench.cases(spec_of(point), f"{point.id}.yaml")[0]


def replica_of(case: Case, point: Point) -> tuple[Server, Traffic]:
    """The load model's inputs. Offline runs, at full load, have no front end. Raises Unknown."""
    terms = case.terms()
    one = serving.declared(case, terms)
    made = serving.server(case, terms, one)
    if point.kind == "full":
        made = made._replace(load=made.load._replace(front_end_seconds=0.0))
    return made, serving.traffic(case, one)


def predicted(case: Case, point: Point, measure: Measure) -> Band:
    """The estimate that a measured figure is held against. Raises Unknown."""
    if measure == "throughput":
        if point.kind != "full":
            return case.estimate("output_tokens_per_second_replica")
        band = case.estimate("requests_per_second_replica")
        most = closed_loop(*replica_of(case, point), 1.0).most_requests_per_second
        return Band(*(most * point.output * side / band.mid for side in band))
    if measure == "tpot":
        return case.estimate("tpot_seconds_mean")
    return case.estimate("ttft_seconds_mean" if point.kind == "served" else "prefill_seconds")
