"""What vLLM's check at start asks of the pool for one request, by release."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from capcheck import Case, KvLayout
from capcheck_vllm.pages_backends import block_tokens
from capcheck_vllm.pages_groups import Pool, managed, own_pages, pool
from capcheck_vllm.pages_kinds import Cached
from capcheck_vllm.pages_request import request_pages

Bytes = Callable[[int], float]


def start_bytes(
    case: Case, layers: Sequence[Cached], stage: int, made: Pool, found: KvLayout
) -> Bytes | None:
    """None where it is what the request takes.

    Before 0.14 the sum over the layers, as if nothing were padded and windows were heeded in any
    case; before 0.19 the first group only, until 0.17 of the whole model against one stage; from
    0.29 a block more, which the pool keeps back.
    """
    version = case.release.version
    if version < (0, 14, 0):
        return _by_layer(case, layers, stage)
    if version < (0, 17, 0) and case.plan.pipeline.get() > 1:
        joined = [layer._replace(stage=0) for layer in managed(case, layers)]
        return _first_group(case, pool(case, joined, 0, block_tokens(case)))
    if version < (0, 19, 0):
        return _first_group(case, made)
    return with_null_block(case, found)


def with_null_block(case: Case, found: KvLayout) -> Bytes | None:
    """What a request takes, and from 0.29 the block that the pool keeps back."""
    if case.release.version < (0, 29, 0):
        return None
    return lambda length: found.request_bytes(length) + found.block_bytes


def _by_layer(case: Case, layers: Sequence[Cached], stage: int) -> Bytes:
    here = [layer.kind for layer in layers if layer.stage == stage]
    found = own_pages(case, list(dict.fromkeys(here)), block_tokens(case))
    needs = [(request_pages(case, found[kind]), found[kind].page) for kind in here]
    return lambda length: math.fsum(need(length) * page for need, page in needs)


def _first_group(case: Case, made: Pool) -> Bytes:
    needs = [request_pages(case, paged) for paged in made.groups[0].paged]
    return lambda length: max(need(length) for need in needs) * made.block_bytes
