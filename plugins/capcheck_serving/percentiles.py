"""Percentiles of latencies at the declared load: what is derived, and what was measured over it.

A percentile is the load model's figure times what the mixture of requests makes of it
(`capcheck.physics.percentiles`), times a fitted factor of its class: how requests come (at a
rate, so many in flight, all at once) and whether their lengths differ.
"""

from __future__ import annotations

from collections.abc import Callable

from capcheck import Case, Estimate, Terms
from capcheck.physics.percentiles import Load, Percentiles
from capcheck.workload import concurrency
from capcheck_serving.serving import burst, declared, server, state, traffic

SHARES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}
ALL_AT_ONCE = 1.05  # requests in all over those in flight, up to which all come at once


def load(case: Case) -> Load:
    """What comes to one replica."""
    one, flight = declared(case, case.terms()), concurrency(case.deployment)
    inflight = None if flight is None else max(flight.get("concurrency"), 1e-3)
    return Load(one.prompt, one.output, inflight, burst(case))


def facts(case: Case) -> dict[str, str]:
    """The class of a case's percentiles."""
    coming = load(case)
    lengths = "fixed" if coming.alike else "varied"
    if coming.concurrency is None:
        return {"lengths": lengths, "loop": "open"}
    opening = coming.burst
    if opening is not None and opening.prompts <= ALL_AT_ONCE * coming.concurrency:
        return {"lengths": lengths, "loop": "uncapped"}
    return {"lengths": lengths, "loop": "closed"}


def percentiles(case: Case, sure: float) -> Percentiles:
    """Both latencies' quantiles; `sure` is the share of the load that queues are read at."""

    def compute() -> Percentiles:
        t, one = case.terms(), declared(case, case.terms())
        return Percentiles(server(case, t, one), traffic(case, one), state(case), load(case), sure)

    return case.once(f"serving percentiles {sure}", compute)


def over_median(case: Case, sure: float, latency: str, share: float) -> float:
    """A derived percentile over the load model's median of the same latency."""

    def compute() -> float:
        made = percentiles(case, sure)
        if latency == "tpot":
            return made.tpot(share) / max(made.tpot(0.5), 1e-12)
        median = state(case).ttft_median_seconds
        return max(made.ttft(share) / median, 1.0) if median > 0 else 1.0

    return case.once(f"serving {latency} {share} {sure}", compute)


def tail(latency: str, percentile: str, median: Callable[[Case, Terms], float]) -> Estimate:
    """The estimate of a percentile."""

    def compute(case: Case, t: Terms) -> float:
        kind = case.once("serving percentile facts", lambda: facts(case))
        sure = 1.0
        if latency == "ttft" and kind["loop"] == "open":
            sure = t.read("serving.tail_load")
        factor = t.read(f"serving.{latency}_{percentile}_factor", **kind)
        made = over_median(case, sure, latency, SHARES[percentile]) * factor
        return median(case, t) * max(made, 1.0)

    return Estimate(
        f"{latency}_seconds_{percentile}", "s", compute, f"{percentile} at the declared load"
    )
