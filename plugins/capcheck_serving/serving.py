"""One case as inputs of the load model: work, limits, traffic, and the state they lead to."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck import Case, Terms, Unknown
from capcheck.physics import lengths as distributions
from capcheck.physics.lengths import Lengths
from capcheck.physics.live import live, mean_context
from capcheck.physics.load import Burst, LoadState, closed_loop, open_loop
from capcheck.physics.preemption import Room
from capcheck.physics.server import Limits, Server, Traffic
from capcheck.values import unknown
from capcheck.workload import burstiness, concurrency, lengths, replicas, request_rate, share
from capcheck_serving.constants import load_constants, step_constants
from capcheck_serving.speculation import speculation
from capcheck_serving.works import packings, work

FIXED_SPREAD = 1e-3  # squared coefficient of variation below which lengths count as fixed


class Declared(NamedTuple):
    """The declared traffic of one replica. Tokens."""

    prompt: Lengths
    output: Lengths

    @property
    def fixed(self) -> bool:
        """Whether all requests are alike."""
        return max(self.prompt.variation, self.output.variation) < FIXED_SPREAD


def _lengths(case: Case, name: str, sigma: float) -> Lengths:
    figures = lengths(case.deployment, name)
    if figures is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, f"no {name} are declared"), "traffic")
    if "constant" in figures:
        return distributions.constant(figures["constant"])
    try:
        return distributions.fit(figures, sigma)
    except distributions.LengthsError as wrong:
        place = case.deployment.place_for("workload", name)
        raise Unknown(unknown(place, f"{name}: {wrong}"), "traffic") from wrong


def declared(case: Case, t: Terms) -> Declared:
    """Prompt and output lengths, no longer than the engine takes. Raises Unknown without any."""
    sigma = t.read("serving.length_sigma")
    most = case.plan.max_request_tokens.either(None)
    made = (_lengths(case, name, sigma) for name in ("prompt_tokens", "output_tokens"))
    return Declared(*(one if most is None else one.cut(float(most)) for one in made))


def limits(case: Case, t: Terms, one: Declared) -> Limits:
    """What keeps requests from running on one data-parallel rank."""
    plan = case.plan
    most = plan.max_sequences.either(None)
    step = plan.max_step_tokens.either(None)
    reserved = t.read("serving.reserved_output")
    # who runs is seen in proportion to its duration: twice what it holds halfway through
    output = 2.0 * (mean_context(one.prompt, one.output) - one.prompt.mean)
    cache, room = math.inf, None
    if not case.engine.fallback:
        cache = _cache_requests(case, t, one.prompt.mean + output * reserved)
        if reserved < 1.0:
            room = _room(case, one, cache)
    tokens = float(step or math.inf)
    at_once = t.read("serving.chunks_at_once")
    return Limits(cache, float(most or math.inf), tokens, tokens, at_once, room)


def _room(case: Case, one: Declared, requests: float) -> Room | None:
    """The live tokens of a rank's requests, and how many the KV cache holds of them."""
    if not math.isfinite(requests):
        return None
    page = 0.0 if len(case.plan.kv_dtype.options) > 1 else case.kv().block_tokens / 2.0
    held = live(one.prompt, one.output, extra=page)
    return Room(held, requests * held.mean)


def _cache_requests(case: Case, t: Terms, tokens: float) -> float:
    """Requests of so many tokens that the KV cache holds on one rank. Raises Unknown."""
    left = case.ledger(t).kv
    if len(case.plan.kv_dtype.options) > 1:  # its pages are not known either
        one = work(case).cache_bytes(tokens)
        return max(left, 0.0) / one if one > 0 else math.inf
    layout = case.kv()
    if not layout.block_bytes:
        return math.inf
    blocks = layout.request_blocks(math.ceil(tokens))
    return layout.blocks(left) / max(blocks, 1)


def server(case: Case, t: Terms, one: Declared) -> Server:
    """One replica. Raises Unknown."""
    return Server(
        work(case),
        step_constants(t.read, *packings(case)),
        load_constants(
            t.read, "fixed" if one.fixed else "varied", "burst" if is_burst(case) else "steady"
        ),
        limits(case, t, one),
        speculation(case, t),
        _poll_steps(case),
    )


def _poll_steps(case: Case) -> float:
    """Steps between two looks for new requests; each step where nobody tells."""
    stated = case.plan.poll_steps
    return float(max(1, stated.either(1))) if stated is not None else 1.0


def traffic(case: Case, one: Declared) -> Traffic:
    """What the requests look like, on average. A cache that is off hits nothing."""
    caching = case.plan.prefix_caching.either(True) is not False or case.engine.fallback
    return Traffic(
        one.prompt.mean,
        one.output.mean,
        mean_context(one.prompt, one.output),
        one.prompt.quantile(0.5),
        one.prompt.variation,
        share(case.deployment, "prefix_hit_rate") if caching else 0.0,
        one.output.variation,
        burstiness(case.deployment),
    )


def state(case: Case) -> LoadState:
    """The replica under the declared load, at the constants' mid. Raises Unknown.

    The bands of latencies are those of the residuals: what was measured over what this model
    predicts with exactly these constants. Moving them as well would count the spread twice.
    """
    key = ("serving state", id(case))
    cache = case.workshop.cache
    if key not in cache:
        t = case.terms()
        cache[key] = (state_at(case, t, declared(case, t)), case)
    made: LoadState = cache[key][0]
    return made


def state_if(case: Case, capacity: float) -> LoadState:
    """The state if the replica served `capacity` times what is predicted: at a rate over that."""

    def compute() -> LoadState:
        t = case.terms()
        return state_at(case, t, declared(case, t), capacity)

    return state(case) if capacity == 1.0 else case.once(f"serving state {capacity}", compute)


def state_at(case: Case, t: Terms, one: Declared, capacity: float = 1.0) -> LoadState:
    """The state at the declared load; a rate is taken over `capacity`."""
    made, flow = server(case, t, one), traffic(case, one)
    flight = concurrency(case.deployment)
    if flight is not None:
        requests, opening = max(flight.get("concurrency"), 1e-3), burst(case)
        if opening is not None:  # no more are in flight than there are
            requests = min(requests, opening.prompts)
        return closed_loop(made, flow, requests, opening)
    rate = request_rate(case.deployment)
    if rate is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "neither concurrency nor request_rate is declared"), "traffic")
    offered = max(rate.highest.get("request_rate") / capacity, 1e-6)
    lasting = t.read("serving.saturated_horizon")
    prompts = case.deployment.number("workload", "prompts")
    if prompts is not None:  # a test of so many ends before a backlog is older
        lasting = min(lasting, max(prompts.get("prompts"), 1.0) / offered)
    return open_loop(made, flow, offered / replicas(case.deployment), lasting)


def is_burst(case: Case) -> bool:
    """Whether all requests come at once at the start."""
    start = case.deployment.text("workload", "start")
    return start is not None and start.either("") == "burst"


def burst(case: Case) -> Burst | None:
    """The requests that come all at once; None when they do not."""
    prompts = case.deployment.number("workload", "prompts")
    if not is_burst(case) or prompts is None:
        return None
    return Burst(max(prompts.get("prompts"), 1.0))
