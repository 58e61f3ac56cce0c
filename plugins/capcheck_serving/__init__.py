"""The load model: the estimates of TPOT, TTFT and throughput that several concerns read."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import Estimate, hookimpl


@hookimpl
def capcheck_estimates() -> Iterable[Estimate]:
    """Latencies, throughput, utilization, and the floors that objectives set."""
    from capcheck_serving import accounts, estimates, floors

    return (*accounts.taken_apart(estimates.ALL), *floors.ALL)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the step, the load and percentiles; what was measured over predicted."""
    here = Path(__file__).parent
    return tuple(here / f"{part}_terms.jsonl" for part in ("step", "load", "tail", "residual"))
