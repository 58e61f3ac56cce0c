"""Every model of the catalogue in many layouts: nothing may crash, be negative or not finite.

    python benchmarks/sweep.py [--only TEXT] [--each N]

Each model is checked in every combination of tensor, pipeline and expert parallelism, releases of
vLLM and accelerators; with --each in N of them, the same ones in every run. Prints how many were
checked, what could not be estimated and why, and every fault.
"""

from __future__ import annotations

import argparse
import json
import math
import zlib
from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any, NamedTuple

from capcheck.quantity import Band
from capcheck.testing import Bench
from capcheck.values import Unknown

TENSORS, PIPELINES, EXPERT = (1, 2, 4, 8), (1, 2), (False, True)
RELEASES = ("0.8.5", "0.11.0", "0.20.0", "0.33.0")
ACCELERATORS = (
    "nvidia/h100-sxm5-80gb", "nvidia/a100-sxm4-80gb", "nvidia/b200-180gb", "nvidia/rtx-4090",
    "nvidia/t4", "amd/mi300x-192gb",
)  # fmt: skip
NAMES = ("weights_bytes", "kv_bytes_per_token", "activation_bytes")
LEFT = ("kv_cache_bytes", "max_concurrency")  # of what is left: its low end may be below zero


class Point(NamedTuple):
    """One layout on one accelerator with one release."""

    tensor: int
    pipeline: int
    expert: bool
    release: str
    accelerator: str


GRID = tuple(Point(*one) for one in product(TENSORS, PIPELINES, EXPERT, RELEASES, ACCELERATORS))


def chosen(model: str, each: int) -> Iterator[Point]:
    """The layouts to try for a model: `each` of them (0: all), spread by its name."""
    if not each:
        yield from GRID
        return
    start, step = zlib.crc32(model.encode()), len(GRID) // each
    for number in range(each):
        yield GRID[(start + number * (step | 1)) % len(GRID)]


def spec(model: str, point: Point) -> str:
    """The deployment of one point, as a spec's text."""
    args: dict[str, Any] = {
        "tensor_parallel_size": point.tensor,
        "pipeline_parallel_size": point.pipeline,
        "max_model_len": 4096,
    }
    if point.expert:
        args["enable_expert_parallel"] = True
    return json.dumps(
        {
            "apiVersion": "capcheck/v1",
            "kind": "Deployment",
            "name": "sweep",
            "model": {"id": model},
            "hardware": {"accelerator": point.accelerator, "count": point.tensor * point.pipeline},
            "engine": {"name": "vllm", "version": point.release, "args": args},
        }
    )


def bands(case: Any) -> Iterator[tuple[str, Band | Unknown]]:
    """Each estimate of a case, or why there is none."""
    for name in (*NAMES, *LEFT):
        try:
            yield name, case.estimate(name)
        except Unknown as lost:
            yield name, lost


def faults(case: Any) -> list[str]:
    """Estimates that no machine could have, and lines of the ledger below zero."""
    found = []
    for name, band in bands(case):
        if isinstance(band, Unknown):
            continue
        figures = (band.low, band.mid, band.high)
        least = band.low if name not in LEFT else 0.0
        if not all(math.isfinite(one) for one in figures) or least < 0:
            found.append(f"{name} is {figures}")
        elif not band.low <= band.mid <= band.high:
            found.append(f"{name} is out of order: {figures}")
    try:
        ledger = case.ledger(case.terms())
    except Unknown:
        return found
    return found + [f"{line.name} is {line.bytes}" for line in ledger.lines if not line.bytes >= 0]


class Sweep:
    """Runs points and counts what they come to."""

    def __init__(self) -> None:
        self.bench = Bench()
        self.counted: Counter[str] = Counter()
        self.unknown: Counter[str] = Counter()
        self.faults: list[str] = []

    def add(self, model: str, point: Point) -> None:
        """Checks one deployment with every rule."""
        self.counted["deployments"] += 1
        label = f"{model} {point}"
        try:
            outcome = self.bench.outcomes(spec(model, point))[0]
            problems = [one for ones in outcome.judged.values() for one in ones]
            self.counted["answers"] += len(problems)
            case = outcome.resolved.cases[0]
            for name, band in bands(case):
                if isinstance(band, Unknown):
                    self.unknown[f"{name}: {band.why}"[:90]] += 1
                else:
                    self.counted[name] += 1
            self.faults += [f"{label}: {one}" for one in faults(case)]
        except Exception as wrong:  # a crash is what is looked for
            self.faults.append(f"{label}: {wrong!r}")

    def show(self) -> None:
        """Prints the counts and the faults."""
        print(dict(self.counted))
        for why, count in self.unknown.most_common(20):
            print(f"{count:6} without {why}")
        print(*self.faults, sep="\n", end="\n" if self.faults else "")
        print(f"{len(self.faults)} faults")


def models(bench: Bench) -> tuple[str, ...]:
    """Every id of the catalogue."""
    return tuple(bench.session.catalogue.ids("model"))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="models whose id holds this text")
    parser.add_argument("--each", type=int, default=0, help="layouts for each model; 0: all")
    arguments = parser.parse_args()
    sweep = Sweep()
    for model in models(sweep.bench):
        if arguments.only.lower() in model.lower():
            for point in chosen(model, arguments.each):
                sweep.add(model, point)
    sweep.show()
    raise SystemExit(1 if sweep.faults else 0)


if __name__ == "__main__":
    main()
