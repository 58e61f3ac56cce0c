"""How often the running requests outgrow the KV cache, where the engine admits optimistically.

Requests hold what they have produced so far, not what they will: an engine that admits whoever
fits now preempts one of them when the sum of live tokens passes the cache.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.physics.lengths import normal_share
from capcheck.physics.live import Cumulants, Live, tilted

ROUNDS = 60  # of Newton's method, kept between known tilts
FAR = 8.0  # standard deviations that carry no probability


class Room(NamedTuple):
    """What running requests hold, and the tokens of one rank's KV cache."""

    one: Live
    tokens: float


def _sum_at(one: Live, requests: float, arriving: bool, tilt: float) -> Cumulants:
    """Of the live tokens of `requests`; of a Poisson number with this mean when `arriving`."""
    prompt, output = tilted(one.prompt, tilt), tilted(one.output, tilt)
    value = prompt.value + output.value + tilt * one.extra
    slope, curve = prompt.slope + output.slope + one.extra, prompt.curve + output.curve
    if not arriving:
        return Cumulants(requests * value, requests * slope, requests * curve)
    weight = requests * math.exp(min(value, 500.0))
    return Cumulants(weight - requests, weight * slope, weight * (curve + slope * slope))


def preemption_probability(room: Room, requests: float, *, arriving: bool = False) -> float:
    """Probability that at a moment the live tokens of `requests` exceed the cache.

    `arriving`: a Poisson number of requests with this mean, as arrivals at random make it.
    Saddlepoint approximation of Lugannani and Rice, 1980.
    """
    one, capacity = room
    if requests <= 0 or math.isinf(capacity):
        return 0.0
    if not arriving and requests * one.longest <= capacity:
        return 0.0
    rest = _sum_at(one, requests, arriving, 0.0)
    deviation = math.sqrt(rest.curve)
    if abs(capacity - rest.slope) >= FAR * deviation:
        return float(rest.slope > capacity)
    sign = 1.0 if capacity > rest.slope else -1.0
    low, far, tilt, now = 0.0, math.inf, 0.0, rest  # tilts on both sides, as sizes
    for _ in range(ROUNDS):
        if abs(now.slope - capacity) <= 1e-6 * capacity:
            break
        if (now.slope - capacity) * sign < 0:
            low = abs(tilt)
        else:
            far = abs(tilt)
        guess = abs(tilt + (capacity - now.slope) / now.curve) if now.curve > 0 else far
        most = min(far, 2.0 * low + 1.0 / deviation)
        inside = low < guess < most
        tilt = sign * (guess if inside else most if most < far else (low + far) / 2.0)
        now = _sum_at(one, requests, arriving, tilt)
    gap = max(tilt * capacity - now.value, 0.0)
    near = math.copysign(math.sqrt(2.0 * gap), tilt)
    steep = tilt * math.sqrt(now.curve)
    if abs(near) < 1e-3 or abs(steep) < 1e-3:
        return 1.0 - normal_share((capacity - rest.slope) / deviation)
    density = math.exp(-gap) / math.sqrt(2.0 * math.pi)
    found = 1.0 - normal_share(near) + density * (1.0 / steep - 1.0 / near)
    return min(max(found, 0.0), 1.0)
