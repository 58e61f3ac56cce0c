"""What the simulation of continuous batching is made of: scenarios, a rank, and its clock."""

from __future__ import annotations

import math
import statistics
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from capcheck.physics.prompt import (
    prefill_seconds,
    prefill_share_seconds,
    prompt_attention_seconds,
)
from capcheck.physics.server import Server, Traffic
from capcheck.physics.step import decode_step
from capcheck.physics.work import Products, Work


class Shape(NamedTuple):
    """A distribution of lengths, tokens."""

    at: Callable[[float], float]  # of the share of lengths below
    mean: float
    median: float
    variation: float = 0.0  # squared coefficient of variation


def fixed(tokens: float) -> Shape:
    return Shape(lambda _: tokens, tokens, tokens)


def uniform(low: float, high: float) -> Shape:
    mean = (low + high) / 2.0
    variation = (high - low) ** 2 / 12.0 / mean**2
    return Shape(lambda share: low + share * (high - low), mean, mean, variation)


def lognormal(mean: float, sigma: float) -> Shape:
    middle = mean * math.exp(-sigma * sigma / 2.0)
    normal = statistics.NormalDist()
    return Shape(
        lambda share: middle * math.exp(sigma * normal.inv_cdf(share)),
        mean, middle, math.exp(sigma * sigma) - 1.0,
    )  # fmt: skip


class Scenario(NamedTuple):
    """A server, what it is asked, and how. Either `concurrency` or `rate` (1/s) is given."""

    server: Server
    prompt: Shape
    output: Shape
    requests: int  # in all
    concurrency: int | None = None
    rate: float | None = None
    burstiness: float = 1.0  # shape of the gamma distribution of the time between requests
    burst: bool = False  # all requests in flight come at once and count; else only steady state
    hit: float = 0.0  # share of each prompt that is cached
    cache_tokens: float = math.inf  # of each rank
    reserved: bool = False  # the whole output is reserved
    router: Literal["least", "random", "turn"] = "least"
    seed: int = 1

    @property
    def traffic(self) -> Traffic:
        """The same for the closed forms."""
        prompt, output = self.prompt, self.output
        context = prompt.mean + output.mean * (1.0 + output.variation) / 2.0
        return Traffic(
            prompt.mean,
            output.mean,
            context,
            prompt.median,
            prompt.variation,
            self.hit,
            output.variation,
            self.burstiness,
        )


@dataclass(eq=False)
class Request:
    """One request on its way."""

    issued: float
    prompt: int
    output: int
    cached: int
    todo: int  # prompt tokens to compute, recomputed ones included
    made: int = 0  # output tokens before the last admission
    ends: int = 0  # step of its lane that gives its last token; 0 while it prefills
    lane: int = 0
    first: float = math.nan
    done: float = math.nan

    @property
    def held(self) -> int:
        return self.prompt + self.made


@dataclass
class Lane:
    """A batch that steps together: one for each pipeline stage."""

    step: int = 0
    decoding: int = 0
    context: float = 0.0  # tokens of all that decode
    filling: deque[Request] = field(default_factory=deque)
    ends: dict[int, list[Request]] = field(default_factory=dict)


class Part(NamedTuple):
    """One rank's share of a step: decodes at a mean context, and chunks (new, before)."""

    decodes: int
    context: float
    chunks: list[tuple[int, int]]
    finished: list[Request]  # prompts
    ended: list[Request]


class Rank:
    """One data-parallel rank: a queue, a KV cache, and lanes."""

    def __init__(self, scenario: Scenario) -> None:
        self.limits = scenario.server.limits
        self.room = scenario.cache_tokens
        self.reserved = scenario.reserved
        self.lanes = [Lane() for _ in range(scenario.server.work.layout.pipeline)]
        self.waiting: deque[Request] = deque()
        self.running: dict[int, Request] = {}  # in order of admission
        self.used = 0.0
        self.preemptions = 0

    @property
    def load(self) -> int:
        return len(self.running) + len(self.waiting)

    def plan(self, number: int) -> Part:
        """The next step of a lane; tokens are booked at once."""
        lane = self.lanes[number]
        if not self.reserved:
            while self.used + lane.decoding > self.room and len(self.running) > 1:
                self._preempt()
        decodes = lane.decoding
        context = lane.context / decodes if decodes else 0.0
        if not self.reserved:
            self.used += decodes
        lane.step += 1
        lane.context += decodes
        chunks, finished = self._prompts(lane, number)
        ended = lane.ends.pop(lane.step, [])
        for one in ended:
            lane.decoding -= 1
            lane.context -= one.prompt + one.output
            self._leave(one)
        for one in finished:
            left = one.output - one.made - 1
            one.ends = lane.step + left
            if left <= 0:
                ended.append(one)
                self._leave(one)
            else:
                lane.ends.setdefault(one.ends, []).append(one)
                lane.decoding += 1
                lane.context += one.held + 1
        return Part(decodes, context, chunks, finished, ended)

    def _leave(self, one: Request) -> None:
        del self.running[id(one)]
        self.used -= one.prompt + one.output

    def _prompts(self, lane: Lane, number: int) -> tuple[list[tuple[int, int]], list[Request]]:
        budget = min(self.limits.step_tokens - lane.decoding, self.limits.chunk_tokens)
        most = self.limits.max_sequences
        chunks, finished = [], []
        while budget >= 1:
            if lane.filling:
                one = lane.filling[0]
            elif self.waiting and len(self.running) < most:
                one = self.waiting[0]
                need = one.prompt + one.output if self.reserved else one.held + 1
                if self.used + need > self.room and self.running:
                    break
                self.waiting.popleft()
                self.used += need
                self.running[id(one)] = one
                one.lane, one.ends = number, 0
                lane.filling.append(one)
            else:
                break
            new = int(min(one.todo, budget))
            chunks.append((new, one.held - one.todo))
            one.todo -= new
            budget -= max(new, 1)
            if one.todo == 0:
                finished.append(lane.filling.popleft())
        return chunks, finished

    def _preempt(self) -> None:
        """The last one admitted gives up its tokens and waits in front."""
        one = self.running.pop(next(reversed(self.running)))
        lane = self.lanes[one.lane]
        self.preemptions += 1
        if one.ends:
            made = one.output - (one.ends - lane.step)
            lane.ends[one.ends].remove(one)
            lane.decoding -= 1
            lane.context -= one.prompt + made
            self.used -= one.prompt + made
            one.made = made
        else:
            self.used -= one.held + 1
            lane.filling.remove(one)
        one.todo = one.held - one.cached
        self.waiting.appendleft(one)


class Clock:
    """Seconds of steps."""

    def __init__(self, server: Server) -> None:
        self.server = server
        self.work = server.work
        self.dense = server.work._replace(experts=Products(), moe_layers=0)
        self.known: dict[tuple[bool, float, int], float] = {}

    def decode(self, work: Work, decodes: float, context: float) -> float:
        key = (work is self.work, decodes, round(context / 16.0))
        if key not in self.known:
            step = decode_step(work, decodes, 16.0 * key[2], self.server.step)
            self.known[key] = step.seconds
        return self.known[key]

    def prompts(self, work: Work, part: Part) -> float:
        """What chunks add to a step of decodes; alone they also read the weights."""
        step, limits = self.server.step, self.server.limits
        chunk = max(1.0, min(limits.step_tokens, limits.chunk_tokens))
        added = sum(
            prefill_share_seconds(work, new, step, chunk, before) for new, before in part.chunks
        )
        if not part.chunks or work is not self.work:
            return added
        total = sum(new for new, _ in part.chunks)
        alone = prefill_seconds(work, total, step) - prompt_attention_seconds(work, total, step)
        alone += sum(
            prompt_attention_seconds(work, new, step, before) for new, before in part.chunks
        )
        if not part.decodes:
            return alone
        return max(added, alone - self.decode(work, part.decodes, part.context))

    def seconds(self, parts: list[Part]) -> float:
        """A step; of ranks that share experts as long as the slowest, at the mean expert load."""
        if len(parts) == 1:
            (one,) = parts
            decoding = self.decode(self.work, one.decodes, one.context) if one.decodes else 0.0
            return decoding + self.prompts(self.work, one)
        ranks = len(parts)
        own = max(
            (self.decode(self.dense, one.decodes, one.context) if one.decodes else 0.0)
            + self.prompts(self.dense, one)
            for one in parts
        )
        decodes = sum(one.decodes for one in parts) / ranks
        if decodes:
            context = sum(one.context * one.decodes for one in parts) / ranks / decodes
            own += self.decode(self.work, decodes, context)
            own -= self.decode(self.dense, decodes, context)
        step, limits = self.server.step, self.server.limits
        chunk = max(1.0, min(limits.step_tokens, limits.chunk_tokens))
        experts = sum(
            prefill_share_seconds(self.work, new, step, chunk, before)
            - prefill_share_seconds(self.dense, new, step, chunk, before)
            for one in parts
            for new, before in one.chunks
        )
        alone = max(
            prefill_seconds(self.work, sum(new for new, _ in one.chunks), step) for one in parts
        )
        return max(own + experts / ranks, alone)
