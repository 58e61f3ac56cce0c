"""Fits the factors of percentiles: measured over derived, by class.

    python benchmarks/tail_fit.py benchmarks/cases/tail-points.jsonl

prints the lines of plugins/capcheck_serving/tail_terms.jsonl, and to standard error how they do
on sources that were left out. What is fitted is p99 / p50 as measured over p99 / p50 as derived:
how far off a median is does not enter. A source of n points weighs as n^(2/3). A class of few
sources is drawn to what all classes say, its centre by S / (S + 1) and its spread likewise; how
far sources are apart widens every band.
"""

from __future__ import annotations

import json
import math
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from tail_cases import Point, points, spec_of

from capcheck import Case, Unknown
from capcheck.testing import Bench
from capcheck_serving.percentiles import SHARES, facts, percentiles
from capcheck_serving.serving import state

DATED = "2026-12"
LOADED = {"low": 0.75, "mid": 0.85, "high": 0.95}  # share of a load that queues are read at
LEAST = {"p90": 0.45, "p95": 0.65}  # of the spread of the 99th, in the logarithm
ENOUGH_RELATIVES = 3  # sources
NORMAL = 1.4826  # standard deviations of a normal in its median distance
NINETY = 1.645  # standard deviations that 90 % of a normal lie within
Kind = tuple[str, str]  # lengths, loop
LENGTHS, LOOPS = ("fixed", "varied"), ("open", "closed", "uncapped")
WORDS = {
    "open": "random arrivals", "closed": "a fixed number in flight", "uncapped": "all at once",
    "fixed": "lengths alike", "varied": "lengths varied",
}  # fmt: skip


class Residual(NamedTuple):
    """One percentile of one measurement: ln(measured / derived), both over their medians."""

    point: str
    source: str
    latency: str
    percentile: str
    kind: Kind
    log: float


class Factor(NamedTuple):
    """A fitted class."""

    low: float
    mid: float
    high: float
    cases: int
    sources: int


def _derived(case: Case, latency: str, share: float) -> float:
    made = percentiles(case, LOADED["mid"])
    quantile = made.ttft if latency == "ttft" else made.tpot
    return math.log(quantile(share) / quantile(0.5))


def _of_point(point: Point, case: Case) -> Iterator[Residual]:
    kind = facts(case)
    state(case)
    for latency in ("ttft", "tpot"):
        median = point.measured(f"{latency}_p50")
        for percentile, share in SHARES.items():
            seen = point.measured(f"{latency}_{percentile}")
            if seen and median:
                log = math.log(seen / median) - _derived(case, latency, share)
                key = (kind["lengths"], kind["loop"])
                yield Residual(point.id, point.row["source"], latency, percentile, key, log)


def residuals(paths: Sequence[Path]) -> list[Residual]:
    """Of every measurement that says much and can be predicted."""
    bench = Bench()
    found: list[Residual] = []
    for point in points(paths):
        if point.doubtful or point.saturated:  # how long a run is says how long its queue gets
            continue
        try:
            found.extend(_of_point(point, bench.cases(spec_of(point))[0]))
        except Unknown:
            continue
    return found


def _weighted(values: Iterable[tuple[float, float]], share: float) -> float:
    """The quantile of (value, weight) pairs, halfway through each weight."""
    ranked = sorted(values)
    total, passed = sum(weight for _, weight in ranked), 0.0
    for value, weight in ranked:
        passed += weight
        if passed - weight / 2.0 >= share * total:
            return value
    return ranked[-1][0]


def _weights(found: Sequence[Residual]) -> list[tuple[float, float]]:
    counts = Counter(one.source for one in found)
    return [(one.log, counts[one.source] ** (-1.0 / 3.0)) for one in found]


def fit(found: Sequence[Residual], kind: Kind | None) -> Factor:
    """The factor of a class, from residuals of one latency and percentile; None: of no class."""
    own = [one for one in found if one.kind == kind]
    found = _relatives(found, kind)
    sources = len({one.source for one in own})
    trust = sources / (sources + 1.0)
    centre = (1.0 - trust) * _weighted(_weights(found), 0.5)
    if own:
        centre += trust * _weighted(_weights(own), 0.5)
    ends = []
    for share in (0.05, 0.95):
        end = (1.0 - trust) * (_weighted(_weights(found), share) - _weighted(_weights(found), 0.5))
        if own:
            end += trust * (_weighted(_weights(own), share) - centre)
        ends.append(end)
    apart = NINETY * _between(found)
    low = centre - math.hypot(min(ends[0], 0.0), apart)
    high = centre + math.hypot(max(ends[1], 0.0), apart)
    return Factor(math.exp(low), math.exp(centre), math.exp(high), len(own), sources)


def _relatives(found: Sequence[Residual], kind: Kind | None) -> Sequence[Residual]:
    """What else says something of a class: lengths alike or not, and prompts all at once or not.

    Where fewer than three sources do, everything.
    """
    if kind is None:
        return found
    alike = [
        one for one in found
        if one.kind[0] == kind[0] and ("uncapped" in one.kind) == ("uncapped" in kind)
    ]  # fmt: skip
    return alike if len({one.source for one in alike}) >= ENOUGH_RELATIVES else found


def _between(found: Sequence[Residual]) -> float:
    """How far sources are apart: 1.48 times the median distance of their medians (as a normal's
    standard deviation, and deaf to one odd source), over all classes."""
    names = {one.source for one in found}
    middles = [median(one.log for one in found if one.source == name) for name in names]
    if not middles:
        return 0.0
    return NORMAL * median(abs(one - median(middles)) for one in middles)


def fitted(found: Sequence[Residual], latency: str, kind: Kind | None) -> dict[str, Factor]:
    """The factors of a class, by percentile, from the highest down.

    A lower percentile's is no larger, and spreads at least a share of what the 99th's does.
    """
    made: dict[str, Factor] = {}
    top = above = fit(_of(found, latency, "p99"), kind)
    for percentile in sorted(SHARES, reverse=True):
        own, share = fit(_of(found, latency, percentile), kind), LEAST.get(percentile, 0.0)
        mid = min(own.mid, above.mid)
        low = min(own.low / own.mid, (top.low / top.mid) ** share)
        high = max(own.high / own.mid, (top.high / top.mid) ** share)
        high = min(high, above.high / above.mid)  # no band reaches above the next percentile's
        above = made[percentile] = own._replace(low=mid * low, mid=mid, high=mid * high)
    return made


def _of(found: Sequence[Residual], latency: str, percentile: str) -> list[Residual]:
    return [one for one in found if (one.latency, one.percentile) == (latency, percentile)]


def lines(found: Sequence[Residual]) -> Iterator[Mapping[str, Any]]:
    """The terms."""
    yield {
        "name": "serving.tail_load", "when": {}, "kind": "value", **LOADED,
        "unit": "share of the load", "cases": 0, "dated": DATED,
        "source": "near capacity a predicted load is more often too high than a queue is long",
    }  # fmt: skip
    kinds = [None, *((lengths, loop) for lengths in LENGTHS for loop in LOOPS)]
    for latency in ("ttft", "tpot"):
        for kind in kinds:
            for percentile, made in sorted(fitted(found, latency, kind).items()):
                yield _term(f"serving.{latency}_{percentile}_factor", kind, made)


def _term(name: str, kind: Kind | None, made: Factor) -> Mapping[str, Any]:
    """A line of the terms."""
    when = {"lengths": kind[0], "loop": kind[1]} if kind else {}
    words = f"{WORDS[kind[1]]}, {WORDS[kind[0]]}" if kind else "all classes"
    return {
        "name": name, "when": when, "kind": "value",
        "low": float(f"{made.low:.3g}"), "mid": float(f"{made.mid:.3g}"),
        "high": float(f"{made.high:.3g}"), "unit": "measured / derived",
        "cases": made.cases, "sources": made.sources, "dated": DATED,
        "source": f"public load tests with percentiles: {words}",
    }  # fmt: skip


def left_out(found: Sequence[Residual]) -> Iterator[str]:
    """Each source against what the others say."""
    for latency in ("ttft", "tpot"):
        for percentile in SHARES:
            some, errors, inside, width = _of(found, latency, percentile), [], 0, []
            for source in dict.fromkeys(one.source for one in some):
                rest = [one for one in found if one.source != source]
                for one in (one for one in some if one.source == source):
                    made = fitted(rest, latency, one.kind)[percentile]
                    errors.append(abs(math.exp(math.log(made.mid) - one.log) - 1.0))
                    inside += made.low <= math.exp(one.log) <= made.high
                    width.append(made.high / made.low)
            errors.sort()
            width.sort()
            middle = len(errors) // 2
            yield (
                f"{latency} {percentile}: n {len(errors)}, median error of the ratio "
                f"{errors[middle]:.0%}, in band {inside / len(errors):.0%}, "
                f"band x{width[middle]:.1f}"
            )


def main() -> None:
    found = residuals([Path(name) for name in sys.argv[1:]])
    for line in lines(found):
        print(json.dumps(line))
    for text in left_out(found):
        print(text, file=sys.stderr)


if __name__ == "__main__":
    main()
