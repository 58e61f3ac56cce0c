"""A server's balance: what a decode batch costs, yields and sustains.

Per data-parallel rank. A decode batch B yields B / (outputs x TPOT(B)) requests a second; while
B decode, the prompts of others share their steps.
"""

from __future__ import annotations

import math
from typing import Literal, NamedTuple

from capcheck.physics.prompt import prefill_seconds, prefill_share_seconds
from capcheck.physics.step import StepConstants, StepParts, decode_step
from capcheck.physics.work import Work

Limit = Literal["", "kv cache", "max sequences", "step tokens", "front end"]

ROUNDS = 64  # of the fixed point at most; it is still after a few
STILL = 1e-7  # relative change
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


class Traffic(NamedTuple):
    """What the requests look like. Tokens."""

    prompt_tokens: float  # mean, cached prefix included
    output_tokens: float  # mean
    context_tokens: float  # mean length of a request while it decodes
    median_prompt_tokens: float
    prompt_variation: float = 0.0  # squared coefficient of variation of the prompts
    prefix_hit_rate: float = 0.0  # share of the prompt that is cached


class Limits(NamedTuple):
    """What keeps requests from running, on each data-parallel rank."""

    cache_requests: float = math.inf  # whose live tokens fit the KV cache
    max_sequences: float = math.inf
    step_tokens: float = math.inf  # token budget of a step
    chunk_tokens: float = math.inf  # largest prefill chunk, where smaller than the budget


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


def admitted(server: Server, traffic: Traffic) -> tuple[float, Limit]:
    """The most requests that one rank runs at once, and what limits them.

    The KV cache, the most sequences, or a step's token budget, which decodes and the prompts
    that keep up with them must share. At least one: an engine that starts runs a request.
    """
    limits, speculation = server.limits, server.speculation
    proposed = max(speculation.proposed, 0.0) if speculation else 0.0
    gain = tokens_per_step(proposed, speculation.acceptance) if speculation else 1.0
    new = traffic.prompt_tokens * (1.0 - min(max(traffic.prefix_hit_rate, 0.0), 1.0))
    prompts = gain * new / max(traffic.output_tokens, 1.0)
    budget = server.work.layout.pipeline * limits.step_tokens / (1.0 + proposed + prompts)
    found: list[tuple[float, Limit]] = [
        (limits.cache_requests, "kv cache"),
        (limits.max_sequences, "max sequences"),
        (budget, "step tokens"),
        (MOST_RUNNING, ""),
    ]
    most, limit = min(found, key=lambda pair: pair[0])
    return max(most, 1.0), limit


class Balance:
    """A server and its traffic, solved for the decode batch of one rank."""

    def __init__(self, server: Server, traffic: Traffic, running: float | None = None) -> None:
        """`running` requests of a closed loop; None: requests arrive at random."""
        self.server = server
        self.traffic = traffic
        self.neighbours = None if running is None else max(running - 1.0, 0.0)
        self.stages = float(server.work.layout.pipeline)
        self.outputs = max(traffic.output_tokens, 1.0)
        self.chunk = max(1.0, min(server.limits.step_tokens, server.limits.chunk_tokens))
        speculation = server.speculation
        self.proposed = max(speculation.proposed, 0.0) if speculation else 0.0
        accepted = speculation.acceptance if speculation else 0.0
        self.gain = tokens_per_step(self.proposed, accepted)
        self.prompt, cached = self._uncached(traffic.prompt_tokens)
        work, step = server.work, server.step
        self.prefill = prefill_seconds(work, self.prompt, step, self.chunk, cached)
        self.share = prefill_share_seconds(work, self.prompt, step, self.chunk, cached)
        self.share /= self.stages

    def _uncached(self, prompt: float) -> tuple[float, float]:
        hit = min(max(self.traffic.prefix_hit_rate, 0.0), 1.0)
        return prompt * (1.0 - hit), prompt * hit

    def prefill_of(self, prompt_tokens: float) -> float:
        """Seconds of a prompt alone, its cached prefix left out."""
        new, cached = self._uncached(prompt_tokens)
        return prefill_seconds(self.server.work, new, self.server.step, self.chunk, cached)

    def parts(self, batch: float) -> StepParts:
        """One step of a pipeline stage's share of the batch."""
        small = max(batch / self.stages, 1.0)  # who looks is in it
        context, step = self.traffic.context_tokens, self.server.step
        return decode_step(self.server.work, small, context, step, 1.0 + self.proposed)

    def draft_seconds(self, batch: float) -> float:
        """Proposing the tokens of a step."""
        speculation = self.server.speculation
        if speculation is None or speculation.draft is None or not self.proposed:
            return 0.0
        constants = speculation.draft_constants or self.server.step
        context = self.traffic.context_tokens
        return self.proposed * decode_step(speculation.draft, batch, context, constants).seconds

    def interference(self, batch: float) -> float:
        """Seconds that others' prompts add to each output token.

        In a closed loop each of the others prefills once while a request goes through its
        outputs; from random arrivals come as many prompts as the batch has outputs to give.
        """
        prompts = batch if self.neighbours is None else self.neighbours
        return self.server.load.interference * prompts * self.share / self.outputs

    def tpot(self, batch: float) -> float:
        """Seconds per output token at a decode batch."""
        step = self.parts(batch).seconds + self.draft_seconds(batch)
        return step / self.gain + self.interference(batch)

    def rate(self, batch: float) -> float:
        """Requests a second that a decode batch completes."""
        return batch / (self.outputs * self.tpot(batch)) if batch > 0 else 0.0

    def step_seconds(self, batch: float) -> float:
        """Seconds between two steps: others' prompts in them are bounded by the step's budget."""
        prompts = self.gain * self.interference(batch)
        most = self.share * max(1.0, self.chunk / max(self.prompt, 1.0))
        return self.gain * self.tpot(batch) - prompts + min(prompts, most)

    def first_token_seconds(self, batch: float, prefill: float) -> float:
        """From arrival to first token of a request that waits for nobody: admission, own prefill.

        A prompt of several chunks shares its steps with the decodes.
        """
        load, step = self.server.load, self.step_seconds(batch)
        waited = load.waited_steps + load.poll_share * max(self.server.poll_steps - 1.0, 0.0)
        if self.server.work.layout.data > 1 and self.server.work.moe_layers:
            waited += load.balance_steps
        chunks = max(0.0, math.ceil(self.prompt / self.chunk) - 1.0)
        shared = chunks * self.parts(batch).seconds
        return load.admission_seconds + load.own_prefill_factor * prefill + waited * step + shared

    def prompt_load(self, batch: float) -> float:
        """Share of the steps' time that goes to prompts, below 1."""
        return self.interference(batch) / self.tpot(batch)

    def batch_of(self, running: float, waiting: float = 0.0) -> float:
        """The largest decode batch that `running` requests sustain (Little's law).

        Those before their first token are taken off; `waiting` seconds are added to that time.
        """
        batch = running
        for _ in range(ROUNDS):
            decoding = self.outputs * self.tpot(batch)
            first = waiting + self.first_token_seconds(batch, self.prefill)
            new = running * decoding / (first + decoding)
            if abs(new - batch) <= STILL * batch:
                return new
            batch = new
        return batch
