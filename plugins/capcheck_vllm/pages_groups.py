"""V1's block pool: one page size for all layers, groups of layers, and what each stage holds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from capcheck import Case
from capcheck.physics import kv
from capcheck_vllm import pages_state
from capcheck_vllm.pages_kinds import (
    Cached,
    Kind,
    as_full,
    index_bytes,
    state_bytes,
    token_bytes,
)


class Paged(NamedTuple):
    """One kind with its pages."""

    kind: Kind
    tokens: int  # of one page; states: 0
    page: float  # bytes


class Group(NamedTuple):
    """Layers that share a block table. `width`: bytes of one block on the stage."""

    paged: tuple[Paged, ...]
    width: float

    @property
    def first(self) -> Paged:
        """One of its kinds: all of them take the same slots."""
        return self.paged[0]


class Pool(NamedTuple):
    """The groups of one stage: a block holds one page of each layer of the widest."""

    groups: tuple[Group, ...]
    block_bytes: float


def own_pages(case: Case, kinds: Sequence[Kind], block: int) -> dict[Kind, Paged]:
    """Each kind's pages before they are made alike; states as wide as the attention's page."""
    attention = [kind for kind in kinds if kind.cache.kind != "state"]
    states = [kind for kind in kinds if kind.cache.kind == "state"]
    floor = 0.0
    if attention and states:
        main = next((kind for kind in attention if kind.grows), attention[0])
        block = pages_state.enlarged_block(case, main, states, block)
        floor = token_bytes(case, main) * block
    found = {}
    for kind in kinds:
        if kind.cache.kind == "state":
            found[kind] = Paged(kind, 0, max(floor, state_bytes(case, kind)))
        else:
            found[kind] = Paged(kind, block, _attention_page(case, kind, block, bool(states)))
    return found


def _attention_page(case: Case, kind: Kind, block: int, hybrid: bool) -> float:
    """Index keys beside latents have pages of their own among recurrent states."""
    apart = hybrid and kind.cache.kind == "latent"
    index = 0.0 if apart else index_bytes(kind)
    return (token_bytes(case, kind) + index) * block


def _uniform(kinds: Sequence[Kind]) -> bool:
    """Whether all layers need the same slots: one group, pages of any size side by side."""
    if all(kind.grows for kind in kinds):
        return True
    caches = {(kind.cache.kind, kind.cache.window) for kind in kinds}
    states = any(kind.cache.kind == "state" for kind in kinds)
    return len(caches) == 1 and (len(kinds) == 1 or not states)


def one_page_size(found: dict[Kind, Paged]) -> dict[Kind, Paged]:
    """Blocks of the smaller are enlarged where that fits, else their pages are padded."""
    page = max(one.page for one in found.values())
    alike = {}
    for kind, one in found.items():
        times = page / one.page
        whole = one.tokens and math.isclose(times, round(times))
        tokens = one.tokens * round(times) if whole else one.tokens
        alike[kind] = Paged(kind, tokens, page)
    return alike


def _threshold(version: tuple[int, ...]) -> float | None:
    if version < (0, 12, 0):
        return None
    return 1.25 if version < (0, 18, 0) else 1.5


def pool(case: Case, layers: Sequence[Cached], stage: int, block: int) -> Pool:
    """The pool of one stage. Groups are made from all layers; before 0.11 from the stage's own."""
    version = case.release.version
    if version < (0, 11, 0):
        layers = [layer for layer in layers if layer.stage == stage]
    kinds = list(dict.fromkeys(layer.kind for layer in layers))
    found = own_pages(case, kinds, block)
    here = [layer.kind for layer in layers if layer.stage == stage]
    if _uniform(kinds):
        width = sum(found[kind].page for kind in here)
        return Pool((Group(tuple(found.values()), width),), width)
    found = one_page_size(found)
    if _pooled_index(kinds):
        return _beside_index_pages(found, layers, stage)
    members = {
        kind: [layer for layer in layers if found[layer.kind] == found[kind]]
        for kind in {found[kind]: kind for kind in reversed(kinds)}.values()
    }
    size = kv.group_size([len(own) for own in members.values()], _threshold(version))
    groups = []
    for kind in sorted(members, key=kinds.index):
        own, count = members[kind], math.ceil(len(members[kind]) / size)
        for index in range(count):
            held = sum(1 for layer in own[index::count] if layer.stage == stage)
            groups.append(Group((found[kind],), held * found[kind].page))
    return Pool(tuple(groups), max(group.width for group in groups))


def _pooled_index(kinds: Sequence[Kind]) -> bool:
    return any(kind.cache.kind == "latent" and kind.cache.index_compress > 1 for kind in kinds)


def _beside_index_pages(found: dict[Kind, Paged], layers: Sequence[Cached], stage: int) -> Pool:
    """Latents with pooled index keys between recurrent states (GLM-5.3-Flash).

    States share the latents' pages; the index keys lie beside them, and one block of every
    request holds the keys that are not pooled yet.
    """
    latents = [found[layer.kind] for layer in layers if found[layer.kind].tokens]
    states = [found[layer.kind] for layer in layers if not found[layer.kind].tokens]
    here = [found[layer.kind] for layer in layers if layer.stage == stage]
    width = sum(one.page + index_bytes(one.kind) * one.tokens for one in here if one.tokens)
    one = latents[0]
    tail = one.kind._replace(cache=one.kind.cache._replace(kind="cross", window=1))
    groups = [
        Group(tuple(dict.fromkeys(latents)), width),
        *[Group((states[0],), width)] * math.ceil(len(states) / len(latents)),
        Group((Paged(tail, 1, 0.0),), width),
    ]
    return Pool(tuple(groups), width)


def managed(case: Case, layers: Sequence[Cached]) -> list[Cached]:
    """The layers as the hybrid manager pages them; without it windows are kept whole."""
    if case.plan.extra["hybrid_kv_cache_manager"].get("hybrid KV manager"):
        return list(layers)
    kinds = as_full([layer.kind for layer in layers])
    return [layer._replace(kind=kind) for layer, kind in zip(layers, kinds, strict=True)]
