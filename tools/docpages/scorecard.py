"""The scorecards, made by the benchmarks."""

from __future__ import annotations

import sys
from functools import cache
from pathlib import Path

BENCHMARKS = Path(__file__).resolve().parents[2] / "benchmarks"


@cache
def markdown() -> str:
    """Verdicts and tables of every engine."""
    sys.path.insert(0, str(BENCHMARKS))
    from scorecard import page

    return page()


@cache
def latency_markdown() -> str:
    """Tables of latencies under load, of single figures and of percentiles."""
    sys.path.insert(0, str(BENCHMARKS))
    from latency_scorecard import page

    return page()
