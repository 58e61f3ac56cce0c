"""How far predictions are from published benchmark figures, by class."""

from __future__ import annotations

import statistics
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from math import exp, log
from typing import NamedTuple

from bench_cases import Measure, Point, case_of, class_of, predicted

from capcheck.quantity import Band
from capcheck.testing import Bench
from capcheck.values import Unknown

NEAR = 0.2
TABLES: dict[str, tuple[Measure, tuple[str, ...]]] = {
    "decode": ("tpot", ("decode", "served")),
    "batch-1 decode": ("tpot", ("decode", "served")),
    "prefill": ("ttft", ("prefill", "decode")),
    "TTFT under load": ("ttft", ("served",)),
    "throughput of a batch": ("throughput", ("batch",)),
    "throughput at full load": ("throughput", ("full",)),
}


class Scored(NamedTuple):
    """One figure: measured, and the band that was predicted."""

    point: Point
    measure: Measure
    truth: float
    band: Band
    group: str  # the class

    @property
    def error(self) -> float:
        """Relative error of the middle, signed."""
        return self.band.mid / self.truth - 1.0

    @property
    def covered(self) -> bool:
        """Whether the figure lies in the band."""
        return self.band.low <= self.truth <= self.band.high


class Summary(NamedTuple):
    """Errors of several figures. Shares; the width is high / low of the band, at the median."""

    cases: int
    median: float
    ninety: float
    near: float  # share within 20 %
    bias: float
    coverage: float
    width: float


def summary(scores: Sequence[Scored]) -> Summary:
    """Raises StatisticsError for none."""
    sizes = sorted(abs(one.error) for one in scores)
    count = len(sizes)
    return Summary(
        count,
        statistics.median(sizes),
        sizes[min(count - 1, int(0.9 * count))],
        sum(size <= NEAR for size in sizes) / count,
        statistics.median(one.error for one in scores),
        sum(one.covered for one in scores) / count,
        exp(statistics.median(log(one.band.high / one.band.low) for one in scores)),
    )


def scored(
    chosen: Iterable[Point], bench: Bench | None = None
) -> tuple[list[Scored], Counter[str]]:
    """All figures of the points, and why others could not be predicted."""
    bench = bench or Bench()
    found: list[Scored] = []
    missing: Counter[str] = Counter()
    for point in chosen:
        case = case_of(bench, point)
        part = case.accelerator.either(None)
        group = class_of(point, part.memory_class if part else "")
        for measure, truth in point.measured():
            try:
                found.append(Scored(point, measure, truth, predicted(case, point, measure), group))
            except Unknown as why:
                missing[f"{point.model}: {why}"] += 1
    return found, missing


def table(name: str, scores: Iterable[Scored]) -> list[Scored]:
    """The figures that one table is about."""
    measure, kinds = TABLES[name]
    chosen = [one for one in scores if one.measure == measure and one.point.kind in kinds]
    if name.startswith("batch-1"):
        chosen = [one for one in chosen if one.point.requests <= 1]
    return chosen


def lines(
    scores: Sequence[Scored], key: Callable[[Scored], str] = lambda one: one.group
) -> Iterator[tuple[str, Summary]]:
    """All together, then each group by name."""
    if not scores:
        return
    yield "all", summary(scores)
    groups: dict[str, list[Scored]] = defaultdict(list)
    for one in scores:
        groups[key(one)].append(one)
    for name in sorted(groups):
        yield name, summary(groups[name])


def show(scores: Sequence[Scored], markdown: bool) -> Iterator[str]:
    """Every table in text."""
    head = ("class", "n", "median", "90 %", "in 20 %", "bias", "in band", "width")
    for name in TABLES:
        chosen = table(name, scores)
        if not chosen:
            continue
        yield f"\n{'### ' if markdown else ''}{name[0].upper()}{name[1:]}\n"
        rows = [head, *(_cells(title, one) for title, one in lines(chosen))]
        widths = [max(len(row[at]) for row in rows) for at in range(len(head))]
        for number, row in enumerate(rows):
            cells = [
                cell.rjust(width) if at else cell.ljust(width)
                for at, (cell, width) in enumerate(zip(row, widths, strict=True))
            ]
            yield f"| {' | '.join(cells)} |" if markdown else "  ".join(cells)
            if markdown and not number:
                yield f"| --- |{' ---: |' * (len(head) - 1)}"


def _cells(title: str, one: Summary) -> tuple[str, ...]:
    return (
        title, str(one.cases), f"{one.median:.1%}", f"{one.ninety:.1%}", f"{one.near:.0%}",
        f"{one.bias:+.1%}", f"{one.coverage:.0%}", f"{one.width:.2f}x",
    )  # fmt: skip


def line_of(one: Scored) -> str:
    """One figure in a line."""
    point = one.point
    return (
        f"{point.id} {one.group:15} {point.stack:20} {point.accelerator:30} {point.model:42} "
        f"{point.precision:9} {point.devices:3} {one.measure:10} {point.prompt:7.0f} "
        f"{point.output:5.0f} {one.truth:10.4g} {one.band.mid:10.4g} {one.error:+7.1%}"
        f"{'' if one.covered else ' !'}"
    )
