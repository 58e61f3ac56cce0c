"""Serving measurements as inputs of the load model: what their columns leave out is assumed here.

* Shapes whose lengths were drawn from a range have a mean of 0.9 x nominal, and ten prompts for
  each request in flight.
* The KV cache is fp8 on Blackwell and under TensorRT-LLM, 16 bit elsewhere; experts of
  gpt-oss are mxfp4 whatever the column says; nvfp4 checkpoints keep attention in 16 bit when
  they are mixtures of experts.
* SGLang polled for requests every 10 steps, every 30 on Blackwell from 16 requests on, where the
  lengths were drawn from a range; every step elsewhere.
* Memory fraction, most sequences and prefill budget are the engines' usual ones.
"""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from capcheck.architecture import Architecture, Tensor
from capcheck.catalogue import Catalogue
from capcheck.hardware import Accelerator
from capcheck.physics.load import Burst, LoadState, closed_loop
from capcheck.physics.server import Limits, Server, Traffic
from capcheck.physics.work import Layout, Machine, Storage, Work, work_of
from capcheck.terms import TermBook, Terms
from capcheck.testing import plugins
from capcheck_serving import capcheck_terms
from capcheck_serving.constants import Packing, compute_of, load_constants, step_constants

RANGED_SHARE = 0.9  # mean of the drawn lengths over the nominal one
PROMPTS_A_REQUEST = 10.0
STEP_TOKENS = 8192.0
WORKSPACE = 1e9  # bytes
FRACTIONS = {"tensorrt-llm": 0.92, "vllm": 0.93, "sglang": 0.86}
MOST_SEQUENCES = {"tensorrt-llm": 2048.0, "vllm": 1024.0, "sglang": 1024.0}
WEIGHT_BYTES = {"bf16": 2.0, "fp8": 1.0, "nvfp4": 0.5625, "mxfp4": 0.53125}  # scales included
ACTIVATIONS = {"bf16": "", "fp8": "fp8", "nvfp4": "nvfp4", "mxfp4": ""}
UNPACKED = ("embedding", "head", "router", "norm")
BASES = {
    "nvidia/DeepSeek-R1-NVFP4": "deepseek-ai/DeepSeek-R1",
    "nvidia/DeepSeek-V3.1-NVFP4": "deepseek-ai/DeepSeek-V3",
    "nvidia/Llama-3.1-8B-Instruct-FP8": "meta-llama/Llama-3.1-8B",
    "nvidia/Qwen3-32B-NVFP4": "Qwen/Qwen3-32B",
}


class Row(NamedTuple):
    """One measurement. Tokens, seconds."""

    id: str
    model: str
    accelerator: str
    engine: str
    version: str
    precision: str
    layout: Layout
    concurrency: float
    prompt: float
    output: float
    fixed: bool
    suspect: str
    ttft: float
    tpot: float


def rows(path: Path) -> Iterator[Row]:
    """The measurements of a CSV file, disaggregated totals left out."""
    with path.open(encoding="utf-8", newline="") as file:
        for record in csv.DictReader(file):
            if record["suspect"] != "disaggregated":
                yield _row(record)


def _row(record: Mapping[str, str]) -> Row:
    fixed = record["lengths"] == "fixed"
    share = 1.0 if fixed else RANGED_SHARE
    layout = Layout(
        int(record["tensor_parallel"]),
        int(record["attention_data_parallel"]),
        int(record["expert_parallel"]),
    )
    return Row(
        record["id"],
        record["model"],
        record["accelerator"],
        record["engine"],
        record["engine_version"],
        "mxfp4" if "gpt-oss" in record["model"] else record["precision"],
        layout,
        max(1.0, float(record["concurrency"] or 1)),
        float(record["isl"]) * share,
        max(1.0, float(record["osl"]) * share),
        fixed,
        record["suspect"],
        float(record["ttft_ms"]) / 1e3,
        float(record["tpot_ms"]) / 1e3,
    )


def _packed(precision: str, architecture: Architecture, tensor: Tensor) -> str:
    """The precision that one tensor is stored in."""
    if not tensor.linear or not tensor.into or tensor.role in UNPACKED:
        return "bf16"
    if precision == "mxfp4" and tensor.role != "expert":
        return "bf16"
    if precision == "nvfp4" and tensor.role == "attention" and architecture.experts:
        return "bf16"
    return precision


def _version(text: str) -> tuple[int, ...] | None:
    digits = []
    for part in text.split("."):
        number = part.partition("rc")[0]
        if not number.isdigit():
            break
        digits.append(int(number))
    return tuple(digits) or None


class Replay:
    """Predicts measurements with the catalogue's models and parts and the shipped terms."""

    def __init__(self, terms: Path | None = None) -> None:
        """`terms` are read after the load model's shipped constants, and win."""
        loaded = plugins(("capcheck_models", "capcheck_nvidia"))
        self.catalogue = Catalogue(loaded.shelves())
        self.models = loaded.models()
        more = (terms,) if terms is not None else ()
        self.book = TermBook([(file, "capcheck_serving") for file in (*capcheck_terms(), *more)])
        self._architectures: dict[str, Architecture] = {}
        self._parts: dict[str, Accelerator] = {}
        self._works: dict[tuple[object, ...], Work] = {}

    def architecture(self, model: str) -> Architecture:
        """The catalogue's architecture. Raises KeyError when no source knows the model."""
        if model not in self._architectures:
            named = BASES.get(model, model)
            found = (source.find(named, self.catalogue) for source in self.models)
            match = next((one for one in found if one is not None), None)
            if match is None:
                raise KeyError(model)
            self._architectures[model] = match.architecture
        return self._architectures[model]

    def accelerator(self, identity: str) -> Accelerator:
        """The catalogue's part. Raises KeyError."""
        if identity not in self._parts:
            self._parts[identity] = self.catalogue.accelerator(identity)
        return self._parts[identity]

    def work(self, row: Row) -> Work:
        """What one rank reads and computes."""
        key = (row.model, row.accelerator, row.engine, row.precision, row.layout)
        if key not in self._works:
            self._works[key] = self._work(row)
        return self._works[key]

    def _work(self, row: Row) -> Work:
        architecture, accelerator = self.architecture(row.model), self.accelerator(row.accelerator)

        def stored(tensor: Tensor) -> float:
            return tensor.elements * WEIGHT_BYTES[_packed(row.precision, architecture, tensor)]

        def peak(tensor: Tensor) -> float:
            packed = _packed(row.precision, architecture, tensor)
            return compute_of(packed, ACTIVATIONS[packed], accelerator.flops)[1]

        small = row.engine == "tensorrt-llm" or accelerator.architecture == "blackwell"
        storage = Storage(stored, peak, 1.0 if small else 2.0, state_bytes=2.0)
        link = accelerator.link.bytes_per_second or 0.0
        machine = Machine(accelerator.bandwidth, accelerator.flops["bf16"], link)
        return work_of(architecture, storage, row.layout, machine)

    def limits(self, row: Row, work: Work) -> Limits:
        """Requests that the rest of the memory holds, and the engine's own limit."""
        held = row.prompt + row.output * self.terms(row).read("serving.reserved_output")
        memory = self.accelerator(row.accelerator).visible_bytes or 0.0
        embedding = work.head.bytes  # as large as the head
        free = memory * FRACTIONS[row.engine] - work.weight_bytes - embedding - WORKSPACE
        request = work.cache_bytes(held) - work.state_bytes / 2.0
        return Limits(
            cache_requests=max(free, 0.0) / request,
            max_sequences=MOST_SEQUENCES[row.engine],
            step_tokens=math.inf,
            chunk_tokens=STEP_TOKENS,
        )

    def terms(self, row: Row) -> Terms:
        """The constants for a measurement's facts."""
        accelerator = self.accelerator(row.accelerator)
        architecture = self.architecture(row.model)
        return Terms(
            self.book,
            {
                "engine": row.engine,
                "release": _version(row.version),
                "vendor": accelerator.vendor,
                "memory_class": accelerator.memory_class,
                "architecture": accelerator.architecture,
                "link": accelerator.link.kind,
                "family": architecture.family,
                "moe": architecture.experts > 0,
            },
        )

    def band(self, row: Row, name: str) -> tuple[float, float]:
        """The ends of a term for a measurement's facts."""
        terms = self.terms(row)
        terms.read(name)
        term = terms.reads[name]
        return term.low, term.high

    def server(self, row: Row) -> Server:
        """The replica that was measured."""
        work = self.work(row)
        read = self.terms(row).read
        flops = self.accelerator(row.accelerator).flops
        dense = "bf16" if row.precision == "mxfp4" else row.precision
        packings = [
            Packing(8.0 * WEIGHT_BYTES[name], compute_of(name, ACTIVATIONS[name], flops)[0])
            for name in (dense, row.precision)
        ]
        every = 1.0
        if row.engine == "sglang" and not row.fixed:
            blackwell = self.accelerator(row.accelerator).architecture == "blackwell"
            every = 30.0 if blackwell and row.concurrency >= 16 else 10.0
        return Server(
            work,
            step_constants(read, *packings),
            load_constants(read, "fixed" if row.fixed else "varied", "burst"),
            self.limits(row, work),
            poll_steps=every,
        )

    def predict(self, row: Row) -> LoadState:
        """The state of the replica under the measurement's load."""
        context = row.prompt + row.output / 2.0
        traffic = Traffic(row.prompt, row.output, context, row.prompt)
        burst = Burst(PROMPTS_A_REQUEST * row.concurrency)
        return closed_loop(self.server(row), traffic, row.concurrency, burst)
