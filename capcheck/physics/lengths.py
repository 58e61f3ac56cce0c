"""Declared token lengths as a distribution: quantiles, moments, atoms.

The quantile function is log-linear in the normal score between the declared percentiles (a
lognormal where there are two), cut at the declared maximum. Lengths are tokens.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from itertools import pairwise
from typing import NamedTuple

EXTREME = 8.0  # normal scores beyond this carry no weight
SQRT_TWO = math.sqrt(2.0)
AGREES = 1.5  # times a declared mean that percentiles and maximum may be off it
STEEPEST = 1.5  # slope of ln(length) above the last percentile: chat traces have 0.7 to 1.4
NINE_IN_TEN = 2.0 * 1.645  # normal scores between the 5th and the 95th percentile


class LengthsError(ValueError):
    """Declared lengths that contradict themselves or say too little."""


class _Piece(NamedTuple):
    """ln(length) = at + slope x score, for normal scores from `low` to `high`."""

    low: float
    high: float
    at: float
    slope: float


class Atom(NamedTuple):
    """A length that stands for a share of all."""

    share: float
    tokens: float


class Lengths(NamedTuple):
    """A distribution of lengths, tokens."""

    pieces: tuple[_Piece, ...]
    longest: float  # no length is above; infinite when not declared

    def quantile(self, probability: float) -> float:
        """The length that a share `probability` does not exceed."""
        score = normal_score(min(max(probability, 0.0), 1.0))
        for piece in self.pieces:
            if score <= piece.high:
                break
        return min(math.exp(piece.at + piece.slope * score), self.longest)

    def share_below(self, tokens: float) -> float:
        """The share of lengths that are at most `tokens`."""
        if tokens >= self.longest:
            return 1.0
        if tokens <= 0:
            return 0.0
        value = math.log(tokens)
        for piece in self.pieces:
            if piece.slope > 0 and value <= piece.at + piece.slope * piece.high:
                score = (value - piece.at) / piece.slope
                return normal_share(max(score, piece.low))
            if piece.slope == 0 and value < piece.at:
                return normal_share(piece.low) if piece.low > -EXTREME else 0.0
        return 1.0

    def moment(self, order: int) -> float:
        """Mean of the length to a power."""
        return sum(self._piece_moment(piece, order) for piece in self.pieces)

    @property
    def mean(self) -> float:
        """Tokens."""
        return self.moment(1)

    @property
    def variance(self) -> float:
        """Tokens squared."""
        return max(0.0, self.moment(2) - self.mean**2)

    @property
    def variation(self) -> float:
        """Squared coefficient of variation."""
        return self.variance / self.mean**2

    def cut(self, longest: float) -> Lengths:
        """No length above the longest, where some are below it; those of one length stay."""
        if longest >= self.longest or longest <= 0 or all(one.slope == 0 for one in self.pieces):
            return self
        return self._replace(longest=longest)

    def scaled(self, factor: float) -> Lengths:
        """All lengths times a factor, still cut at the longest."""
        shift = math.log(factor)
        pieces = tuple(piece._replace(at=piece.at + shift) for piece in self.pieces)
        return self._replace(pieces=pieces)

    def atoms(self, count: int) -> tuple[Atom, ...]:
        """Lengths that stand for cells of the distribution, each with its conditional mean."""
        if all(piece.slope == 0 for piece in self.pieces):
            return (Atom(1.0, self.mean),)
        edges = [-4.0 + 8.0 * index / (count - 2) for index in range(count - 1)]
        found = []
        for low, high in pairwise([-EXTREME, *edges, EXTREME]):
            share = normal_share(high) - normal_share(low)
            total = sum(
                self._piece_moment(piece, 1, max(low, piece.low), min(high, piece.high))
                for piece in self.pieces
                if piece.low < high and piece.high > low
            )
            if share > 0:
                found.append(Atom(share, total / share))
        return tuple(found)

    def _piece_moment(
        self, piece: _Piece, order: int, low: float | None = None, high: float | None = None
    ) -> float:
        """Integral of length^order over a stretch of normal scores: lognormal, cut at the top."""
        low = piece.low if low is None else low
        high = piece.high if high is None else high
        ceiling = math.inf
        if piece.slope > 0:
            ceiling = (math.log(self.longest) - piece.at) / piece.slope
        elif math.exp(min(piece.at, 700.0)) > self.longest:
            ceiling = -math.inf
        top = min(max(ceiling, low), high)
        shift = order * piece.slope
        inner = math.exp(order * piece.at + shift * shift / 2.0)
        inner *= normal_share(top - shift) - normal_share(low - shift)
        cut = normal_share(high) - normal_share(top)
        return inner + (self.longest**order * cut if cut > 0 else 0.0)


def normal_share(score: float) -> float:
    """Share of a standard normal below a score."""
    return 0.5 * math.erfc(-score / SQRT_TWO)


def normal_score(probability: float) -> float:
    """The score below which a share of a standard normal lies; cut at +-8. By bisection."""
    if probability <= normal_share(-EXTREME):
        return -EXTREME
    if probability >= normal_share(EXTREME):
        return EXTREME
    if probability > 0.5:
        return -normal_score(1.0 - probability)
    low, high = -EXTREME, 0.0
    for _ in range(60):
        middle = (low + high) / 2.0
        if normal_share(middle) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2.0


def constant(tokens: float) -> Lengths:
    """Every request has the same length. Raises LengthsError unless it is positive."""
    if not 0 < tokens < math.inf:
        raise LengthsError("a length is positive")
    return Lengths((_Piece(-EXTREME, EXTREME, math.log(tokens), 0.0),), tokens)


def lognormal(median: float, sigma: float, longest: float = math.inf) -> Lengths:
    """ln(length) is normal with standard deviation `sigma`, cut at the longest."""
    return Lengths((_Piece(-EXTREME, EXTREME, math.log(median), sigma),), longest)


def fit(declared: Mapping[str, float], assumed_sigma: float) -> Lengths:
    """The distribution of declared figures: mean, percentiles (`p50`, `p95`, `p99`...), max.

    Two percentiles or more fix the shape; a mean beside them settles the tail above the last.
    With one figure the spread is `assumed_sigma`, a standard deviation of ln(length), or what
    nine in ten between a declared minimum and maximum make of it, where that is less.
    Raises LengthsError when the figures contradict each other or only a maximum is given.
    """
    longest = declared.get("max", math.inf)
    mean = declared.get("mean")
    least = declared.get("min", 0.0)
    if 0 < least < longest < math.inf:
        assumed_sigma = min(assumed_sigma, math.log(longest / least) / NINE_IN_TEN)
    points = sorted(
        (float(key[1:]) / _scale(key), value)
        for key, value in declared.items()
        if key[0] == "p" and key[1:].isdigit()
    )
    _check([value for _, value in points], mean, longest)
    if not points:
        if mean is None:
            raise LengthsError("a mean or a percentile is needed beside the maximum")
        return _of_mean(mean, assumed_sigma, longest)
    if len(points) == 1:
        share, value = points[0]
        sigma = assumed_sigma
        if mean is not None and share == 0.5:
            sigma = math.sqrt(2.0 * math.log(max(mean / value, 1.0)))
        return lognormal(value / math.exp(sigma * normal_score(share)), sigma, longest)
    return _of_points(points, mean, longest)


def _scale(key: str) -> float:
    """p99 is a share of 0.99, p999 one of 0.999."""
    return float(10 ** len(key[1:]))


def _check(values: list[float], mean: float | None, longest: float) -> None:
    if any(value <= 0 for value in (*values, longest, *([mean] if mean is not None else []))):
        raise LengthsError("lengths are positive")
    if any(later < earlier for earlier, later in pairwise([*values, longest])):
        raise LengthsError("higher percentiles are longer, and none is above the maximum")
    if mean is not None and mean > longest:
        raise LengthsError("the mean is above the maximum")


def _of_mean(mean: float, sigma: float, longest: float) -> Lengths:
    """A cut lognormal with a mean: its median by bisection."""
    if mean >= longest:
        return constant(longest)
    low, high = mean * math.exp(-sigma * sigma), mean * math.exp(sigma * sigma)
    for _ in range(60):
        middle = math.sqrt(low * high)
        if lognormal(middle, sigma, longest).mean < mean:
            low = middle
        else:
            high = middle
    return lognormal(high, sigma, longest)


def _of_points(points: list[tuple[float, float]], mean: float | None, longest: float) -> Lengths:
    knots = [(normal_score(share), math.log(value)) for share, value in points]
    slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(knots)]
    tail = min(slopes[-1], STEEPEST)
    if mean is not None:
        tail = _tail_of(knots, slopes, mean, longest)
    made = _joined(knots, slopes, tail, longest)
    if mean is not None and not mean / AGREES <= made.mean <= mean * AGREES:
        raise LengthsError("the mean does not go with the percentiles")
    return made


def _joined(
    knots: list[tuple[float, float]], slopes: list[float], tail: float, longest: float
) -> Lengths:
    """Pieces through the knots; the first slope goes on below, `tail` above."""
    first, last = knots[0], knots[-1]
    pieces = [_Piece(-EXTREME, first[0], first[1] - slopes[0] * first[0], slopes[0])]
    for (low, value), (high, _), slope in zip(knots, knots[1:], slopes, strict=False):
        pieces.append(_Piece(low, high, value - slope * low, slope))
    pieces.append(_Piece(last[0], EXTREME, last[1] - tail * last[0], tail))
    return Lengths(tuple(pieces), longest)


def _tail_of(
    knots: list[tuple[float, float]], slopes: list[float], mean: float, longest: float
) -> float:
    """The slope above the last percentile that meets the declared mean as nearly as it can."""
    low, high = 0.0, 4.0 * max(*slopes, 1.0)
    for _ in range(50):
        middle = (low + high) / 2.0
        if _joined(knots, slopes, middle, longest).mean < mean:
            low = middle
        else:
            high = middle
    return high
