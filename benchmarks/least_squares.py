"""Least squares with priors: the machinery of the calibrations.

Constants move in ln, each towards a prior from an independent source or a wider class; errors
are ln(predicted / measured), large ones count less (soft L1). Shares stay below 1.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from math import exp, log, sqrt
from pathlib import Path
from typing import Any, NamedTuple

STEP = 1e-3  # of ln, for derivatives
MOST_SHARE = 0.98

Key = tuple[str, str]  # a term's name and its conditions


class Prior(NamedTuple):
    """What is known of a constant before the fit: 68 % within middle / factor … x factor."""

    key: Key
    middle: float
    factor: float
    unit: str
    source: str


def key_of(name: str, when: Any) -> Key:
    """A term's identity."""
    return name, json.dumps(dict(when), sort_keys=True)


def priors(path: Path) -> list[Prior]:
    """The constants to fit."""
    with path.open(encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines if line.strip()]
    return [
        Prior(
            key_of(one["name"], one["when"]),
            one["middle"],
            one["factor"],
            one["unit"],
            one["source"],
        )
        for one in records
    ]


def bounded(key: Key, value: float) -> float:
    """A share of a peak stays below it."""
    share = key[0].endswith(("efficiency", "utilization"))
    return min(value, MOST_SHARE) if share else value


class Row(NamedTuple):
    """A figure's linear model around the current constants, weighted."""

    error: float
    slopes: Mapping[int, float]
    weight: float


Linear = Callable[[Mapping[Key, float], Mapping[Key, int]], Sequence[Row]]


def solve(matrix: list[list[float]], right: list[float]) -> list[float]:
    """Gaussian elimination of a positive definite system."""
    size = len(right)
    work = [[*line, right[at]] for at, line in enumerate(matrix)]
    for at in range(size):
        pivot = work[at]
        for lower in range(at + 1, size):
            factor = work[lower][at] / pivot[at]
            if factor:
                line = work[lower]
                work[lower] = [x - factor * y for x, y in zip(line, pivot, strict=True)]
    found = [0.0] * size
    for at in reversed(range(size)):
        line = work[at]
        rest = sum(line[after] * found[after] for after in range(at + 1, size))
        found[at] = (line[size] - rest) / line[at]
    return found


def normal(
    made: Sequence[Row], wanted: Sequence[Prior], values: Mapping[Key, float]
) -> tuple[list[list[float]], list[float]]:
    """The normal equations of a step, priors included."""
    size = len(wanted)
    matrix = [[0.0] * size for _ in range(size)]
    right = [0.0] * size
    for at, one in enumerate(wanted):
        weight = 1.0 / log(one.factor) ** 2
        matrix[at][at] += weight
        right[at] -= weight * log(values[one.key] / one.middle)
    for row in made:
        for first, slope in row.slopes.items():
            right[first] -= row.weight * slope * row.error
            line = matrix[first]
            for second, other in row.slopes.items():
                line[second] += row.weight * slope * other
    return matrix, right


def fit(
    linear: Linear, wanted: Sequence[Prior], start: Mapping[Key, float], rounds: int
) -> dict[Key, float]:
    """Constants after some Gauss-Newton steps. `linear` gives the figures' models at values."""
    index = {one.key: at for at, one in enumerate(wanted)}
    values = dict(start)
    for _ in range(rounds):
        matrix, right = normal(linear(values, index), wanted, values)
        step = solve(matrix, right)
        for one, moved in zip(wanted, step, strict=True):
            change = max(-0.7, min(0.7, moved))
            values[one.key] = bounded(one.key, values[one.key] * exp(change))
        if max(map(abs, step)) < 1e-3:
            break
    return values


def stepped(
    kept: Sequence[Row], wanted: Sequence[Prior], values: Mapping[Key, float]
) -> dict[Key, float]:
    """Constants after one step on some of the figures: what a fit without the others finds."""
    matrix, right = normal(kept, wanted, values)
    return {
        one.key: bounded(one.key, values[one.key] * exp(max(-0.7, min(0.7, change))))
        for one, change in zip(wanted, solve(matrix, right), strict=True)
    }


def spreads(
    fits: Sequence[Mapping[Key, float]],
    values: Mapping[Key, float],
    wanted: Sequence[Prior],
    made: Sequence[Row],
) -> dict[Key, float]:
    """Standard deviation of ln of each constant: jackknife over groups, at least the fit's own."""
    matrix, _ = normal(made, wanted, values)
    found = {}
    for at, one in enumerate(wanted):
        unit = [0.0] * len(wanted)
        unit[at] = 1.0
        own = sqrt(max(0.0, solve(matrix, unit)[at]))
        jack = sqrt(sum(log(fitted[one.key] / values[one.key]) ** 2 for fitted in fits))
        found[one.key] = max(own, jack)
    return found
