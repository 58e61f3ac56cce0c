"""Published benchmark figures as the fit of calibrate_bench takes them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from math import exp, log, sqrt
from typing import Any, NamedTuple

from bench_cases import Measure, Point, case_of, class_of, replica_of
from least_squares import STEP, Key, Prior, Row, key_of, stepped

from capcheck.physics.load import closed_loop
from capcheck.physics.server import Server, Traffic
from capcheck.terms import Terms
from capcheck.testing import Bench
from capcheck.values import Unknown
from capcheck_serving.constants import step_constants
from capcheck_serving.works import packings

ROUNDS = 12
SCALES: dict[Measure, float] = {"tpot": 0.10, "ttft": 0.25, "throughput": 0.25}
SERVED = ("hopper", "blackwell")  # their HBM parts under
SERVERS = ("vllm", "sglang", "tensorrt-llm")  # are fitted on serving measurements


class Sample(NamedTuple):
    """One figure, ready to be predicted again with other constants."""

    point: Point
    measure: Measure
    truth: float
    group: str
    server: Server
    traffic: Traffic
    packings: tuple[Any, ...]  # what `step_constants` takes behind the reader
    terms: Terms
    labels: Mapping[Key, tuple[str, ...]]  # of the constants that are fitted and read here


def samples(chosen: Iterable[Point], wanted: Sequence[Prior], bench: Bench) -> list[Sample]:
    """All figures that read one of the wanted constants."""
    keys = {one.key for one in wanted}
    found = []
    for point in chosen:
        case = case_of(bench, point)
        terms = case.terms()
        try:
            server, traffic = replica_of(case, point)
            step_constants(terms.read, *packings(case))
        except Unknown:
            continue
        part = case.accelerator.get("accelerator")
        if part.architecture in SERVED and part.memory_class == "hbm" and point.stack in SERVERS:
            continue
        labels: dict[Key, list[str]] = {}
        for label, term in terms.reads.items():
            key = key_of(term.name, term.when)
            if key in keys:
                labels.setdefault(key, []).append(label)
        stored = packings(case)
        group = class_of(point, part.memory_class)
        fixed = {key: tuple(ones) for key, ones in labels.items()}
        for measure, truth in point.measured():
            if fixed and not (point.kind == "served" and measure == "ttft"):
                found.append(
                    Sample(point, measure, truth, group, server, traffic, stored, terms, fixed)
                )
    return found


def predict(sample: Sample, values: Mapping[Key, float]) -> float:
    """The figure with other constants."""
    moved = {label: values[key] for key, labels in sample.labels.items() for label in labels}
    step = step_constants(sample.terms.moved(moved).read, *sample.packings)
    state = closed_loop(
        sample.server._replace(step=step), sample.traffic, max(1.0, sample.point.requests)
    )
    if sample.measure == "tpot":
        return state.tpot_seconds
    if sample.measure == "ttft":
        return state.prefill_seconds
    if sample.point.kind == "full":
        return state.most_requests_per_second * sample.point.output
    return state.output_tokens_per_second


def error(sample: Sample, values: Mapping[Key, float]) -> float:
    """ln(predicted / measured)."""
    return log(predict(sample, values) / sample.truth)


def rows(
    found: Sequence[Sample], values: Mapping[Key, float], index: Mapping[Key, int]
) -> list[Row]:
    """Errors and slopes of all figures."""
    made = []
    for one in found:
        here = error(one, values)
        slopes = {}
        for key in one.labels:
            value = values[key] * exp(-STEP)
            slopes[index[key]] = (here - error(one, {**values, key: value})) / STEP
        scale = SCALES[one.measure] * (1.0 if one.point.requests <= 1 else 1.5)
        weight = 1.0 / (scale**2 * sqrt(1.0 + (here / scale) ** 2))
        made.append(Row(here, slopes, weight))
    return made


class LeftOut(NamedTuple):
    """A figure predicted by a fit that did not see its group, and that fit's constants."""

    sample: Sample
    error: float


def left_out(
    found: Sequence[Sample], wanted: Sequence[Prior], values: Mapping[Key, float], fact: str
) -> tuple[list[LeftOut], list[dict[Key, float]]]:
    """Each group by `fact` (accelerator, model, source) left out: one step from the whole fit."""
    index = {one.key: at for at, one in enumerate(wanted)}
    made = rows(found, values, index)
    errors, fits = [], []
    for group in sorted({getattr(one.point, fact) for one in found}):
        out = [getattr(one.point, fact) == group for one in found]
        kept = [row for row, gone in zip(made, out, strict=True) if not gone]
        moved = stepped(kept, wanted, values)
        fits.append(moved)
        for one, gone in zip(found, out, strict=True):
            if gone:
                errors.append(LeftOut(one, error(one, moved)))
    return errors, fits


def cases_of(found: Sequence[Sample]) -> Counter[Key]:
    """How many figures each constant is fitted on."""
    return Counter(key for one in found for key in one.labels)
