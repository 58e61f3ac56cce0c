"""Replays serving measurements and prints how far off the predicted latencies are.

    python benchmarks/latency.py SERVING.csv [--all] [--terms FILE]

Time per output token and time to first token (means, load tests that start with a burst), with
the catalogue's models and parts and the shipped terms. Rows marked suspect (speculation that the
columns do not tell, start-up inside the first token) are left out unless --all. Figures are of
the absolute error; bias is the median of the signed one; cover is the share of measurements
within the 90 % band that the residual terms give.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

from serving_cases import Replay, Row, rows

from capcheck.physics.load import LoadState

GROUPS: dict[str, Callable[[Row], str]] = {
    "engine": lambda row: row.engine,
    "system": lambda row: row.accelerator,
    "model": lambda row: row.model,
    "precision": lambda row: row.precision,
    "lengths": lambda row: "fixed" if row.fixed else "ranged",
}


class Score(NamedTuple):
    """One row's relative errors, and its predicted state in words."""

    row: Row
    tpot: float
    ttft: float
    tpot_covered: bool
    ttft_covered: bool
    saturated: bool
    binding: str


def _figures(errors: Iterable[float], covered: Iterable[bool]) -> str:
    signed, inside = sorted(errors), list(covered)
    sizes = sorted(abs(error) for error in signed)
    ninety = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
    near = sum(1 for size in sizes if size <= 0.2) / len(sizes)
    median, bias = statistics.median(sizes), statistics.median(signed)
    cover = sum(inside) / len(inside)
    return f"{median:6.1%} {ninety:6.1%} {near:5.0%} {bias:+7.1%} {cover:5.0%}"


def _print(name: str, scores: list[Score]) -> None:
    tpot = _figures((s.tpot for s in scores), (s.tpot_covered for s in scores))
    ttft = _figures((s.ttft for s in scores), (s.ttft_covered for s in scores))
    print(f"{name[:34]:34} {len(scores):5}  {tpot}   {ttft}")


def _covers(replay: Replay, row: Row, name: str, measured: float, predicted: float) -> bool:
    low, high = replay.band(row, f"serving.{name}_residual")
    return low * predicted <= measured <= high * predicted


def _score(replay: Replay, row: Row, state: LoadState) -> Score:
    kind = "saturated_" if state.saturated else ""
    tpot, ttft = state.tpot_seconds, state.ttft_mean_seconds
    return Score(
        row,
        tpot / row.tpot - 1.0,
        ttft / row.ttft - 1.0,
        _covers(replay, row, f"{kind}tpot", row.tpot, tpot),
        _covers(replay, row, f"{kind}ttft", row.ttft, ttft),
        state.saturated,
        state.binding,
    )


def _scored(replay: Replay, chosen: list[Row]) -> tuple[list[Score], Counter[str]]:
    scores: list[Score] = []
    missing: Counter[str] = Counter()
    for row in chosen:
        try:
            state = replay.predict(row)
        except KeyError as unknown:
            missing[str(unknown)] += 1
            continue
        scores.append(_score(replay, row, state))
    return scores, missing


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=Path)
    parser.add_argument("--all", action="store_true", help="suspect rows too")
    parser.add_argument("--terms", type=Path, help="constants in place of the shipped ones")
    arguments = parser.parse_args()
    chosen = [row for row in rows(arguments.cases) if arguments.all or not row.suspect]
    replay = Replay(arguments.terms)
    begun = time.perf_counter()
    scores, missing = _scored(replay, chosen)
    each = (time.perf_counter() - begun) / max(len(chosen), 1)
    print(f"{'':34} {'rows':>5}  {'TPOT: median, 90 %, within 20 %, bias, cover':40} TTFT")
    _print("all", scores)
    for title, key in GROUPS.items():
        parts: dict[str, list[Score]] = defaultdict(list)
        for score in scores:
            parts[key(score.row)].append(score)
        print(f"by {title}")
        for name, part in sorted(parts.items()):
            _print(f"  {name}", part)
    saturated = sum(1 for score in scores if score.saturated)
    print(f"predicted saturated: {saturated}; binding:", dict(Counter(s.binding for s in scores)))
    print(f"not predicted: {dict(missing)}; {each * 1e3:.2f} ms a row")


if __name__ == "__main__":
    main()
