"""The declared workload and objectives of a deployment, in SI units."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from capcheck.deployment import Deployment
from capcheck.values import Value

LENGTHS = frozenset({"min", "mean", "p50", "p90", "p95", "p99", "p999", "max"})
FIGURES = ("mean", "p50", "p90", "p95", "p99", "p999")


class Rate(NamedTuple):
    """Requests per second of the whole deployment."""

    mean: Value[float]
    peak: Value[float] | None

    @property
    def highest(self) -> Value[float]:
        """The peak where one is declared, else the mean."""
        return self.peak if self.peak is not None else self.mean


def _positive(value: Value[float]) -> Value[float]:
    """The figure; unknown when it is none that traffic or a target can have."""
    if all(option > 0 for option in value.options):
        return value
    return Value(
        (), value.origin._replace(why=f"{value.origin.word or 'the figure'} is not above 0")
    )


def lengths(deployment: Deployment, name: str) -> Mapping[str, float] | None:
    """`prompt_tokens` or `output_tokens`: {"p50": ..., "max": ...}; a bare number is constant.

    None when it is not declared. Raises Unknown when a figure cannot be read.
    """
    single = deployment.number("workload", name)
    if single is not None:
        return {"constant": _positive(single).get(name)}
    found = {}
    for key in deployment.under("workload", name):
        figure = deployment.number("workload", name, *key) if key[0] in LENGTHS else None
        if figure is not None and len(key) == 1:
            figure = figure if key == ("min",) else _positive(figure)
            found[key[0]] = figure.get(f"{name}.{key[0]}")
    return found or None


def concurrency(deployment: Deployment) -> Value[float] | None:
    """Requests in flight per replica."""
    found = deployment.number("workload", "concurrency")
    return _positive(found) if found is not None else None


def request_rate(deployment: Deployment) -> Rate | None:
    """Requests per second of the deployment; a bare figure is the mean."""
    single = deployment.rate("workload", "request_rate")
    if single is not None:
        return Rate(_positive(single), None)
    mean = deployment.rate("workload", "request_rate", "mean")
    peak = deployment.rate("workload", "request_rate", "peak")
    peak = _positive(peak) if peak is not None else None
    if mean is not None:
        return Rate(_positive(mean), peak)
    return Rate(peak, peak) if peak is not None else None


def replicas(deployment: Deployment) -> float:
    """Replicas of the deployment; one when not declared. Raises Unknown."""
    found = deployment.count("replicas")
    return float(max(1, found.get("replicas"))) if found is not None else 1.0


def share(deployment: Deployment, name: str) -> float:
    """`prefix_hit_rate` or `acceptance_rate`; 0 when not declared. Raises Unknown."""
    found = deployment.share("workload", name)
    return found.get(name) if found is not None else 0.0


def burstiness(deployment: Deployment) -> float:
    """Shape of the gaps between requests; 1 when not declared: at random. Raises Unknown."""
    found = deployment.number("workload", "burstiness")
    return _positive(found).get("burstiness") if found is not None else 1.0


class Objective(NamedTuple):
    """One objective: a figure of a latency and what it must stay below, in seconds."""

    figure: str  # mean, p50, p90, p95, p99, p999
    seconds: Value[float]


def objectives(deployment: Deployment, name: str) -> tuple[Objective, ...]:
    """The objectives on `ttft` or `tpot`, mean and median first."""
    found = []
    for figure in FIGURES:
        value = deployment.seconds("objectives", name, figure)
        if value is not None:
            found.append(Objective(figure, _positive(value)))
    return tuple(found)
