"""A server and its traffic, as the load model takes them, and what a rank holds at once."""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from capcheck.physics.preemption import Room
from capcheck.physics.step import StepConstants
from capcheck.physics.work import Work

Limit = Literal["", "kv cache", "max sequences", "step tokens", "front end"]

MOST_RUNNING = 1e5  # requests in flight on one rank, where nothing else limits them


class LoadConstants(NamedTuple):
    """Fitted constants of an engine under load."""

    interference: float  # share of the others' prefill that a decoding request sees
    admission_seconds: float  # from the request's arrival to the scheduler, and back
    waited_steps: float  # decode steps before a prompt is taken up
    poll_share: float  # more of them for each step between two polls for requests
    balance_steps: float  # more of them where data-parallel ranks share experts
    own_prefill_factor: float  # own prefill in steps that also decode, over alone
    wave_share: float  # of the running prompts' mean wait, when near-equal lengths move in waves
    burst_factor: float  # of the mean wait of a burst of prompts at the start
    arrival_seconds: float  # serial cost of each request of a burst or wave, before its prefill
    front_end_seconds: float  # of each output token in a serial front end; 0: none
    prefill_first: float = 0.0  # 1: all prompts that wait are computed before the next decode step


class Traffic(NamedTuple):
    """What the requests look like. Tokens."""

    prompt_tokens: float  # mean, cached prefix included
    output_tokens: float  # mean
    context_tokens: float  # mean length of a request while it decodes
    median_prompt_tokens: float
    prompt_variation: float = 0.0  # squared coefficient of variation of the prompts
    prefix_hit_rate: float = 0.0  # share of the prompt that is cached
    output_variation: float = 0.0  # squared coefficient of variation of the outputs
    burstiness: float = 1.0  # 1 / that of the time between requests; 1: they come at random


class Limits(NamedTuple):
    """What keeps requests from running, on each data-parallel rank."""

    cache_requests: float = math.inf  # whose live tokens fit the KV cache
    max_sequences: float = math.inf
    step_tokens: float = math.inf  # token budget of a step
    chunk_tokens: float = math.inf  # largest prefill chunk, where smaller than the budget
    chunks_at_once: float = 1.0  # of one prompt, that pipeline stages work on at the same time
    room: Room | None = None  # where requests are admitted before they have all they will hold


class Speculation(NamedTuple):
    """Proposing tokens and verifying them in one step."""

    proposed: float  # tokens a step
    acceptance: float  # probability that a proposed token is accepted, 0 to 1
    draft: Work | None = None  # a draft model or its extra layers; None: proposals cost nothing
    draft_constants: StepConstants | None = None  # None: those of the main model


class Server(NamedTuple):
    """One replica."""

    work: Work
    step: StepConstants
    load: LoadConstants
    limits: Limits
    speculation: Speculation | None = None
    poll_steps: float = 1.0  # steps between two polls for new requests


def tokens_per_step(proposed: float, acceptance: float) -> float:
    """Expected tokens of a verified step, (1 - a^(k+1)) / (1 - a): k proposals at acceptance a.

    Leviathan, Kalman, Matias, "Fast Inference from Transformers via Speculative Decoding", 2023.
    """
    proposed, acceptance = max(proposed, 0.0), min(max(acceptance, 0.0), 1.0)
    if acceptance >= 1.0:
        return proposed + 1.0
    return (1.0 - float(acceptance ** (proposed + 1.0))) / (1.0 - acceptance)


def places(server: Server) -> tuple[float, Limit]:
    """The most requests that one rank holds at once, and what limits them: cache or sequences.

    At least one: an engine that starts runs a request.
    """
    found: list[tuple[float, Limit]] = [
        (server.limits.cache_requests, "kv cache"),
        (server.limits.max_sequences, "max sequences"),
        (MOST_RUNNING, ""),
    ]
    most, limit = min(found, key=lambda pair: pair[0])
    return max(most, 1.0), limit


def admitted(server: Server, traffic: Traffic) -> tuple[float, Limit]:
    """The most requests that one rank runs at once, and what limits them.

    What holds them, or a step's token budget, which decodes and the prompts that keep up with
    them must share.
    """
    limits, speculation = server.limits, server.speculation
    proposed = max(speculation.proposed, 0.0) if speculation else 0.0
    gain = tokens_per_step(proposed, speculation.acceptance) if speculation else 1.0
    new = traffic.prompt_tokens * (1.0 - min(max(traffic.prefix_hit_rate, 0.0), 1.0))
    prompts = gain * new / max(traffic.output_tokens, 1.0)
    budget = limits.step_tokens / (1.0 + proposed + prompts)
    if prompts > 0:
        budget = min(budget, limits.chunk_tokens / prompts)
    budget *= server.work.layout.pipeline
    most, limit = places(server)
    return (most, limit) if most <= budget else (max(budget, 1.0), "step tokens")
