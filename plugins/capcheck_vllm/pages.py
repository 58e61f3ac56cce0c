"""vLLM's KV cache as pages: what a block holds, what a request takes, what the log calls tokens."""

from __future__ import annotations

from collections.abc import Sequence

from capcheck import Case, KvLayout
from capcheck_vllm import pages_packed, pages_start, pages_state
from capcheck_vllm.pages_backends import block_tokens
from capcheck_vllm.pages_groups import Pool, managed, pool
from capcheck_vllm.pages_kinds import Cached, cached_layers
from capcheck_vllm.pages_request import context_ranks, in_flight_tokens, request_pages
from capcheck_vllm.pages_v0 import layout as v0_layout

NOTHING = KvLayout(1, 0.0, 0.0, lambda _: 0, lambda _: 0.0, "no KV cache")
LOGS_CONCURRENCY = (0, 21, 0)  # since then the logged tokens are concurrency x length


def stage_block_bytes(case: Case, stage: int, sizes: Sequence[int]) -> float:
    """Bytes of one pool block on one pipeline stage."""
    return layout(case, stage, sizes).block_bytes


def layout(case: Case, stage: int, sizes: Sequence[int]) -> KvLayout:
    """Pages on one pipeline stage. Raises Unknown."""
    layers = cached_layers(case, tuple(sizes))
    if not any(layer.stage == stage for layer in layers):
        return NOTHING
    if not case.plan.extra["v1"].get():
        return v0_layout(case, layers, stage)
    if pages_packed.is_packed(layers):
        return _packed(case, layers, stage)
    made = pool(case, managed(case, layers), stage, block_tokens(case))
    count = sum(1 for layer in layers if layer.stage == stage)
    found = _of_pool(case, made, f"{count} layers")
    return found._replace(start=pages_start.start_bytes(case, layers, stage, made, found))


def _of_pool(case: Case, made: Pool, words: str) -> KvLayout:
    version, ranks = case.release.version, context_ranks(case)
    needs = [[request_pages(case, paged) for paged in group.paged] for group in made.groups]
    growing = [group for group in made.groups if group.first.kind.grows]
    tokens = [paged.tokens for group in made.groups for paged in group.paged if paged.tokens]
    per_token = sum(made.block_bytes / group.first.tokens for group in growing) / ranks
    block = min((group.first.tokens for group in growing), default=min(tokens, default=1))

    def request(length: int) -> int:
        return sum(max(need(length) for need in group) for group in needs)

    def logged(blocks: float) -> float:
        length = case.plan.max_request_tokens.get("max_model_len")
        if version >= LOGS_CONCURRENCY:
            return float(int(blocks / max(request(length), 1) * length))
        least = min([*tokens, *_state_blocks(case, made, length)])
        return float(int(blocks) // len(made.groups) * least * ranks)

    return KvLayout(block * ranks, made.block_bytes, per_token, request, logged, words)


def _state_blocks(case: Case, made: Pool, length: int) -> list[int]:
    """A state's block is the whole length, unless states are kept for prefixes."""
    states = any(not paged.tokens for group in made.groups for paged in group.paged)
    return [length] if states and pages_state.mode(case) == "none" else []


def _packed(case: Case, layers: Sequence[Cached], stage: int) -> KvLayout:
    block = block_tokens(case)
    groups, size = pages_packed.groups(case, layers, stage, block)
    flight = in_flight_tokens(case)

    def request(length: int) -> int:
        return sum(pages_packed.needed(group, length, flight) for group in groups)

    def logged(blocks: float) -> float:
        length = case.plan.max_request_tokens.get("max_model_len")
        if case.release.version < LOGS_CONCURRENCY:
            least = min(group.slot.block for group in groups)
            return float(int(blocks) // len(groups) * least)
        return float(int(blocks / request(length) * length))

    whole = [group for group in groups if not group.slot.window]
    per_token = sum(size / group.slot.block for group in whole)
    words = f"{sum(1 for layer in layers if layer.stage == stage)} layers"
    found = KvLayout(block, size, per_token, request, logged, words)
    return found._replace(start=pages_start.with_null_block(case, found))
