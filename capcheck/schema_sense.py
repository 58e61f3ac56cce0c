"""What a deployment must say beyond its schema: orders, pairs, names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from capcheck.schema_errors import Violation
from capcheck.schema_tree import dotted

# Each list rises. The mean may lie anywhere between the bounds.
_RISING = ("min", "p50", "p90", "p95", "p99", "p999", "max")
_BETWEEN = ("min", "mean", "max")
_RATES = ("mean", "peak")
_ORDERS = (
    (("workload", "prompt_tokens"), (_RISING, _BETWEEN)),
    (("workload", "output_tokens"), (_RISING, _BETWEEN)),
    (("workload", "request_rate"), (_RATES,)),
    (("objectives", "ttft"), (_RISING,)),
    (("objectives", "tpot"), (_RISING,)),
)


def _number(found: Any) -> bool:
    return isinstance(found, (int, float)) and not isinstance(found, bool)


def _mapping(plain: Any, *path: str) -> Mapping[str, Any]:
    for step in path:
        plain = plain.get(step) if isinstance(plain, Mapping) else None
    return plain if isinstance(plain, Mapping) else {}


def _rising(
    path: tuple[str, ...], found: Mapping[str, Any], order: tuple[str, ...]
) -> Iterator[Violation]:
    """Each neighbour that is less than the one before it."""
    given = [name for name in order if _number(found.get(name))]
    for lower, upper in pairwise(given):
        if found[lower] > found[upper]:
            message = f"{dotted(path)}: {upper} is less than {lower}"
            yield Violation((*path, upper), message)


def _workload(workload: Mapping[str, Any]) -> Iterator[Violation]:
    burst = workload.get("start") == "burst"
    if burst and "prompts" not in workload:
        message = "workload.start is burst, which needs prompts: how many requests start at once"
        yield Violation(("workload", "start"), message, ("add prompts: NUMBER",))
    if burst and "request_rate" in workload:
        message = "workload.request_rate does not go with start: burst, which sends all at once"
        yield Violation(("workload", "request_rate"), message)
    if "prompts" in workload and not burst:
        message = "workload.prompts counts the requests of a burst, but start is not burst"
        help = ("add start: burst", "remove prompts")
        yield Violation(("workload", "prompts"), message, help)


def senseless(plain: Mapping[str, Any]) -> Iterator[Violation]:
    """What contradicts itself in a deployment whose measures are SI numbers."""
    for path, orders in _ORDERS:
        for order in orders:
            yield from _rising(path, _mapping(plain, *path), order)
    yield from _workload(_mapping(plain, "workload"))
    if plain.get("fallback") is not None and plain.get("fallback") == plain.get("name"):
        yield Violation(("fallback",), "fallback names the deployment itself")
