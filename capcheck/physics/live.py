"""Tokens that are alive in the KV cache: the sum over requests in flight, and its quantiles.

A request in flight is seen in proportion to its duration (length-biased), some way through its
output: live tokens = prompt + an even share of a length-biased output. Prompts and outputs are
taken as independent. The quantile of the sum is found by adding distributions of atoms for a few
requests, and by a saddlepoint approximation (Lugannani and Rice, 1980) for many; neither passes
the largest possible sum.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from capcheck.physics.lengths import Atom, Lengths, normal_share

ATOMS = 36  # cells of a length distribution
GAUSS = ((5 / 18, 0.5 - math.sqrt(0.15)), (8 / 18, 0.5), (5 / 18, 0.5 + math.sqrt(0.15)))
FEW = 12  # requests below which distributions are added
CELLS = 48  # of an added distribution
BISECTIONS = 60
NEAR = 1 + 1e-9  # of two ends of a bisection: as good as one
REMEMBERED = 256  # distributions and quantiles; a deployment asks for the same ones many times
GUESSES = 24
CLOSE = 1.002  # of a factor: near enough
LARGEST_FACTOR = 64.0
ROUNDING = 1 + 1e-6
STEEPEST = 200.0  # of the tilt, in units of 1 / standard deviation of one request


class Live(NamedTuple):
    """Live tokens of one request in flight, as shares and tokens."""

    prompt: tuple[Atom, ...]
    output: tuple[Atom, ...]  # of the output so far, or all of it where it is reserved
    lengths: Lengths  # of the prompt, as declared
    extra: float  # tokens that every request holds besides, of a page not full

    @property
    def mean(self) -> float:
        """Tokens."""
        return _mean(self.prompt) + _mean(self.output) + self.extra

    @property
    def variance(self) -> float:
        """Tokens squared."""
        return _variance(self.prompt) + _variance(self.output)

    @property
    def longest(self) -> float:
        """The most tokens that a request is taken to hold."""
        top = max(atom.tokens for atom in self.prompt) + max(atom.tokens for atom in self.output)
        return top + self.extra


def _mean(atoms: Sequence[Atom]) -> float:
    return sum(atom.share * atom.tokens for atom in atoms)


def _variance(atoms: Sequence[Atom]) -> float:
    mean = _mean(atoms)
    return sum(atom.share * (atom.tokens - mean) ** 2 for atom in atoms)


@lru_cache(maxsize=REMEMBERED)
def live(prompt: Lengths, output: Lengths, *, reserved: bool = False, extra: float = 0.0) -> Live:
    """One request's live tokens. `reserved`: the whole output is held from the start."""
    mean = output.mean
    biased = [Atom(atom.share * atom.tokens / mean, atom.tokens) for atom in output.atoms(ATOMS)]
    if not reserved:
        # three-point Gauss quadrature of the even share
        biased = [
            Atom(atom.share * weight, atom.tokens * node)
            for atom in biased
            for weight, node in GAUSS
        ]
    return Live(prompt.atoms(ATOMS), tuple(biased), prompt, extra)


def mean_context(prompt: Lengths, output: Lengths) -> float:
    """Mean live tokens of a request while it decodes: E p + E o^2 / (2 E o)."""
    return prompt.mean + output.moment(2) / (2.0 * output.mean)


class Cumulants(NamedTuple):
    """Cumulant generating function of one part and its two derivatives at a tilt."""

    value: float
    slope: float
    curve: float


def tilted(atoms: Sequence[Atom], tilt: float) -> Cumulants:
    """The generating function of lengths at a tilt, 1 / tokens."""
    top = max(tilt * atom.tokens for atom in atoms)
    total = first = second = 0.0
    for share, tokens in atoms:
        weight = share * math.exp(tilt * tokens - top)
        total += weight
        first += weight * tokens
        second += weight * tokens * tokens
    mean = first / total
    return Cumulants(top + math.log(total), mean, max(0.0, second / total - mean * mean))


def _exceedance(one: Live, requests: float, tilt: float) -> tuple[float, float]:
    """(sum of live tokens, probability that it is exceeded) at a tilt above 0."""
    parts = (tilted(one.prompt, tilt), tilted(one.output, tilt))
    value = requests * (sum(part.value for part in parts) + tilt * one.extra)
    total = requests * (sum(part.slope for part in parts) + one.extra)
    curve = requests * sum(part.curve for part in parts)
    gap = max(tilt * total - value, 0.0)
    near = math.sqrt(2.0 * gap)
    steep = tilt * math.sqrt(curve)
    if near < 1e-3 or steep <= 0:
        return total, 0.5 if near < 1e-3 else 0.0
    density = math.exp(-gap) / math.sqrt(2.0 * math.pi)
    return total, min(max(1.0 - normal_share(near) + density * (1 / steep - 1 / near), 0.0), 0.5)


def sum_quantile(one: Live, requests: float, probability: float) -> float:
    """Tokens that the sum over `requests` in flight stays below with a probability above 0.5.

    A fraction of a request is interpolated.
    """
    if requests <= 0:
        return 0.0
    if one.variance <= (1e-9 * one.mean) ** 2:
        return requests * one.mean
    probability = min(max(probability, 0.5), 1.0 - 1e-9)
    if requests >= FEW:
        return _saddlepoint(one, requests, probability)
    whole = int(requests)
    part = requests - whole
    below = _added(one, whole, probability)
    return below + part * (_added(one, whole + 1, probability) - below) if part else below


@lru_cache(maxsize=REMEMBERED)
def _saddlepoint(one: Live, requests: float, probability: float) -> float:
    def over(tilt: float) -> bool:
        return _exceedance(one, requests, tilt)[1] > 1.0 - probability

    tilt = _largest(over, STEEPEST / math.sqrt(one.variance))
    total = _exceedance(one, requests, tilt)[0]
    return min(max(total, requests * one.mean), requests * one.longest)


@lru_cache(maxsize=REMEMBERED)
def _added(one: Live, requests: int, probability: float) -> float:
    """The quantile of a sum over a few requests.

    All but one prompt are added as atoms, by squaring; the last prompt's exact shares smooth them.
    """
    if requests == 0:
        return 0.0
    power = _merged(_pairs(one.prompt, one.output))
    rest = _merged((atom.tokens, atom.share) for atom in one.output)
    others = requests - 1
    while others:
        if others & 1:
            rest = _merged(_pairs(rest, power))
        others >>= 1
        if others:
            power = _merged(_pairs(power, power))
    return _mixed_quantile(rest, one.lengths, probability) + one.extra * requests


def _mixed_quantile(atoms: Sequence[Atom], smooth: Lengths, probability: float) -> float:
    """The quantile of atoms plus an independent length, by bisection."""
    low = min(atom.tokens for atom in atoms)
    high = max(atom.tokens for atom in atoms) + smooth.quantile(1.0)
    for _ in range(40):
        middle = (low + high) / 2.0
        share = sum(atom.share * smooth.share_below(middle - atom.tokens) for atom in atoms)
        if share < probability:
            low = middle
        else:
            high = middle
    return high


def _pairs(left: Sequence[Atom], right: Sequence[Atom]) -> list[tuple[float, float]]:
    """(tokens, share) of each sum, the shortest first. Plain pairs: there are thousands."""
    return sorted([(a + b, p * q) for p, a in left for q, b in right])


@lru_cache(maxsize=1)
def _edges() -> tuple[float, ...]:
    """Shares below which the cells of an added distribution end."""
    return tuple(normal_share(-4.0 + 8.0 * cell / (CELLS - 2)) for cell in range(CELLS - 1))


def _merged(pairs: Iterable[tuple[float, float]]) -> list[Atom]:
    """Sorted (tokens, share) in cells that are fine in the tails, each with its mean."""
    edges = _edges()
    found: list[Atom] = []
    share = weight = below = 0.0
    cell = 0
    for tokens, part in pairs:
        while cell < len(edges) and below + part / 2.0 >= edges[cell]:
            if share > 0:
                found.append(Atom(share, weight / share))
            share = weight = 0.0
            cell += 1
        share += part
        weight += part * tokens
        below += part
    if share > 0:
        found.append(Atom(share, weight / share))
    return found


def _largest(holds: Callable[[float], bool], most: float) -> float:
    """The largest number that a falling condition holds for, by bisection in the logarithm."""
    low, high = most * 1e-9, most
    if holds(high):
        return high
    for _ in range(BISECTIONS):
        if high <= low * NEAR:
            break
        middle = math.sqrt(low * high)
        if holds(middle):
            low = middle
        else:
            high = middle
    return high


def room_factor(
    prompt: Lengths,
    output: Lengths,
    requests: float,
    probability: float,
    capacity: float,
    *,
    reserved: bool = False,
    extra: float = 0.0,
) -> float:
    """By what factor all lengths may grow before the quantile of live tokens meets a capacity.

    Below 1: they exceed it already. Infinite: the declared maxima keep them below for ever.
    """

    def needed(factor: float) -> float:
        one = live(prompt.scaled(factor), output.scaled(factor), reserved=reserved, extra=extra)
        return sum_quantile(one, requests, probability)

    if requests <= 0:
        return math.inf
    low, high = 0.0, math.inf  # factors known to fit and not to
    factor = 1.0
    for _ in range(GUESSES):
        need = needed(factor)
        if need <= capacity * ROUNDING:
            low = factor
        else:
            high = factor
        guess = factor * capacity / need  # exact but for the declared maxima
        if low >= LARGEST_FACTOR:
            return math.inf
        if high <= 1.0 / LARGEST_FACTOR:
            return 0.0
        if high <= low * CLOSE:
            break
        factor = _between(low, high, guess)
    return low


def _between(low: float, high: float, guess: float) -> float:
    """A factor to try next: the guess, kept inside what is known and off its ends."""
    if high == math.inf:
        return min(max(guess * CLOSE, 1.5 * low), 4.0 * low)
    if low == 0.0:
        return max(min(guess / CLOSE, high / CLOSE), high / 4.0)
    return guess if low * CLOSE < guess < high / CLOSE else math.sqrt(low * high)
