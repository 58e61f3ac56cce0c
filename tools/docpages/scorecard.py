"""The scorecard of start-up memory, made by the benchmarks."""

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
