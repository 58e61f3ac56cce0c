"""Percentiles of latencies, derived from what differs between requests. Seconds.

Time to first token differs by a request's own prompt and by whom it waits for; time per output
token by the prompts of others that it meets while it decodes, and by how full the batch is. Both
are mixtures over lengths: `*_beyond` is the share of requests above a latency, `quantile` turns
it round.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from capcheck.physics.lengths import Atom, normal_score, normal_share

HALVINGS = 60  # at most
EXACT = 1e-4  # relative
INSTANT = 1e-12  # seconds
LEAST_SHAPE = 100.0  # variance over nine squared means, beyond which a gamma is all at nothing
SHORTEST = 2.0  # output tokens: one token has no time between tokens


class Delay(NamedTuple):
    """A wait: none, or exponential."""

    share: float  # of the requests that wait
    mean: float  # of those, seconds

    def plus(self, other: Delay) -> Delay:
        """Either or both, with the mean of the sum."""
        share = 1.0 - (1.0 - self.share) * (1.0 - other.share)
        total = self.share * self.mean + other.share * other.mean
        return Delay(share, total / share) if share > 0 else Delay(0.0, 0.0)


class FirstToken(NamedTuple):
    """What time to first token is made of. Seconds."""

    own: Sequence[Atom]  # share of the prompts, and seconds to first token of who waits for none
    delay: Delay  # for a slot and for prompts ahead
    evenly: float  # and a wait that is uniform up to this: steps, waves, a backlog
    later: float = 0.0  # and the wait for a slot of those that come after an opening
    opening: float = 0.0  # share of the requests that come all at once
    opening_seconds: float = 0.0  # until the last of them has its first token


class Decoding(NamedTuple):
    """What time per output token is made of. Seconds."""

    outputs: Sequence[Atom]  # share of the requests, and their output tokens
    alone: float  # a step without others' prompts, per token
    met: float  # prompts that others bring while one token is made, on average
    prompt: float  # seconds that one adds
    variation: float  # squared coefficient of variation of those
    opening: float = 0.0  # share of the requests that come all at once
    opening_seconds: float = 0.0  # of all their prompts
    wave: float = 0.0  # seconds of prompts that come together with a request's own


def uniform_and_delay(seconds: float, evenly: float, delay: Delay) -> float:
    """Share of requests whose uniform wait up to `evenly`, plus a delay, is beyond `seconds`.

    P(aU + W > y) with W = 0 or exponential: the part with aU > y, and the integral of
    p exp(-(y - au) / m) over the rest.
    """
    if seconds < 0:
        return 1.0
    share, mean = delay
    if evenly <= INSTANT:
        return share * math.exp(-seconds / mean) if mean > INSTANT else 0.0
    edge = min(1.0, seconds / evenly)
    beyond = 1.0 - edge
    if share > 0 and mean > INSTANT:
        near = math.exp(-(seconds - edge * evenly) / mean)
        beyond += share * mean / evenly * (near - math.exp(-seconds / mean))
    return min(beyond, 1.0)


def first_token_beyond(parts: FirstToken, seconds: float) -> float:
    """Share of requests whose first token comes later than `seconds`."""
    total = 0.0
    for share, own in parts.own:
        left = seconds - own
        steady = uniform_and_delay(left - parts.later, parts.evenly, parts.delay)
        if parts.opening > 0:
            first = uniform_and_delay(left, parts.opening_seconds, Delay(0.0, 0.0))
            steady = parts.opening * first + (1.0 - parts.opening) * steady
        total += share * steady
    return total


def gamma_beyond(value: float, mean: float, variance: float) -> float:
    """Share of a gamma distribution above a value, by Wilson and Hilferty's cube root (1931).

    All of it at the mean when there is no variance.
    """
    if value <= 0:
        return 1.0
    if mean <= 0 or variance <= 0:
        return 1.0 if value < mean else 0.0
    square = 9.0 * mean * mean
    if square <= 0 or variance > LEAST_SHAPE * square:
        return 0.0  # almost all of it is at nothing
    nine = variance / square
    score = ((value / mean) ** (1.0 / 3.0) - 1.0 + nine) / math.sqrt(nine)
    return 1.0 - normal_share(score)


def decoding_beyond(parts: Decoding, seconds: float) -> float:
    """Share of requests whose time per output token is beyond `seconds`.

    Over n tokens a request meets a Poisson number of prompts, met x n on average: a compound sum
    with variance met x n x prompt^2 x (1 + variation), spread over n tokens. Those of an opening
    meet a uniform share of its prompts besides, those of a wave one of the wave's.
    """
    left = seconds - parts.alone
    mean = parts.met * parts.prompt
    total = 0.0
    for share, outputs in parts.outputs:
        tokens = max(outputs, SHORTEST)
        some = _Some.of(
            mean, mean * parts.prompt * (1.0 + parts.variation) / tokens, parts.met * tokens
        )
        beyond = _uniform_and_some(left, parts.wave / tokens, some)
        if parts.opening > 0:
            first = _uniform_and_some(left, parts.opening_seconds / tokens, some)
            beyond = parts.opening * first + (1.0 - parts.opening) * beyond
        total += share * beyond
    return total


class _Some(NamedTuple):
    """Seconds that are nothing for some requests, and gamma for a share of them."""

    share: float
    mean: float
    variance: float

    @classmethod
    def of(cls, mean: float, variance: float, count: float) -> _Some:
        """With a mean and variance of all, and a Poisson number of prompts of mean `count`."""
        share = -math.expm1(-count)
        if share <= 0 or mean <= 0:
            return cls(0.0, 0.0, 0.0)
        own = mean / share
        return cls(share, own, max((variance + mean * mean) / share - own * own, 0.0))

    def beyond(self, value: float) -> float:
        """Share of all requests."""
        return 1.0 if value <= 0 else self.share * gamma_beyond(value, self.mean, self.variance)


def _uniform_and_some(value: float, evenly: float, some: _Some) -> float:
    """Share of requests whose uniform part up to `evenly`, plus what some have, is beyond a value.

    The uniform part by three points of Gauss and Legendre, exactly where nobody has any.
    """
    if evenly <= INSTANT:
        return some.beyond(value)
    if some.share <= 0:
        return min(max(1.0 - value / evenly, 0.0), 1.0)
    return sum(
        weight * some.beyond(value - at * evenly)
        for at, weight in ((0.1127017, 5 / 18), (0.5, 8 / 18), (0.8872983, 5 / 18))
    )


def fullness_spread(elasticity: float, batch: float, outputs_share: float) -> float:
    """Standard deviation of TPOT over its mean, from how many requests decode at once.

    Requests that arrive at random keep Poisson many in flight (variance B) when a request's
    time does not depend on them. It does: TPOT rises with the batch at `elasticity` e, so that
    an excess is worked off at (1 - e) of the rate; variance B / (1 - e), correlated over
    1 / (1 - e) of a request's time (linearized birth and death process). A request that decodes
    for `outputs_share` of a mean request's time averages over it.
    """
    if batch <= 0 or elasticity <= 0:
        return 0.0
    left = max(1.0 - elasticity, 0.05)
    span = max(outputs_share, 1e-6) * left  # in correlation times
    averaged = 2.0 * (span - 1.0 + math.exp(-span)) / (span * span)
    return elasticity * math.sqrt(min(averaged, 1.0) / (batch * left))


def widened(value: float, median: float, spread: float, share: float) -> float:
    """A quantile with an independent normal part of relative deviation `spread` added."""
    return median + math.hypot(value - median, normal_score(share) * spread * median)


def quantile(beyond: Callable[[float], float], share: float, low: float, high: float) -> float:
    """The least value between two that all but 1 - `share` stay under, by bisection."""
    for _ in range(HALVINGS):
        if high - low <= EXACT * high:
            break
        middle = (low + high) / 2.0
        if beyond(middle) > 1.0 - share:
            low = middle
        else:
            high = middle
    return high
