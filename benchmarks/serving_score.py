"""How far predicted latencies are from serving measurements, by class of row.

Time per output token and time to first token are means of tests that start with a burst. "In 20"
is the share of rows within 20 %, bias the median of the signed error, "in band" the share of
measurements inside the 90 % band, width the band's half width over its middle.
"""

from __future__ import annotations

import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import median
from typing import NamedTuple

from memory_score import band_over, quantile
from serving_cases import Row, is_clean, spec_of

from capcheck.quantity import Band
from capcheck.testing import Bench
from capcheck_serving.serving import state

SATURATED = 4.0  # times what is predicted without a wait for a slot: there is one
HARDLY = 1.5
COLUMNS = ("median", "in 20", "p90", "bias", "in band", "width")
HEAD = f"| rows | n | TPOT: {' | '.join(COLUMNS)} | TTFT: {' | '.join(COLUMNS)} |"
RULE = "| --- |" + " ---: |" * 13


class Score(NamedTuple):
    """One row, and what was predicted."""

    row: Row
    tpot: Band
    ttft: Band
    saturation: float
    queued: float  # measured TTFT over what is predicted of it without a wait for a slot

    @property
    def tpot_error(self) -> float:
        """Predicted over measured, less one."""
        return self.tpot.mid / self.row.tpot - 1.0

    @property
    def ttft_error(self) -> float:
        """Predicted over measured, less one."""
        return self.ttft.mid / self.row.ttft - 1.0


GROUPS: dict[str, Callable[[Row], str]] = {
    "model": lambda row: row.model,
    "system": lambda row: row.accelerator,
    "engine": lambda row: row.engine,
    "precision": lambda row: row.precision,
    "requests in flight": lambda row: _bucket(row.concurrency),
    "shape": lambda row: "fixed" if row.fixed else f"{row.prompt}/{row.output}",
}


def _bucket(concurrency: int) -> str:
    for most in (4, 16, 64, 256):
        if concurrency <= most:
            return f"to {most:3}"
    return "more"


def scored(chosen: Sequence[Row]) -> tuple[list[Score], Counter[str]]:
    """Every row that can be predicted; the others counted by reason."""
    bench, found, missing = Bench(), [], Counter[str]()
    for row in chosen:
        cases = bench.cases(spec_of(row), f"{row.id}.yaml")
        tpot, ttft = (band_over(cases, f"{name}_seconds_mean") for name in ("tpot", "ttft"))
        load = band_over(cases, "saturation")
        if tpot is None or ttft is None or load is None:
            missing[f"{row.model} {row.engine} {row.version}"] += 1
            continue
        made = state(cases[0])
        unqueued = made.ttft_mean_seconds - made.queued.mean
        found.append(Score(row, tpot, ttft, load.mid, row.ttft / unqueued))
    return found, missing


def figures(errors: Sequence[float]) -> tuple[str, str, str, str]:
    """Median, share within 20 %, nine in ten, bias."""
    sizes = sorted(map(abs, errors))
    near = sum(1 for size in sizes if size <= 0.2) / len(sizes)
    return (
        f"{median(sizes):.1%}", f"{near:.0%}", f"{quantile(sizes, 0.9):.1%}",
        f"{median(errors):+.1%}",
    )  # fmt: skip


def _coverage(pairs: Sequence[tuple[Band, float]]) -> tuple[str, str]:
    inside = sum(1 for band, truth in pairs if band.low <= truth <= band.high) / len(pairs)
    width = median((band.high - band.low) / 2.0 / band.mid for band, _ in pairs)
    return f"{inside:.0%}", f"{width:.0%}"


def line(name: str, scores: Sequence[Score]) -> str:
    """One class of rows."""
    cells = [name, str(len(scores))]
    cells += figures([one.tpot_error for one in scores])
    cells += _coverage([(one.tpot, one.row.tpot) for one in scores])
    cells += figures([one.ttft_error for one in scores])
    cells += _coverage([(one.ttft, one.row.ttft) for one in scores])
    return f"| {' | '.join(cells)} |"


def saturation(scores: Sequence[Score]) -> str:
    """Which rows were queueing, and which were said to."""
    queued = [one for one in scores if one.queued > SATURATED]
    flagged = [one for one in queued if one.saturation > 1.0]
    false = [one for one in scores if one.saturation > 1.0 and one.queued <= HARDLY]
    factors = sorted(max(one.ttft.mid / one.row.ttft, one.row.ttft / one.ttft.mid)
                     for one in flagged)  # fmt: skip
    text = f"{len(queued)} rows clearly wait for a slot; {len(flagged)} of them are said to"
    if factors:
        text += f", first tokens off by a factor of {median(factors):.1f} (median)"
    return f"{text}; {len(false)} that hardly wait are said to as well."


def show(scores: Sequence[Score], *, parts: bool = True) -> Iterator[str]:
    """The tables."""
    clean = [one for one in scores if is_clean(one.row)]
    yield HEAD
    yield RULE
    yield line("all", scores)
    yield line("clean", clean)
    for title, key in GROUPS.items() if parts else ():
        groups: dict[str, list[Score]] = defaultdict(list)
        for one in clean:
            groups[key(one.row)].append(one)
        for name, own in sorted(groups.items()):
            yield line(f"{title} {name}", own)
    yield ""
    yield saturation(clean)


def serving(chosen: Sequence[Row]) -> Iterator[str]:
    """The scorecard, with what was not predicted and the time that a row takes."""
    begun = time.perf_counter()
    scores, missing = scored(chosen)
    each = (time.perf_counter() - begun) / max(1, len(chosen))
    yield from show(scores)
    yield f"not predicted: {dict(missing)}; {each * 1e3:.1f} ms a row, the spec's reading included"
