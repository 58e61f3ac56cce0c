"""The solved pace of one rank under a load."""

from __future__ import annotations

import math
from typing import NamedTuple


def _lognormal_median(mean: float, variance: float) -> float:
    return mean / math.sqrt(1.0 + variance / mean**2) if mean > 1e-12 else mean


class Rhythm(NamedTuple):
    """A solved rank. Seconds, requests."""

    batch: float  # that decode, mean over time
    rate: float  # requests a second
    tpot: float  # mean over output tokens
    first: float  # mean time to first token, without a wait for a slot or an opening burst
    certain: float  # of it what hardly differs between requests
    variance: float  # of it, from the own prompt and the steps
    ahead: float  # of it, for the prompts of others
    ahead_variance: float
    prompt: float  # seconds that one prompt adds to a step
    meeting: float  # prompts of others in a step
    steps: float  # from the end of a request to the end of the next

    @property
    def median(self) -> float:
        """The median time to first token.

        As a lognormal's of this mean and variance; with a rare wait at least as without one.
        """
        uncertain = max(self.first - self.certain, 0.0)
        alone = max(uncertain - self.ahead, 0.0)
        found = max(
            _lognormal_median(uncertain, self.variance + self.ahead_variance),
            _lognormal_median(alone, self.variance),
        )
        return max(self.certain + found, 0.0)

    def within(self, growing: float) -> Rhythm:
        """The same where the wait for others' prompts had no time to grow beyond so much."""
        if self.ahead <= 0 or growing <= 0:
            return self
        ahead = 1.0 / (1.0 / self.ahead + 1.0 / growing)
        shrunk = (ahead / self.ahead) ** 2 * self.ahead_variance
        return self._replace(
            ahead=ahead, first=self.first - self.ahead + ahead, ahead_variance=shrunk
        )
