"""Latency and throughput of a deployment against its load, and the load up to which one holds.

Each point is the deployment itself with another load declared: its figures are what the
estimates say of it.

    for point in curve(case, loads=(1, 8, 64)):
        print(point.load, point.tpot_seconds.mid, point.output_tokens_per_second.mid)
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any, Literal, NamedTuple

from capcheck.accounts import account_of
from capcheck.case import Case
from capcheck.deployment import Deployment, FieldPath
from capcheck.engine import Plan
from capcheck.quantity import Band
from capcheck.source import Node, Scalar
from capcheck.values import Origin, Unknown, Value, unknown
from capcheck.workload import concurrency, request_rate

By = Literal["concurrency", "rate"]
_Holds = Callable[[float], bool]

FIELDS: dict[By, FieldPath] = {
    "concurrency": ("workload", "concurrency"),
    "rate": ("workload", "request_rate"),
}
MOST_IN_FLIGHT = 65_536
TIMES_THE_RATE = 2.0**20  # how far above and below the declared rate is looked
RATE_STEPS = 13  # of a bisection over a factor of two: 0.01 % of the rate
FIGURES = 2  # significant ones of a rate that is reached


class Point(NamedTuple):
    """A replica under one load. Seconds, tokens, requests."""

    load: float  # requests in flight on each replica, or requests a second of the deployment
    by: By
    tpot_seconds: Band  # median
    ttft_seconds: Band  # median
    output_tokens_per_second: Band  # of one replica
    saturation: Band  # demand over what a replica admits or completes
    decode_batch: float  # on each data-parallel rank
    binding: str  # what a token's time goes to: "memory bandwidth (weights)"
    limit: str  # what keeps requests waiting: "kv cache", "max sequences"; "" nothing

    @property
    def saturated(self) -> bool:
        """Whether more is asked than is served, at the band's middle."""
        return self.saturation.mid > 1.0


def declared_by(case: Case) -> By:
    """How the load is declared; requests in flight where both are. Raises Unknown for neither."""
    if concurrency(case.deployment) is not None:
        return "concurrency"
    if request_rate(case.deployment) is not None:
        return "rate"
    place = case.deployment.place_for("workload")
    raise Unknown(unknown(place, "neither concurrency nor request_rate is declared"), "traffic")


def declared_load(case: Case) -> float:
    """The load as declared: in flight on each replica, or the highest rate. Raises Unknown."""
    flight, rate = concurrency(case.deployment), request_rate(case.deployment)
    if flight is not None:
        return flight.get("concurrency")
    return rate.highest.get("request_rate") if rate is not None else 0.0


def at_load(case: Case, load: float, by: By | None = None) -> Case:
    """The same deployment under another load, re-planned.

    `by` "concurrency" is requests in flight on each replica, "rate" requests a second of the
    whole deployment; None: as it is declared. Raises Unknown when it cannot be resolved.
    """
    by = by or declared_by(case)
    deployment = case.deployment
    at = deployment.place_for("workload")
    fields = {
        path: value for path, value in deployment.fields.items() if path[:2] not in FIELDS.values()
    }
    text = f"{load:.12f}" if by == "concurrency" else f"{load:.12f}/s"
    node: Node = Scalar(text, "text", "plain", at)
    fields[FIELDS[by]] = Value((node,), Origin("derived", at, why="another load"))
    changed = case.workshop.resolve(Deployment(deployment.draft._replace(fields=fields)), case)
    if changed is None:
        raise Unknown(unknown(at, "the load cannot be changed"), "traffic")
    return changed


def point(case: Case) -> Point:
    """The figures at the declared load. Raises Unknown."""
    account = account_of(case, "tpot_seconds")
    return Point(
        declared_load(case),
        declared_by(case),
        case.estimate("tpot_seconds"),
        case.estimate("ttft_seconds"),
        case.estimate("output_tokens_per_second_replica"),
        case.estimate("saturation"),
        case.value("decode_batch", case.terms()),
        account.binding if account is not None else "",
        account.limit if account is not None else "",
    )


def curve(case: Case, loads: Iterable[float] = (), by: By | None = None) -> tuple[Point, ...]:
    """A point for each load; without loads, doublings from an eighth to eight times the declared.

    Raises Unknown where an estimate cannot be made, as the estimates do.
    """
    by = by or declared_by(case)
    return tuple(
        point(at_load(case, load, by))._replace(load=load)
        for load in (tuple(loads) or _around(case, by))
    )


def _around(case: Case, by: By) -> tuple[float, ...]:
    declared = declared_load(case)
    found = [declared * 2.0**power for power in range(-3, 4)]
    if by == "rate":
        return tuple(found)
    return tuple(sorted({float(max(1, round(load))) for load in found}))


def reach(case: Case, name: str, most: float, by: By | None = None) -> float:
    """The largest load at which an estimate's middle is at most `most`, in its unit.

    Whole requests in flight, or a rate to two figures, rounded down. 0: at no load; infinite: at
    any that was looked at. Takes estimates that grow with the load. Raises Unknown.
    """
    by = by or declared_by(case)

    def holds(load: float) -> bool:
        changed = at_load(case, load, by)
        return changed.value(name, changed.terms()) <= most

    return _most_in_flight(case, holds) if by == "concurrency" else _highest_rate(case, holds)


def _most_in_flight(case: Case, holds: _Holds) -> float:
    low, high = 1, max(2, math.ceil(_start(case, "concurrency", 16.0)))
    if not holds(low):
        return 0.0
    while holds(high):
        low, high = high, 2 * high
        if low >= MOST_IN_FLIGHT:
            return math.inf
    while high - low > 1:
        middle = (low + high) // 2
        if holds(middle):
            low = middle
        else:
            high = middle
    return float(low)


def _highest_rate(case: Case, holds: _Holds) -> float:
    start = _start(case, "rate", 1.0)
    low = high = start
    if holds(start):
        while holds(high):
            low, high = high, 2.0 * high
            if high > start * TIMES_THE_RATE:
                return math.inf
    else:
        while not holds(low):
            low, high = low / 2.0, low
            if low < start / TIMES_THE_RATE:
                return 0.0
    for _ in range(RATE_STEPS):
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return _rounded_down(low)


def _start(case: Case, by: By, otherwise: float) -> float:
    """Where a search begins: at the declared load, if it is declared in this way."""
    load = declared_load(case) if declared_by(case) == by else otherwise
    return load if load > 0 else otherwise


def _rounded_down(value: float) -> float:
    digits = FIGURES - 1 - math.floor(math.log10(value))
    size = 10.0**-digits
    return round(math.floor(value / size + 1e-9) * size, digits)


def load_words(load: float, by: By) -> str:
    """`41 concurrent requests`, `3.2 requests/s`."""
    if by == "rate":
        return f"{load:.3g} requests/s"
    return f"{load:,.0f} concurrent request{'' if round(load) == 1 else 's'}"


def planned(case: Case, **plan: Value[Any] | None) -> Case:
    """The same case with parts of the engine's plan replaced: what options that cannot be written
    as a change would do, as speculation that is left out. Raises what planning raises."""
    changed = Case(
        case.deployment, case.engine, case.release, case.model, case.accelerator, case.workshop,
        case.label,
    )  # fmt: skip
    changed.plan = Plan(**{**changed.plan._asdict(), **plan})
    return changed
