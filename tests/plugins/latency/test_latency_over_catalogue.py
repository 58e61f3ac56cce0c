"""What physics says of latency, over every model of the catalogue.

More bandwidth or compute is never slower, a longer context never faster, and no token comes
sooner than its weights can be read.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from capcheck.physics.load import LoadState, closed_loop
from capcheck.physics.server import Server, Traffic
from capcheck.physics.step import touched_share
from capcheck.testing import Bench
from capcheck.values import Unknown
from capcheck_serving import serving

PARTS = (
    ("nvidia/h100-sxm5-80gb", 8), ("nvidia/b200-180gb", 4), ("amd/mi300x-192gb", 4),
    ("nvidia/l40s", 2), ("nvidia/rtx-4090", 1), ("nvidia/a100-sxm4-80gb", 8),
)  # fmt: skip
ENGINES = ("vllm", "sglang", "tensorrt-llm")
SLACK = 1.0 + 1e-6
FEWEST = 250


class Solved(NamedTuple):
    """A replica of one model, and its traffic."""

    name: str
    server: Server
    traffic: Traffic
    requests: float

    def state(self, **machine: float) -> LoadState:
        """Under its load, on a machine with some figures scaled."""
        work = self.server.work
        made = work.machine
        scaled = made._replace(**{key: getattr(made, key) * by for key, by in machine.items()})
        return closed_loop(
            self.server._replace(work=work._replace(machine=scaled)), self.traffic, self.requests
        )

    def computing(self, faster: float) -> LoadState:
        """On a machine that computes so much faster, whatever the dtype."""
        work = self.server.work
        quick = work._replace(
            dense=work.dense._replace(peak_seconds=work.dense.peak_seconds / faster),
            head=work.head._replace(peak_seconds=work.head.peak_seconds / faster),
            experts=work.experts._replace(peak_seconds=work.experts.peak_seconds / faster),
            machine=work.machine._replace(attention_flops=work.machine.attention_flops * faster),
        )
        return closed_loop(self.server._replace(work=quick), self.traffic, self.requests)


def spec(model: str) -> str:
    mark = zlib.crc32(model.encode())
    part, devices = PARTS[mark % len(PARTS)]
    engine = ENGINES[mark // 7 % len(ENGINES)]
    size = {"vllm": "tensor_parallel_size", "sglang": "tp_size"}.get(engine, "tensor_parallel_size")
    return json.dumps({
        "apiVersion": "capcheck/v1", "kind": "Deployment", "name": "one",
        "model": {"id": model},
        "hardware": {"accelerator": part, "count": devices},
        "engine": {"name": engine, "args": {size: devices}},
        "workload": {
            "prompt_tokens": {"p50": 700, "p95": 2500}, "output_tokens": {"p50": 200, "p95": 700},
            "concurrency": 1 + mark % 60,
        },
    })  # fmt: skip


def solved() -> Iterator[Solved]:
    bench = Bench()
    for model in bench.session.catalogue.ids("model"):
        case = bench.cases(spec(model))[0]
        terms = case.terms()
        try:
            one = serving.declared(case, terms)
            server = serving.server(case, terms, one)
        except Unknown:
            continue
        requests = float(1 + zlib.crc32(model.encode()) % 60)
        yield Solved(model, server, serving.traffic(case, one), requests)


@pytest.fixture(scope="module")
def everything() -> list[Solved]:
    return list(solved())


def test_most_models_are_predicted(everything: list[Solved]) -> None:
    assert len(everything) > FEWEST


def test_figures_are_finite_and_in_order(everything: list[Solved]) -> None:
    for one in everything:
        state = one.state()
        figures = (state.tpot_seconds, state.ttft_mean_seconds, state.output_tokens_per_second)
        assert all(math.isfinite(figure) and figure > 0 for figure in figures), one.name
        most = state.most_requests_per_second
        assert state.requests_per_second <= most * SLACK, one.name


def test_no_token_comes_sooner_than_its_weights_are_read(everything: list[Solved]) -> None:
    for one in everything:
        work = one.server.work
        touched = touched_share(1.0, work.expert_count, work.experts_per_token, 1.0)
        read = work.dense.bytes + work.head.bytes + work.experts.bytes * touched
        assert one.state().tpot_seconds > read / work.machine.bandwidth, one.name


def test_more_bandwidth_is_never_slower(everything: list[Solved]) -> None:
    for one in everything:
        state, faster = one.state(), one.state(bandwidth=1.3)
        assert faster.tpot_seconds <= state.tpot_seconds * SLACK, one.name
        assert faster.ttft_mean_seconds <= state.ttft_mean_seconds * SLACK, one.name


def test_more_compute_is_never_slower(everything: list[Solved]) -> None:
    for one in everything:
        state, faster = one.state(), one.computing(1.3)
        assert faster.tpot_seconds <= state.tpot_seconds * SLACK, one.name
        assert faster.ttft_mean_seconds <= state.ttft_mean_seconds * SLACK, one.name


def test_a_longer_context_is_never_faster(everything: list[Solved]) -> None:
    for one in everything:
        longer = one.traffic._replace(context_tokens=2.0 * one.traffic.context_tokens)
        state = one._replace(traffic=longer).state()
        assert state.tpot_seconds >= one.state().tpot_seconds / SLACK, one.name
