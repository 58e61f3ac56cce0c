"""Continuous batching in steps: who decodes, whose prompts come into whose steps.

Each step decodes every running request and computes prompts within a budget of tokens. A closed
loop's requests advance with the steps: one comes back some steps after it ended, so its law is
solved in steps. Requests at a rate come in time: the longer a step, the more prompts in the next.
All figures are of one data-parallel rank; a pipeline's stages each have a batch on the way.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.physics.balance import Balance
from capcheck.physics.queueing import (
    budget_load,
    company,
    gated_wait,
    peakedness,
    residual_steps,
)
from capcheck.physics.rhythm import Rhythm

ROUNDS = 16  # of the fixed points at most; they are still after a few
STILL = 1e-4  # relative change
NEARLY = 0.02  # of an elasticity: less is none
LEAST_ROOM = 0.05  # of batches that grow with their steps, at most twentyfold
FULL = 0.999  # share of the time that prompts take at most, at a rate


class _Steps(NamedTuple):
    """A closed loop in steps."""

    decode: float  # seconds of a step without prompts
    prompt: float  # seconds that a prompt adds
    meeting: float  # others' prompts a step
    away: float  # steps from the end of a request to the scheduler's next look
    queue: float  # steps of prompts ahead
    length: float  # steps from the end of a request to the end of the next
    own: float  # steps of the own prompt
    share: float  # of a step's budget that a prompt takes
    used: float  # share of the budget in use

    @property
    def full(self) -> float:
        """Seconds of a step that has as many prompts as its budget takes."""
        return self.decode + self.prompt / self.share if self.share > 0 else self.decode

    def seconds(self, more: float = 0.0) -> float:
        """A step, with `more` prompts than by chance."""
        return self.decode + (self.meeting + more) * self.prompt


def _closed_steps(balance: Balance, running: float, way: float | None) -> _Steps:
    """Requests come back `way` seconds after their last token; None: others wait already."""
    others, lanes, steps = balance.others(running), balance.stages, balance.steps
    decoding, share = min(running, balance.most), balance.budget_share
    found = _Steps(balance.step(decoding), 0.0, 0.0, 0.0, 0.0, steps, 1.0, 0.0, 0.0)
    for _ in range(ROUNDS):
        away = 0.0
        if way is not None:
            late = balance.server.load.waited_steps - 0.5
            away = max(0.0, residual_steps(found.seconds() / lanes, way) / lanes + late)
        own = balance.chunks(min(decoding, balance.most))
        used = budget_load(running, steps + away + own, share / lanes, balance.spread)
        queue = min(balance.spread * used / (1.0 - used), others) * share / lanes
        length = steps + away + own + queue
        before, decoding = decoding, 1.0 + others * steps / length
        decode, meeting = balance.step(decoding), others / length / lanes
        prompt = balance.added(decode, meeting, own)
        found = _Steps(decode, prompt, meeting, away, queue, length, own, share, used)
        if abs(decoding - before) <= STILL * before:
            break
    return found


def closed_rhythm(
    balance: Balance, running: float, way: float | None, together: float = 0.0
) -> Rhythm:
    """`running` requests that each come back `way` seconds after their last token.

    None: others wait for their place. `together`: more prompts of others come in the step of
    one's own than by chance.
    """
    found = _closed_steps(balance, running, way)
    load = balance.server.load
    busy, own = balance.busy(running), found.own
    met = max(0.0, found.meeting * balance.steps - together / balance.stages)
    tpot = found.decode + load.interference * met / balance.steps * found.prompt
    beside = found.meeting * max(0.0, 1.0 - found.share) + together
    # a group that came together is followed by others of as many
    follows = max(0.0, 1.0 - (together + 1.0) / running) if running > 0 else 0.0
    step, full = found.seconds(together * follows), found.full
    queue, joined = found.queue * full, beside * balance.share * balance.stages
    mine = balance.own_seconds(found.decode, joined, own) - joined + (own - 1.0) * found.decode
    alone = load.own_prefill_factor * balance.prefill
    own_mean = busy * mine + (1.0 - busy) * alone
    certain = (way or 0.0) + busy * found.decode + (1.0 - balance.elasticity) * own_mean
    waits = max(0.0, found.away * step - (way or 0.0)) + balance.more_steps * step
    first = (way or 0.0) + busy * (found.decode + waits + queue + joined) + own_mean
    square = (1.0 + balance.variation) * found.prompt**2
    variance = balance.variation * own_mean**2
    variance += busy * (found.away**2 * found.meeting * square + step * step / 12.0)
    # of who waits, as exponential; a loop that is never short of prompts hardly varies
    varied = (2.0 / max(found.used, 0.1) - 1.0) * (1.0 - found.used)
    ahead_variance = busy * (beside * square + varied * queue**2)
    rate = running / (first + balance.steps * tpot)
    return Rhythm(
        rate * balance.steps * tpot, rate, tpot / balance.gain, first, certain, variance,
        busy * (queue + joined), ahead_variance, found.prompt, found.meeting, found.length,
    )  # fmt: skip


def open_rhythm(balance: Balance, rate: float, full: Rhythm) -> Rhythm:
    """Requests that arrive at a rate below the capacity; `full`: as many run as can.

    Solved twice: how much slower a fuller batch is tells how its size varies.
    """
    found, room = _settled(balance, rate, full.batch, 1.0)
    if LEAST_ROOM < room < 1.0 - NEARLY:
        found, _ = _settled(balance, rate, full.batch, room, (found.batch, -room))
    return found._replace(batch=min(found.batch, full.batch), tpot=min(found.tpot, full.tpot))


def _settled(
    balance: Balance,
    rate: float,
    most: float,
    room: float,
    known: tuple[float, float] | None = None,
) -> tuple[Rhythm, float]:
    """Little's law, B = rate x seconds(B), and 1 - the elasticity of these seconds.

    By secants: the seconds grow about linearly with B. `known` is a batch near it and the slope.
    """
    low, high = 0.0, most
    if known is None:
        found = _open_at(balance, rate, 0.0, room)
        left, batch, slope = found.batch, min(found.batch, most), -1.0
    else:
        left, batch, slope = 0.0, min(known[0], most), known[1]
    for turn in range(ROUNDS):
        found = _open_at(balance, rate, batch, room)
        gap = found.batch - batch
        if abs(gap) <= STILL * batch or high <= low * (1.0 + STILL):
            break
        if turn or known is None:
            slope = (gap - left) / (batch - low) if batch > low else slope
        if gap > 0:
            low, left = batch, gap
        else:
            high = batch
        following = batch - gap / slope if slope < 0 else high
        batch = following if low < following < high else (low + high) / 2.0
        if gap > 0 and batch >= most * (1.0 - STILL):
            batch = most
    return found, min(max(-slope, 0.0), 1.0)


class _Meeting(NamedTuple):
    """Prompts in the steps of requests at a rate."""

    decode: float  # seconds of a step without prompts
    prompt: float  # seconds that a prompt adds
    taken: float  # seconds of a step that prompts take
    prompts: float  # in a step

    @property
    def step(self) -> float:
        """Seconds, prompts included."""
        return self.decode + self.taken

    @property
    def used(self) -> float:
        """The share of the time that prompts take."""
        return min(self.taken / self.step, FULL)


def _meeting_at(balance: Balance, rate: float, batch: float, room: float) -> _Meeting:
    """Who decodes sees others as they are seen by their number: B + variance / mean.

    Fuller batches are slower and so stay full: births and deaths with the seconds T(B) have
    1 / (1 - d ln T / d ln B) times the variance, `room` is that difference.
    """
    arrivals, lanes = 1.0 / balance.traffic.burstiness, balance.stages
    seen = batch + lanes * peakedness(arrivals, balance.traffic.output_variation) / room
    decode, own = balance.mean_step(seen, batch), balance.chunks(batch)
    most = balance.budget(batch) / balance.prompt if balance.prompt > 0 else math.inf
    each = rate / lanes

    def at(step: float) -> _Meeting:
        prompts = min(each * step, most)
        prompt = balance.added(decode, prompts, own)
        return _Meeting(
            decode, prompt, prompts * prompt * balance.server.load.interference, prompts
        )

    below, low = at(decode), decode
    step = min(decode / (1.0 - min(below.taken / decode, 0.5)), decode + below.taken * 2.0)
    found = below
    for _ in range(ROUNDS):  # secants on the step that brings itself as many prompts
        found = at(step)
        gap, lower = decode + found.taken - step, decode + below.taken - low
        if abs(gap) <= STILL * step or step == low:
            break
        slope = (gap - lower) / (step - low)
        low, below = step, found
        following = step - gap / slope if slope < 0.0 else decode + found.taken
        step = max(following, decode)
    return found


def _open_at(balance: Balance, rate: float, batch: float, room: float) -> Rhythm:
    """The state when steps are as long as with `batch` requests that decode."""
    load, lanes, steps = balance.server.load, balance.stages, balance.steps
    found, own = _meeting_at(balance, rate, batch, room), balance.chunks(batch)
    step, prompt, each = found.step, found.prompt, rate / lanes
    arrivals, square = 1.0 / balance.traffic.burstiness, 1.0 + balance.variation
    busy = -math.expm1(-min((batch + found.used) * balance.ranks, 700.0))
    share = balance.prompt / balance.budget(batch)
    beside = max(0.0, 1.0 - share)
    uneven = balance.uneven(found.prompts)
    ahead = gated_wait(found.used, each, square * prompt**2 / uneven, beside)
    # a budget for one prompt at a time: the server of prompts decodes in its steps too
    whole = prompt / uneven + share * found.decode
    busy_time = min(each * whole, FULL)
    queue = busy_time * whole * square / (2.0 * (1.0 - busy_time))
    waited = queue / (found.decode + prompt / share) if share > 0 and queue > ahead else 0.0
    ahead = max(ahead, queue) * (arrivals + balance.variation) / square
    near = 2.0 * company(each * (step + prompt) / 2.0, arrivals)
    ahead = max(0.0, ahead + near * balance.share * lanes)
    mine = balance.own_seconds(found.decode, 0.0, own) + (own - 1.0) * found.decode
    alone = load.own_prefill_factor * balance.prefill
    own_mean = busy * mine + (1.0 - busy) * alone
    certain = load.admission_seconds + busy * found.decode
    late = (load.waited_steps - 0.5 + balance.more_steps) * step
    waits = busy * max(0.0, (0.5 / lanes + found.used * beside) * step + late)
    first = certain + waits + ahead + own_mean
    certain += (1.0 - balance.elasticity) * own_mean
    variance = balance.variation * own_mean**2
    variance += busy * step * step / 12.0
    ahead_variance = ahead**2 * (2.0 / max(found.used, 0.1) - 1.0)
    inside = each * (first - load.admission_seconds)
    behind = inside + company(inside, arrivals) - found.prompts * (own + waited)
    tpot = _decoding_step(balance, found, behind)
    return Rhythm(
        rate * steps * tpot, rate, tpot / balance.gain, first, certain, variance,
        ahead, ahead_variance, prompt, found.prompts, math.inf,
    )  # fmt: skip


def _decoding_step(balance: Balance, found: _Meeting, behind: float) -> float:
    """Seconds of a step that a request decodes in; `behind` it more prompts wait than usual.

    A decode begins when the queue behind is as long as its own first token took (FCFS), and ends
    when it is as any step leaves it: the work between, and what comes meanwhile, is met. Queues
    forget as a reflected Brownian motion does, in load x E P^2 / E P / 2 (1 - load)^2
    (Whitt, 1989).
    A step's budget bounds what a decode can meet.
    """
    room = 1.0 - found.used
    taken = found.prompt * balance.server.load.interference
    more = max(0.0, behind) * taken / room
    memory = found.used * taken * (1.0 + balance.variation) / (2.0 * room**2)
    lasting = balance.steps * found.step
    if memory > 0:
        more *= -math.expm1(-lasting / memory)
    mean = found.step + more / balance.steps
    most = balance.budget(0.0) / balance.prompt if balance.prompt > 0 else math.inf
    return min(mean, found.decode + most * taken)
