"""Continuous batching, step by step: the oracle that the closed forms of the load are held to.

A scheduler as vLLM's: each step decodes every running request, then computes prompts in chunks
from the head of the queue within the step's budget. Steps take what `capcheck.physics` says, so
only the law of the load is compared. Requests hold KV tokens as they grow and the last one
admitted is preempted and recomputed when there is no room, or they reserve their whole output.
Data-parallel ranks that share experts step together; pipeline stages pass batches on in turn.
"""

from __future__ import annotations

import heapq
import math
import random
import statistics
from typing import NamedTuple

from simulated_rank import Clock, Rank, Request, Scenario, Shape


class Outcome(NamedTuple):
    """What was measured. Seconds, requests."""

    tpot_mean: float
    ttft_mean: float
    ttft_median: float
    requests_per_second: float
    decode_batch: float  # on each rank, mean over time
    preempted: float  # preemptions for each request


class Simulation:
    """Ranks, arrivals and steps in the order of time."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.dice = random.Random(scenario.seed)
        self.clock = Clock(scenario.server)
        layout = scenario.server.work.layout
        ranks = [Rank(scenario) for _ in range(layout.data)]
        together = scenario.server.work.moe_layers > 0 and layout.data > 1
        self.units = [ranks] if together else [[one] for one in ranks]
        self.ranks = ranks
        self.stages = layout.pipeline
        self.free = [[0.0] * self.stages for _ in self.units]  # when each stage is
        self.idle = {(unit, lane) for unit in range(len(self.units)) for lane in range(self.stages)}
        self.events: list[tuple[float, int, int, int, Request | None]] = []
        self.count = self.issued = 0
        self.all: list[Request] = []
        self.prompts, self.outputs = (
            self._spread(shape) for shape in (scenario.prompt, scenario.output)
        )

    def _spread(self, shape: Shape) -> list[int]:
        """Lengths that are spread evenly over the distribution, in random order."""
        count = self.scenario.requests
        shares = [(index + self.dice.random()) / count for index in range(count)]
        self.dice.shuffle(shares)
        return [max(1, round(shape.at(share))) for share in shares]

    def _push(self, time: float, unit: int, lane: int, request: Request | None = None) -> None:
        self.count += 1
        heapq.heappush(self.events, (time, self.count, unit, lane, request))

    def issue(self, time: float) -> None:
        """A new request, at the scheduler after some way."""
        scenario, dice = self.scenario, self.dice
        if self.issued >= scenario.requests:
            return
        self.issued += 1
        prompt, output = self.prompts[self.issued - 1], self.outputs[self.issued - 1]
        cached = int(prompt * scenario.hit)
        one = Request(time, prompt, output, cached, prompt - cached)
        way = scenario.server.load.admission_seconds
        self.all.append(one)
        self._push(time + (dice.expovariate(1.0 / way) if way > 0 else 0.0), -1, 0, one)

    def _route(self, one: Request, time: float) -> None:
        ranks, router = self.ranks, self.scenario.router
        if router == "least":
            number = min(range(len(ranks)), key=lambda index: ranks[index].load)
        elif router == "random":
            number = self.dice.randrange(len(ranks))
        else:
            number = self.count % len(ranks)
        ranks[number].waiting.append(one)
        unit = number if len(self.units) > 1 else 0
        for lane in range(self.stages):
            if (unit, lane) in self.idle:
                self.idle.discard((unit, lane))
                self._push(time, unit, lane)
                return

    def _turn(self, time: float, unit: int, lane: int) -> None:
        free = self.free[unit]
        if free[0] > time:
            self._push(free[0], unit, lane)
            return
        parts = [rank.plan(lane) for rank in self.units[unit]]
        if not any(part.decodes or part.chunks for part in parts):
            self.idle.add((unit, lane))
            return
        each, end = self.clock.seconds(parts) / self.stages, time
        for stage in range(self.stages):
            end = max(end, free[stage]) + each
            free[stage] = end
        for part in parts:
            for one in part.finished:
                one.first = end if math.isnan(one.first) else one.first
            for one in part.ended:
                one.done = end
                if self.scenario.concurrency is not None:
                    self.issue(end)
        self._push(end, unit, lane)

    def run(self) -> Outcome:
        """All requests to their end."""
        scenario = self.scenario
        if scenario.concurrency is not None:
            cycle = scenario.output.mean * self.clock.decode(self.clock.work, 1, 100.0)
            for _ in range(scenario.concurrency):
                self.issue(0.0 if scenario.burst else self.dice.uniform(0.0, cycle))
        elif scenario.rate is not None:
            shape, time = scenario.burstiness, 0.0
            for _ in range(scenario.requests):
                time += self.dice.gammavariate(shape, 1.0 / (shape * scenario.rate))
                self.issue(time)
        while self.events:
            time, _, unit, lane, request = heapq.heappop(self.events)
            if request is not None:
                self._route(request, time)
            else:
                self._turn(time, unit, lane)
        return self._outcome()

    def _outcome(self) -> Outcome:
        """All requests of a burst, else those issued between a third and nine tenths of all."""
        count = len(self.all)
        if self.scenario.burst:
            chosen, begin = self.all, 0.0
            end = max(one.done for one in chosen)
            tokens_done = sum(one.output for one in chosen)
        else:
            ordered = sorted(self.all, key=lambda one: one.issued)
            chosen = ordered[count // 3 : count * 9 // 10]
            begin, end = chosen[0].issued, chosen[-1].issued
            tokens_done = sum(one.output for one in self.all if begin < one.done <= end)
        first = [one.first - one.issued for one in chosen]
        tokens = [(one.done - one.first) / (one.output - 1) for one in chosen if one.output > 1]
        decoding = sum(max(0.0, min(one.done, end) - max(one.first, begin)) for one in self.all)
        return Outcome(
            statistics.fmean(tokens),
            statistics.fmean(first),
            statistics.median(first),
            tokens_done / self.scenario.output.mean / (end - begin),
            decoding / (end - begin) / len(self.ranks),
            sum(rank.preemptions for rank in self.ranks) / count,
        )


def simulate(scenario: Scenario) -> Outcome:
    """Run it."""
    return Simulation(scenario).run()
