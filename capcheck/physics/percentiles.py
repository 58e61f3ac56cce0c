"""Percentiles of a replica's latencies, from the load model's state and the lengths. Seconds.

What `tails` needs is taken from the state: a request's own prompt, the prompts and the slot it
waits for, the prompts that others bring while it decodes, how full the batch is. A load that
begins with all its requests at once has an opening, in which they wait for each other; requests
that are all alike go on in waves as large as one step takes up.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.physics.balance import Balance
from capcheck.physics.lengths import Atom, Lengths
from capcheck.physics.load import Burst, LoadState
from capcheck.physics.queueing import slot_wait
from capcheck.physics.server import Server, Traffic, admitted
from capcheck.physics.tails import (
    SHORTEST,
    Decoding,
    Delay,
    FirstToken,
    decoding_beyond,
    first_token_beyond,
    fullness_spread,
    quantile,
    widened,
)

CELLS = 16  # of a distribution of lengths
ALIKE = 1e-3  # squared coefficient of variation below which lengths are alike
NUDGE = 0.02  # relative change of a batch for its elasticity
FULLEST = 0.995  # load at which a stationary wait is read at most
BUSIEST = 0.5  # share of the time that prompts take, at which their runs are read at most
DEVIATIONS = 2.33  # that a full batch is above its mean, at the 99th percentile
FAR = 100.0  # a time per output token is looked for up to so many prompts met for each


class Load(NamedTuple):
    """What comes to one replica."""

    prompt: Lengths
    output: Lengths
    concurrency: float | None = None  # None: requests arrive at a rate
    burst: Burst | None = None

    @property
    def alike(self) -> bool:
        """Whether all requests are."""
        return max(self.prompt.variation, self.output.variation) < ALIKE


class Percentiles:
    """Quantiles of both latencies in a solved state."""

    def __init__(
        self, server: Server, traffic: Traffic, state: LoadState, load: Load, sure: float = 1.0
    ) -> None:
        """`sure` is the share of the load that waits for a slot are read at."""
        self.server, self.traffic, self.state, self.load = server, traffic, state, load
        self.sure = sure
        self.ranks = float(server.work.layout.data)
        self.rate = state.requests_per_second / self.ranks
        self.closed = load.concurrency is not None
        self.balance = Balance(server, traffic)
        batch = state.decode_batch
        self.step = self.balance.parts(batch).seconds + self.balance.draft_seconds(batch)
        self.others = max(0.0, state.tpot_seconds - self.step / self.balance.gain)
        self.busy = min(self.others / state.tpot_seconds, BUSIEST) if self.others else 0.0
        self.first_token = self._closed_first() if self.closed else self._open_first()
        self.decoding = self._decoding()
        self._middle: float | None = None  # the median time per output token, once it is needed

    def ttft(self, share: float) -> float:
        """Seconds to first token that a share of the requests does not exceed."""
        parts = self.first_token
        longest = max(own for _, own in parts.own)
        spread = parts.evenly + parts.later + parts.opening_seconds + 20.0 * parts.delay.mean
        return quantile(lambda x: first_token_beyond(parts, x), share, 0.0, longest + spread)

    def tpot(self, share: float) -> float:
        """Seconds per output token that a share of the requests does not exceed."""
        parts = self.decoding
        most = (parts.wave + parts.opening_seconds) / SHORTEST
        most += parts.alone + FAR * max(parts.met, 1.0) * parts.prompt

        def at(probability: float) -> float:
            return quantile(lambda x: decoding_beyond(parts, x), probability, parts.alone, most)

        spread = self._fullness()
        if not spread:
            return at(share)
        if self._middle is None:
            self._middle = at(0.5)
        return widened(at(share), self._middle, spread, share)

    def _own(self) -> tuple[Atom, ...]:
        """Seconds to first token of each cell of prompts when nobody is ahead."""
        state, balance = self.state, self.balance
        waits = state.queued.mean + state.ahead.mean
        middle = balance.prefill_of(self.traffic.prompt_tokens)
        base = state.ttft_mean_seconds - waits - self._arriving() / 2.0
        factor = self.server.load.own_prefill_factor
        return tuple(
            Atom(share, max(0.0, base + factor * (balance.prefill_of(tokens) - middle)))
            for share, tokens in self.load.prompt.atoms(CELLS)
        )

    def _arriving(self) -> float:
        """Seconds of a step that a request arrives in the middle of."""
        step = self.state.tpot_seconds * self.balance.gain
        return min(1.0, 2.0 * self.server.load.waited_steps) * step

    def _ahead(self, mean: float) -> Delay:
        return Delay(self.busy, mean / self.busy) if self.busy > 0 else Delay(0.0, 0.0)

    def _open_first(self) -> FirstToken:
        """Requests that arrive at a rate."""
        state, delay = self.state, self._ahead(self.state.ahead.mean)
        if state.saturated:  # a backlog grows from nothing to twice its mean
            return FirstToken(self._own(), delay, self._arriving() + 2.0 * state.queued.mean)
        slots = admitted(self.server, self.traffic)[0]
        capacity = state.most_requests_per_second / self.ranks
        busy = min(self.sure * self.rate / capacity, FULLEST)
        wait = slot_wait(busy, slots, slots / capacity).mean
        if wait > 0:  # M/M/c: who waits does so for 1 / (capacity - rate)
            share = min(wait * capacity * (1.0 - busy), 1.0)
            delay = delay.plus(Delay(share, wait / share))
        return FirstToken(self._own(), delay, self._arriving())

    def _closed_first(self) -> FirstToken:
        """A number of requests in flight."""
        state, load = self.state, self.load
        share, opening = self._opening_share(), self._opening()
        evenly, delay = self._arriving(), Delay(0.0, 0.0)
        own = self._own()
        if load.alike:  # first tokens come at the end of the step, which not all begin with
            half = self._wave() / 2.0
            own = tuple(Atom(part, seconds + half) for part, seconds in own)
            evenly = max(evenly, half)
        else:
            delay = self._ahead(max(0.0, state.ahead.mean - share * opening / 2.0))
        inflight = (load.concurrency or 1.0) / self.ranks
        waiting = max(0.0, inflight - state.running)
        queue = waiting / self.rate if self.rate > 0 else 0.0  # Little's law
        if share > 0:
            opening += queue * waiting / inflight
        return FirstToken(own, delay, evenly, queue, share, opening)

    def _opening(self) -> float:
        """Seconds until the first tokens of all that began at once."""
        each = self.server.load.burst_factor * self.balance.share
        each += self.server.load.arrival_seconds
        return max(self.state.running - 1.0, 0.0) * each if self.load.burst else 0.0

    def _opening_share(self) -> float:
        """Of the requests, those that began at once."""
        if self.load.burst is None:
            return 0.0
        return min(1.0, (self.load.concurrency or 1.0) / max(self.load.burst.prompts, 1.0))

    def _wave(self) -> float:
        """Seconds of the prompts that come together when all requests are alike.

        As many as one step took up at the start: they end together and come together again.
        """
        fit = max(1.0, self.balance.chunk / max(self.balance.prompt, 1.0))
        together = max(min(self.state.running, fit) - 1.0, 0.0)
        return together * (self.balance.share + self.server.load.arrival_seconds)

    def _decoding(self) -> Decoding:
        state, balance, load = self.state, self.balance, self.load
        alone = state.tpot_seconds - self.others
        outputs = load.output.atoms(CELLS)
        if self.closed and load.alike:  # each of the others prefills once
            wave = min(self._wave(), self.others * balance.outputs)
            rest = state.tpot_seconds - wave / balance.outputs / 2.0
            return Decoding(outputs, rest, 0.0, 0.0, 0.0, wave=wave)
        met = self.rate * state.tpot_seconds
        if self.closed:
            met = max(state.running - 1.0, 0.0) / balance.outputs
        prompt = self.others / met if met > 0 else 0.0
        share = self._opening_share()
        return Decoding(outputs, alone, met, prompt, self._variation(), share, self._opening())

    def _variation(self) -> float:
        """Of the prompts that a request meets, more than a Poisson number of equal ones.

        Prompts lengthen the steps in which more arrive: at a rate their number is that of a
        branching process (Borel and Tanner), with variance over mean 1 / (1 - load)^2.
        """
        sizes = self.traffic.prompt_variation
        if self.closed:
            return sizes
        return (self._arrivals() + sizes) / (1.0 - self.busy) ** 2 - 1.0

    def _arrivals(self) -> float:
        """Variance over mean of the number of requests that arrive."""
        return 1.0 / max(self.traffic.burstiness, 1e-3)

    def _fullness(self) -> float:
        """Relative spread of TPOT from the batch that arrivals make."""
        batch = self.state.decode_batch
        if self.closed or batch <= 0:
            return 0.0
        more, less = batch * (1.0 + NUDGE), batch * (1.0 - NUDGE)
        steps = self.balance.parts(more).seconds / self.balance.parts(less).seconds
        elasticity = math.log(steps) / math.log(more / less)
        share = self.load.output.quantile(0.5) / self.load.output.mean
        spread = fullness_spread(elasticity, batch, share)
        spread *= math.sqrt((1.0 + self._arrivals()) / 2.0)  # Whitt, 1984: exponential holding
        room = max(admitted(self.server, self.traffic)[0] / batch - 1.0, 0.0)
        return min(spread, elasticity * room / DEVIATIONS)
