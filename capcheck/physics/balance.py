"""What steps and prompts of a traffic cost a server, on one data-parallel rank.

While some requests decode, the prompts of others share their steps.
"""

from __future__ import annotations

import math

from capcheck.physics.prompt import (
    pipelined_share,
    prefill_seconds,
    prefill_share_seconds,
    prompt_attention_seconds,
)
from capcheck.physics.queueing import most_of_poisson
from capcheck.physics.server import Server, Traffic, admitted, tokens_per_step
from capcheck.physics.step import StepParts, decode_step
from capcheck.physics.work import Products

ALIKE = 1e-3  # squared coefficient of variation below which lengths are alike
LEAST_TOKENS = 1e-6  # of a prompt: less is none


class Balance:
    """The costs of a server under a traffic."""

    def __init__(self, server: Server, traffic: Traffic) -> None:
        self.server = server
        self.traffic = traffic
        self.stages = float(server.work.layout.pipeline)
        self.outputs = max(traffic.output_tokens, 1.0)
        self.chunk = max(1.0, min(server.limits.step_tokens, server.limits.chunk_tokens))
        speculation = server.speculation
        self.proposed = max(speculation.proposed, 0.0) if speculation else 0.0
        accepted = speculation.acceptance if speculation else 0.0
        # no step gives more tokens than are left behind the first
        self.gain = min(tokens_per_step(self.proposed, accepted), max(self.outputs - 1.0, 1.0))
        self.prompt, cached = self._uncached(traffic.prompt_tokens)
        work, step = server.work, server.step
        self.variation = max(traffic.prompt_variation, 0.0)
        longer = self._convexity(cached)
        self.prefill = self._alone(self.prompt, cached) + longer
        self.share = prefill_share_seconds(work, self.prompt, step, self.chunk, cached) + longer
        self.share /= self.stages
        self._lockstep(cached)
        self.most, _ = admitted(server, traffic)
        self.steps = self.outputs / self.gain  # that decode one request
        self.spread = (1.0 + self.variation) / 2.0  # of the tokens
        self.elasticity = self._elasticity()
        self.variation *= self.elasticity**2  # of the seconds

    def _uncached(self, prompt: float) -> tuple[float, float]:
        hit = min(max(self.traffic.prefix_hit_rate, 0.0), 1.0)
        new = prompt * (1.0 - hit)
        return (new if new > LEAST_TOKENS else 0.0), prompt * hit

    def prefill_of(self, prompt_tokens: float) -> float:
        """Seconds of a prompt alone, its cached prefix left out."""
        return self._alone(*self._uncached(prompt_tokens))

    def _alone(self, new: float, cached: float) -> float:
        """Seconds of a prompt on an idle server, whose stages may work on chunks of it at once."""
        seconds = prefill_seconds(self.server.work, new, self.server.step, self.chunk, cached)
        chunks = min(math.ceil(new / self.chunk), self.server.limits.chunks_at_once)
        return seconds * pipelined_share(chunks, self.stages)

    def parts(self, batch: float) -> StepParts:
        """One step of a pipeline stage's share of the batch."""
        small = max(batch / self.stages, 1.0)  # who looks is in it
        context, step = self.traffic.context_tokens, self.server.step
        return decode_step(self.server.work, small, context, step, 1.0 + self.proposed)

    def _convexity(self, cached: float) -> float:
        """Seconds of attention that the mean over prompts has more than the mean prompt.

        What grows with the square of the length grows by its squared coefficient of variation;
        that part is twice what a prompt takes more than two halves.
        """
        if not self.variation:
            return 0.0
        work, step = self.server.work, self.server.step
        whole, half = (
            prompt_attention_seconds(work, self.prompt / part, step, cached / part)
            for part in (1.0, 2.0)
        )
        return self.variation * 2.0 * max(whole - 2.0 * half, 0.0)

    def _elasticity(self) -> float:
        """By what share of itself a prompt's time grows with its length, near the median."""
        mean, median = self.traffic.prompt_tokens, self.traffic.median_prompt_tokens
        if not 0 < median < 0.99 * mean or self.prefill <= 0:
            return 1.0
        shorter = self.prefill_of(median) / self.prefill
        return min(max((1.0 - shorter) / (1.0 - median / mean), 0.0), 2.0)

    def _lockstep(self, cached: float) -> None:
        """What of a prompt only its own of the ranks computes that wait for each other."""
        work, ranks = self.server.work, self.server.work.layout.data
        self.alone_share = self.share * self.stages  # of a prompt that no other rank's joins
        self.own_part = 1.0
        self.ranks = float(ranks if work.moe_layers else 1)  # that step together
        self.together = self.stages * self.ranks  # batches that wait for each other
        if ranks > 1 and work.moe_layers and self.share > 0:
            dense = work._replace(experts=Products(), moe_layers=0)
            own = prefill_share_seconds(dense, self.prompt, self.server.step, self.chunk, cached)
            self.own_part = own / (self.share * self.stages)
            self.alone_share *= self.own_part + (1.0 - self.own_part) / ranks

    def step(self, batch: float) -> float:
        """Seconds of a step without prompts."""
        return self.parts(batch).seconds + self.draft_seconds(batch)

    def others(self, running: float) -> float:
        """Requests on a rank besides one's own, mean over the ranks that step together."""
        return max(running - 1.0 / self.ranks, 0.0)

    def busy(self, running: float) -> float:
        """The share of requests that come while others run, of a closed loop."""
        return min(1.0, max(0.0, running * self.ranks - 1.0))

    def mean_step(self, seen: float, batch: float) -> float:
        """The mean step when others come and go at random: two points of their distribution.

        Steps grow in proportion to the batch, but for experts that more tokens touch.
        """
        spread = min(math.sqrt(max(batch * (seen - batch) / self.stages, 0.0)), seen - 1.0)
        if not self.server.work.moe_layers or spread <= 0:
            return self.step(seen)
        return (self.step(seen - spread) + self.step(seen + spread)) / 2.0

    def budget(self, batch: float) -> float:
        """Prompt tokens that a step of one batch takes up."""
        limits, decodes = self.server.limits, batch / self.stages * (1.0 + self.proposed)
        return max(1.0, min(limits.chunk_tokens, limits.step_tokens - decodes))

    @property
    def budget_share(self) -> float:
        """The share of a step's budget that a request takes, its decodes included.

        A step has a chunk for prompts at most, or all tokens for the prompts and decodes of who
        comes in it.
        """
        limits = self.server.limits
        decodes = self.steps * (1.0 + self.proposed)
        return max(self.prompt / limits.chunk_tokens, (self.prompt + decodes) / limits.step_tokens)

    def chunks(self, batch: float) -> float:
        """Mean steps that a prompt takes: lengths that vary end anywhere in the last of them."""
        share = self.prompt / self.budget(batch)
        if share <= 0:
            return 1.0
        if self.variation < ALIKE:
            return max(1.0, float(math.ceil(share - 1e-9)))
        return 1.0 / -math.expm1(-1.0 / share)

    def added(self, step: float, prompts: float, chunks: float) -> float:
        """Seconds that a prompt adds to steps of `step` seconds, `prompts` of others in each.

        A step with a prompt takes at least what the prompt takes alone: it reads all weights that
        the prompt touches. Of batches that wait for each other any may bring it.
        """
        share = self.share * self.stages * self.uneven(prompts)
        least = self.prefill - chunks * step
        if least <= 0:
            return share
        if prompts <= 0:
            return max(share, self.together * least)
        return max(share, -math.expm1(-self.together * prompts) * least / prompts)

    def own_seconds(self, step: float, joined: float, chunks: float) -> float:
        """Seconds of prompts until the own one has its first token; `joined` of others with it."""
        load = self.server.load
        least = load.own_prefill_factor * (self.prefill - chunks * step)
        return max(load.own_prefill_factor * self.alone_share + joined, least)

    def uneven(self, prompts: float) -> float:
        """Seconds of the prompts in a step over what they are when all batches have as many.

        Batches wait for each other: a pipeline's follow each other through the stages, ranks that
        share experts step together. The one with the most prompts holds all of them up.
        """
        if self.together <= 1.0 or prompts <= 0:
            return 1.0
        return 1.0 + self.own_part * (most_of_poisson(prompts, self.together) / prompts - 1.0)

    @property
    def more_steps(self) -> float:
        """Steps that pass before the scheduler looks for a request."""
        load, work = self.server.load, self.server.work
        waited = load.poll_share * max(self.server.poll_steps - 1.0, 0.0)
        if work.layout.data > 1 and work.moe_layers:
            waited += load.balance_steps
        return waited

    def draft_seconds(self, batch: float) -> float:
        """Proposing the tokens of a step."""
        speculation = self.server.speculation
        if speculation is None or speculation.draft is None or not self.proposed:
            return 0.0
        constants = speculation.draft_constants or self.server.step
        context = self.traffic.context_tokens
        return self.proposed * decode_step(speculation.draft, batch, context, constants).seconds
