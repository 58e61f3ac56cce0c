"""Percentiles of a solved state, beside a simulation of continuous batching step by step."""

from __future__ import annotations

import math

import physics_models as models
import pytest
from physics_constants import server
from simulated_rank import Scenario, Shape, fixed, lognormal
from simulation import Simulation

from capcheck.physics import lengths
from capcheck.physics.lengths import Lengths
from capcheck.physics.load import Burst, closed_loop, open_loop
from capcheck.physics.percentiles import Load, Percentiles
from capcheck.physics.server import Traffic

LLAMA = models.llama_8b()
HORIZON = 600.0


def chat(mean: float, sigma: float) -> tuple[Shape, Lengths]:
    return lognormal(mean, sigma), lengths.lognormal(mean * math.exp(-sigma * sigma / 2), sigma)


def alike(tokens: float) -> tuple[Shape, Lengths]:
    return fixed(tokens), lengths.constant(tokens)


class Compared:
    """A load in the simulation and in closed form."""

    def __init__(
        self,
        prompt: tuple[Shape, Lengths],
        output: tuple[Shape, Lengths],
        requests: int,
        concurrency: int | None = None,
        rate: float | None = None,
        burst: bool = False,
    ) -> None:
        replica = server(LLAMA)
        scenario = Scenario(
            replica, prompt[0], output[0], requests, concurrency=concurrency, rate=rate, burst=burst
        )
        run = Simulation(scenario)
        run.run()
        seen = run.all if burst else run.all[requests // 3 : requests * 9 // 10]
        self.first = sorted(one.first - one.issued for one in seen)
        self.tokens = sorted(
            (one.done - one.first) / (one.output - 1) for one in seen if one.output > 1
        )
        opening = Burst(float(requests)) if burst else None
        traffic = scenario.traffic
        if concurrency is not None:
            state = closed_loop(replica, traffic, concurrency, opening)
        else:
            state = open_loop(replica, traffic, rate or 0.0, HORIZON)
        load = Load(prompt[1], output[1], concurrency, opening)
        self.law = Percentiles(replica, traffic, state, load)

    def ttft(self, share: float) -> float:
        """Closed form over simulation."""
        return self.law.ttft(share) / self.first[int(share * len(self.first))]

    def tpot(self, share: float) -> float:
        """Closed form over simulation."""
        return self.law.tpot(share) / self.tokens[int(share * len(self.tokens))]


@pytest.mark.parametrize("rate", [4.0, 16.0, 26.0])
def test_random_arrivals_of_chat(rate: float) -> None:
    one = Compared(chat(400, 0.8), chat(200, 0.8), 2500, rate=rate)
    assert one.ttft(0.99) == pytest.approx(1.0, abs=0.25)
    assert one.tpot(0.99) == pytest.approx(1.0, abs=0.1)
    assert one.tpot(0.9) == pytest.approx(1.0, abs=0.06)


def test_long_prompts_and_short_outputs() -> None:
    """Half of the time goes to prompts, which come in runs: decodes of few tokens meet many."""
    one = Compared(chat(1500, 0.6), chat(60, 0.8), 2500, rate=12.0)
    assert one.tpot(0.99) == pytest.approx(1.0, abs=0.25)
    assert one.ttft(0.99) == pytest.approx(1.0, abs=0.25)


def test_a_closed_loop_that_began_at_once() -> None:
    """One in ten belongs to the opening: nine tenths of it are the last hundredth."""
    one = Compared(chat(500, 0.7), chat(300, 0.7), 640, concurrency=64, burst=True)
    assert one.ttft(0.99) == pytest.approx(1.0, abs=0.25)
    assert one.tpot(0.9) == pytest.approx(1.0, abs=0.1)
    assert one.tpot(0.99) == pytest.approx(1.0, abs=0.3)


def test_a_steady_closed_loop_has_no_opening() -> None:
    steady = Compared(chat(500, 0.7), chat(300, 0.7), 1500, concurrency=64)
    assert steady.ttft(0.99) == pytest.approx(1.0, abs=0.25)
    assert steady.tpot(0.99) == pytest.approx(1.0, abs=0.1)


def test_alike_requests_go_in_waves() -> None:
    """All sixteen prompts fit one step: they end together and come together again."""
    one = Compared(alike(512), alike(128), 1000, concurrency=16, burst=True)
    assert one.ttft(0.99) == pytest.approx(1.0, abs=0.15)
    assert one.ttft(0.5) == pytest.approx(1.0, abs=0.35)


def of(rate: float | None, concurrency: float | None = None) -> Percentiles:
    replica = server(LLAMA)
    prompt, output = lengths.lognormal(300, 0.8), lengths.lognormal(150, 0.8)
    traffic = Traffic(
        prompt.mean, output.mean, prompt.mean + output.mean / 2, 300.0, prompt.variation
    )
    if concurrency is not None:
        state = closed_loop(replica, traffic, concurrency)
    else:
        state = open_loop(replica, traffic, rate or 0.0, HORIZON)
    return Percentiles(replica, traffic, state, Load(prompt, output, concurrency))


def test_one_request_alone_meets_nobody() -> None:
    alone = of(None, 1.0)
    assert alone.tpot(0.99) == pytest.approx(alone.state.tpot_seconds)
    assert alone.ttft(0.99) > alone.ttft(0.5)  # its prompts differ


def test_tails_grow_with_the_rate() -> None:
    light, heavy = of(2.0), of(24.0)
    assert heavy.ttft(0.99) > light.ttft(0.99)
    assert heavy.tpot(0.99) / heavy.tpot(0.5) > light.tpot(0.99) / light.tpot(0.5)


def test_a_backlog_grows_evenly() -> None:
    """Waits from nothing to twice their mean: p99 over the median is 0.99 / 0.5."""
    over = of(200.0)
    assert over.state.saturated
    assert over.ttft(0.99) / over.ttft(0.5) == pytest.approx(1.98, rel=0.02)


@pytest.mark.parametrize("one", [of(2.0), of(24.0), of(None, 8.0), of(None, 100.0)])
def test_higher_percentiles_are_longer(one: Percentiles) -> None:
    for latency in (one.ttft, one.tpot):
        made = [latency(share) for share in (0.5, 0.9, 0.95, 0.99)]
        assert made == sorted(made)
        assert all(0 < value < math.inf for value in made)
