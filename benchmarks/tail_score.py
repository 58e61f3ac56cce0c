"""How predicted medians and percentiles compare with measured ones, by class."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from tables import print_table
from tail_cases import Point, points, spec_of

from capcheck import Case, Unknown
from capcheck.quantity import Band
from capcheck.testing import Bench

FIGURES = ("tpot_p50", "tpot_p99", "ttft_p50", "ttft_p99")
ALSO = ("tpot_p90", "tpot_p95", "ttft_p90", "ttft_p95")


class Scored(NamedTuple):
    """One measurement and what was predicted."""

    point: Point
    bands: dict[str, Band]  # by figure
    saturation: Band | None
    reason: str  # why nothing is predicted

    def log(self, figure: str) -> float | None:
        """ln(predicted / measured)."""
        measured, band = self.point.measured(figure), self.bands.get(figure)
        return math.log(band.mid / measured) if measured and band and band.mid > 0 else None


class Line(NamedTuple):
    """One figure in one class."""

    name: str
    figure: str
    cases: int
    median: float  # relative error
    twenty: float  # share within 20 %
    fifty: float
    bias: float
    coverage: float
    width: float  # high over low, median


def _estimate(figure: str) -> str:
    latency, _, percentile = figure.partition("_")
    return f"{latency}_seconds" + ("" if percentile == "p50" else f"_{percentile}")


def score(point: Point, case: Case) -> Scored:
    """One measurement against its case."""
    bands: dict[str, Band] = {}
    reason, saturation = "", None
    for figure in FIGURES + ALSO:
        try:
            bands[figure] = case.estimate(_estimate(figure))
        except Unknown as lost:
            reason = str(lost)
    if bands:
        saturation = case.estimate("saturation")
    return Scored(point, bands, saturation, reason)


def scored(paths: Sequence[object]) -> list[Scored]:
    """Every measurement of the files, through the public API."""
    bench = Bench()
    return [
        score(point, bench.cases(spec_of(point), f"{point.id}.yaml")[0])
        for point in points(paths)  # type: ignore[arg-type]
    ]


def line_of(name: str, figure: str, cases: Sequence[Scored]) -> Line | None:
    """One figure over some measurements; None when none has it."""
    logs, inside, widths = [], 0, []
    for case in cases:
        log = case.log(figure)
        if log is not None:
            band, measured = case.bands[figure], case.point.measured(figure) or 0.0
            logs.append(log)
            inside += band.low <= measured <= band.high
            widths.append(band.high / max(band.low, 1e-12))
    if not logs:
        return None
    errors = [abs(math.expm1(log)) for log in logs]
    count = len(logs)
    return Line(
        name, figure, count, median(errors), sum(one < 0.2 for one in errors) / count,
        sum(one < 0.5 for one in errors) / count, math.expm1(median(logs)), inside / count,
        median(widths),
    )  # fmt: skip


def classes(cases: Sequence[Scored]) -> Iterator[tuple[str, list[Scored]]]:
    """Measurements by what they are of: those that say little about tails apart."""
    clear = [case for case in cases if not case.point.doubtful]
    yield "all", clear
    yield "rate or cap given", [case for case in clear if case.point.load != "uncapped"]
    keys: tuple[Callable[[Point], str], ...] = (
        lambda point: point.load,
        lambda point: f"{point.load}, lengths {point.lengths}",
        lambda point: str(point.row["engine"]),
        lambda point: "part in the catalogue" if "/" in point.row["accelerator"] else "part named",
        lambda point: f"from {point.row['source']}",
    )
    for key in keys:
        for name in dict.fromkeys(key(case.point) for case in clear):
            yield name, [case for case in clear if key(case.point) == name]
    for why in dict.fromkeys(case.point.doubtful for case in cases):
        if why:
            yield f"apart: {why}", [case for case in cases if case.point.doubtful == why]


def show(cases: Sequence[Scored], figures: Sequence[str], markdown: bool) -> None:
    """A table; the bar as separator makes it Markdown."""
    head = ("class", "figure", "n", "median", "20 %", "50 %", "bias", "in band", "width")
    table = [head]
    for name, some in classes(cases):
        for figure in figures:
            one = line_of(name, figure, some)
            if one is not None:
                table.append((
                    one.name, one.figure, str(one.cases), f"{one.median:.0%}",
                    f"{one.twenty:.0%}", f"{one.fifty:.0%}", f"{one.bias:+.0%}",
                    f"{one.coverage:.0%}", f"x{one.width:.1f}",
                ))  # fmt: skip
    print_table(table, markdown)


def show_saturation(cases: Sequence[Scored]) -> None:
    """How many overloads are flagged, how far off the factor is, and false alarms."""
    known = [
        case for case in cases
        if case.saturation is not None and case.point.saturated is not None
    ]  # fmt: skip
    over = [case for case in known if case.point.saturated]
    under = [case for case in known if not case.point.saturated]
    for words, some in (("overloaded", over), ("not overloaded", under)):
        mid, low = _above(some, "mid"), _above(some, "low")
        print(f"{words}: {len(some)}, flagged {mid}, for sure {low}")
    factors = [
        math.exp(abs(math.log(case.saturation.mid / case.point.overload)))
        for case in over
        if case.saturation and case.point.overload
    ]
    if factors:
        print(f"factor off by x{median(factors):.2f} at the median, x{max(factors):.2f} at most")


def _above(cases: Sequence[Scored], end: str) -> int:
    """How many are predicted above their capacity: at mid, or with the whole band."""
    return sum(1 for case in cases if case.saturation and getattr(case.saturation, end) > 1.0)


def show_case(case: Scored) -> None:
    """One line about a measurement."""
    shown = []
    for figure in FIGURES:
        measured, band = case.point.measured(figure), case.bands.get(figure)
        if measured and band:
            miss = "" if band.low <= measured <= band.high else "!"
            shown.append(f"{figure} {band.mid * 1e3:.1f}/{measured * 1e3:.1f}{miss}")
    print(f"{case.point.id:7} {case.point.load:8} {case.point.lengths:10}", *shown, case.reason)


def tail(arguments: argparse.Namespace) -> None:
    """The scorecard of percentiles under load."""
    cases = scored(arguments.cases)
    if arguments.verbose:
        for case in cases:
            show_case(case)
    answered = sum(1 for case in cases if case.bands)
    print(f"{len(cases)} measurements, {answered} answered")
    show(cases, FIGURES + ALSO if arguments.verbose else FIGURES, arguments.markdown)
    show_saturation(cases)
