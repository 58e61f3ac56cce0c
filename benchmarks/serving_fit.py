"""Serving measurements and throughput at full load, as the fit of calibrate_serving takes them."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from math import exp, log, sqrt
from pathlib import Path
from typing import Any, Literal, NamedTuple

from bench_cases import case_of, points, replica_of
from least_squares import STEP, Key, Prior, Row, key_of, stepped
from serving_cases import Row as Measurement
from serving_cases import spec_of

from capcheck.case import Case
from capcheck.physics.load import Burst, closed_loop
from capcheck.physics.server import Server, Traffic
from capcheck.terms import Terms
from capcheck.testing import Bench
from capcheck.values import Unknown
from capcheck_serving import serving
from capcheck_serving.constants import LengthsWord, StartWord, load_constants, step_constants
from capcheck_serving.works import packings

Measure = Literal["tpot", "ttft", "throughput"]
Pair = tuple[float, float]  # what is predicted of one sample: two latencies, or a rate twice
SCALES: Mapping[Measure, float] = {"tpot": 0.15, "ttft": 0.30, "throughput": 0.20}
WEIGHTS: Mapping[Measure, float] = {"tpot": 1.0, "ttft": 0.5, "throughput": 1.5}
SERVED = ("hopper", "blackwell")
SERVERS = ("vllm", "sglang", "tensorrt-llm")
FULL = 1e5  # requests in flight: as many as a server takes


class Sample(NamedTuple):
    """One measurement, ready to be predicted again with other constants."""

    row: Measurement | None  # None: a throughput at full load
    truths: tuple[tuple[Measure, float], ...]
    server: Server
    traffic: Traffic
    requests: float
    burst: Burst | None
    packings: tuple[Any, Any, float]
    words: tuple[LengthsWord, StartWord]
    terms: Terms
    labels: Mapping[Key, tuple[str, ...]]  # of the constants that are fitted and read here
    saturated: bool
    moe: bool


def _labels(terms: Terms, keys: Iterable[Key]) -> dict[Key, tuple[str, ...]]:
    wanted, found = frozenset(keys), dict[Key, list[str]]()
    for label, term in terms.reads.items():
        key = key_of(term.name, term.when)
        if key in wanted:
            found.setdefault(key, []).append(label)
    return {key: tuple(ones) for key, ones in found.items()}


def _sample(
    case: Case, replica: tuple[Server, Traffic], row: Measurement | None, wanted: Sequence[Prior]
) -> Sample:
    terms = case.terms()
    one = serving.declared(case, terms)
    words: tuple[LengthsWord, StartWord] = (
        "fixed" if one.fixed else "varied", "burst" if serving.is_burst(case) else "steady",
    )  # fmt: skip
    stored = packings(case)
    step_constants(terms.read, *stored)
    load_constants(terms.read, *words)
    requests = FULL if row is None else float(row.concurrency)
    burst = None if row is None else serving.burst(case)
    state = closed_loop(*replica, requests, burst)
    return Sample(
        row, () if row is None else (("tpot", row.tpot), ("ttft", row.ttft)), *replica, requests,
        burst, stored, words, terms, _labels(terms, (one.key for one in wanted)),
        state.saturated, replica[0].work.moe_layers > 0,
    )  # fmt: skip


def served(chosen: Iterable[Measurement], wanted: Sequence[Prior], bench: Bench) -> list[Sample]:
    """Serving measurements: of a release that is not told, the first that it may be."""
    found = []
    for row in chosen:
        case = bench.cases(spec_of(row), row.id)[0]
        terms = case.terms()
        one = serving.declared(case, terms)
        replica = serving.server(case, terms, one), serving.traffic(case, one)
        found.append(_sample(case, replica, row, wanted))
    return found


def full(path: Path, wanted: Sequence[Prior], bench: Bench) -> list[Sample]:
    """Throughput at full load on the parts that serving measurements cover."""
    found = []
    for point in points(path):
        if point.suspect or point.kind != "full" or point.throughput is None:
            continue
        case = case_of(bench, point)
        part = case.accelerator.get("accelerator")
        if part.architecture not in SERVED or part.memory_class != "hbm":
            continue
        try:
            made = _sample(case, replica_of(case, point), None, wanted)
        except Unknown:
            continue
        if point.stack in SERVERS:
            found.append(made._replace(truths=(("throughput", point.throughput),)))
    return found


def predict(sample: Sample, values: Mapping[Key, float]) -> Pair:
    """Both latencies, or the rate of output tokens, with other constants."""
    moved = {label: values[key] for key, labels in sample.labels.items() for label in labels}
    terms = sample.terms.moved(moved)
    step = step_constants(terms.read, *sample.packings)
    load = load_constants(terms.read, *sample.words)
    if sample.row is None:
        offline = terms.read("serving.offline_requests")
        step = step._replace(request_seconds=step.request_seconds * offline)
        load = load._replace(front_end_seconds=0.0)
    server = sample.server._replace(step=step, load=load)
    state = closed_loop(server, sample.traffic, sample.requests, sample.burst)
    if sample.row is None:
        rate = state.most_requests_per_second * sample.traffic.output_tokens
        return rate, rate
    return state.tpot_seconds, state.ttft_mean_seconds


def errors(sample: Sample, predicted: Pair) -> Iterator[float]:
    """ln(predicted / measured) of each figure."""
    for (_, truth), value in zip(sample.truths, predicted, strict=False):
        yield log(value / truth)


def linear(
    found: Sequence[Sample], values: Mapping[Key, float], index: Mapping[Key, int]
) -> list[list[Row]]:
    """Errors and slopes of all figures, sample by sample."""
    made = []
    for one in found:
        here = list(errors(one, predict(one, values)))
        slopes: list[dict[int, float]] = [{} for _ in here]
        for key in one.labels:
            below = errors(one, predict(one, {**values, key: values[key] * exp(-STEP)}))
            for at, (value, other) in enumerate(zip(here, below, strict=True)):
                slopes[at][index[key]] = (value - other) / STEP
        made.append([
            Row(value, slope, _weight(measure, value))
            for (measure, _), value, slope in zip(one.truths, here, slopes, strict=True)
        ])  # fmt: skip
    return made


def _weight(measure: Measure, value: float) -> float:
    scale = SCALES[measure]
    return WEIGHTS[measure] / (scale**2 * sqrt(1.0 + (value / scale) ** 2))


class Unseen(NamedTuple):
    """A measurement that was predicted by a fit without its group. Seconds."""

    sample: Sample
    tpot: float
    ttft: float


def left_out(
    found: Sequence[Sample],
    models: Sequence[Sequence[Row]],
    wanted: Sequence[Prior],
    values: Mapping[Key, float],
    group: Callable[[Measurement], Hashable],
) -> list[Unseen]:
    """Each group left out in turn: one step from the whole fit, without it."""
    names = [None if one.row is None else group(one.row) for one in found]
    unseen = []
    for name in sorted({name for name in names if name is not None}, key=str):
        kept = [row for model, own in zip(models, names, strict=True) if own != name
                for row in model]  # fmt: skip
        moved = stepped(kept, wanted, values)
        unseen += [
            Unseen(one, *predict(one, moved))
            for one, own in zip(found, names, strict=True)
            if own == name
        ]
    return unseen
