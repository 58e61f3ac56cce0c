"""How many blocks one request takes of each kind of cache, by release."""

from __future__ import annotations

import math
from collections.abc import Callable

from capcheck import Case
from capcheck.physics import kv
from capcheck_vllm import pages_state
from capcheck_vllm.pages_backends import block_tokens
from capcheck_vllm.pages_groups import Paged
from capcheck_vllm.pages_kinds import cached_layers, drafted_tokens
from capcheck_vllm.weights import is_mtp


def in_flight_tokens(case: Case) -> int:
    """Tokens that may be computed before a window's blocks are freed.

    One step's through 0.25; then those of every step that is scheduled ahead.
    """
    tokens = case.plan.max_step_tokens.get("max_num_batched_tokens")
    version = case.release.version
    if version < (0, 26, 0):
        return tokens
    steps = max(1, case.plan.pipeline.get())
    if case.plan.extra["async_scheduling"].get("async_scheduling"):
        model = case.model.get("model").architecture
        ahead = version >= (0, 30, 0) or not model.experts
        steps = steps + 1 if steps == 1 or ahead else steps
    return tokens * steps


def context_ranks(case: Case) -> int:
    """Ranks that share the tokens of one request: of decode, through 0.25 also of prefill."""
    ranks = max(1, case.plan.context.get())
    if case.release.version < (0, 26, 0):
        ranks *= max(1, int(case.plan.extra["prefill_context_parallel_size"].get()))
    return ranks


def retained_tokens(case: Case) -> int:
    """Tokens below a window that several prediction layers may read again (from 0.28)."""
    if case.release.version < (0, 28, 0) or case.plan.draft is None:
        return 0
    if not is_mtp(case.plan.draft.get("draft model")):
        return 0
    layers, tokens = len(case.model.get("model").architecture.draft), drafted_tokens(case)
    return tokens - 1 if min(layers, tokens) > 1 else 0


def request_pages(case: Case, paged: Paged) -> Callable[[int], int]:
    """Blocks that a request of so many tokens takes in one group of this kind."""
    cache, block = paged.kind.cache, max(paged.tokens, 1)
    if cache.kind == "state":
        kept = _kept_states(case, paged) if pages_state.mode(case) == "all" else 1
        return lambda length: pages_state.request_pages(case, paged.kind, length, kept)
    if cache.kind == "cross":
        return lambda _: math.ceil(cache.window / block)
    if cache.kind in ("sliding", "chunked") and cache.window:
        flight = in_flight_tokens(case)
        if cache.kind == "chunked":
            return lambda length: kv.chunked_blocks(cache.window, flight, length, block)
        window = cache.window + retained_tokens(case)
        return lambda length: kv.sliding_blocks(window, flight, length, block)
    ranks = context_ranks(case)
    return lambda length: math.ceil(math.ceil(length / ranks) / block)


def _kept_states(case: Case, paged: Paged) -> int:
    """Tokens between the states that mode `all` keeps: an attention block, as pages are alike."""
    kinds = [layer.kind for layer in cached_layers(case, ())]
    attention = next((kind for kind in kinds if kind.cache.kind != "state"), None)
    if attention is None:
        return pages_state.chunk(case)
    return pages_state.enlarged_block(case, attention, [paged.kind], block_tokens(case))
