"""vLLM's KV pages by release: uniform models, hybrid groups, what the log calls tokens."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from capcheck import Case, KvLayout, Layer
from capcheck.architecture import Cache
from capcheck.physics import kv
from capcheck.physics.memory import stage_layers
from capcheck_vllm.weights import draft_tensor, is_mtp

# Bytes of one element, or of one token of one layer where a layout packs more than elements.
ELEMENT_BYTES = {**kv.KV_ELEMENT_BYTES, "fp8_per_token_head": 1.0, "int8_per_token_head": 1.0}
SPARSE_LATENT_BYTES = 656.0  # fp8_ds_mla: 512 fp8 + 16 B of scales + 64 x 2 B of rope
INDEXER_SCALE_BYTES = 4.0  # one fp32 scale for each indexed token
STATE_BYTES = {"float32": 4.0, "fp32": 4.0}


class Kind(NamedTuple):
    """Layers that are paged alike."""

    cache: Cache
    tensor: int
    layers: int


def block_tokens(case: Case) -> int:
    """Tokens of one attention block before hybrids enlarge it."""
    written = case.plan.extra["block_size"].get("block_size")
    if written:
        return int(written)
    model = case.model.get("model").architecture
    if any(layer.mixer.kind == "mla" for layer in model.layers):
        return 64
    return 16


def hybrid_manager(case: Case) -> bool:
    """Whether sliding and recurrent layers get groups of their own (from 0.9 in V1)."""
    off = case.plan.extra["disable_hybrid_kv_cache_manager"].get("hybrid KV manager")
    return bool(case.plan.extra["v1"].get()) and case.release.version >= (0, 9, 0) and not off


def _attention_bytes(case: Case, kind: Kind) -> float:
    """Bytes that one token takes in one layer of this kind on one rank."""
    dtype = case.plan.kv_dtype.get("kv_cache_dtype")
    cache = kind.cache
    if cache.kind == "latent":
        if dtype == "fp8_ds_mla" or (cache.indexer and dtype.startswith("fp8")):
            size = SPARSE_LATENT_BYTES
        else:
            size = cache.key * ELEMENT_BYTES.get(dtype, 2.0)
        size /= cache.compress
        # The index keys of sparse attention are fp8 with a scale, whatever the cache's dtype.
        index = cache.indexer + INDEXER_SCALE_BYTES if cache.indexer else 0.0
        return size + index / cache.index_compress
    size = kv.attention_bytes_per_token(cache, kind.tensor, ELEMENT_BYTES.get(dtype, 2.0))
    if dtype.endswith("per_token_head"):
        size += 8.0 * max(1, cache.heads // kind.tensor)
    return size


def _state_bytes(case: Case, kind: Kind) -> float:
    """Bytes of one request's recurrent state in one layer on one rank."""
    args = case.deployment
    dtype = args.text("engine", "args", "mamba_ssm_cache_dtype")
    stated = dtype.either("") if dtype is not None else ""
    word = stated if stated not in ("", "auto") else kind.cache.state_dtype
    return kv.state_bytes(kind.cache, kind.tensor, 2.0, STATE_BYTES.get(word, 2.0))


def kinds(case: Case, layers: Sequence[Layer], tensor: int) -> list[Kind]:
    """Cached layers by kind. Windowed layers count as full where the manager is off."""
    counts: dict[tuple[Cache, int], int] = {}
    plain = not hybrid_manager(case)
    for layer in layers:
        cache = layer.cache
        if cache is None or cache.kind == "cross":
            continue
        if plain and cache.kind in ("sliding", "chunked"):
            cache = cache._replace(kind="full", window=0)
        counts[(cache, tensor)] = counts.get((cache, tensor), 0) + 1
    return [Kind(cache, size, count) for (cache, size), count in counts.items()]


def _draft_kinds(case: Case) -> list[Kind]:
    named = case.plan.draft
    if named is None:
        return []
    name = named.get("draft model")
    tensor = case.plan.tensor.get()
    if name.lower() in ("ngram", "[ngram]", "suffix"):
        return []
    if is_mtp(name):
        return kinds(case, case.model.get("model").architecture.draft, tensor)
    draft = case.draft_model()
    if draft is None:
        return []
    return kinds(case, draft.architecture.layers, draft_tensor(case, tensor))


def stage_block_bytes(case: Case, stage: int, sizes: Sequence[int]) -> float:
    """Bytes of one pool block on one pipeline stage."""
    return layout(case, stage, sizes).block_bytes


class _Paged(NamedTuple):
    kind: Kind
    tokens: int  # of one page; states: 0
    page: float  # bytes


def _unify(case: Case, found: Sequence[Kind], block: int) -> list[_Paged]:
    """One page size for all kinds: blocks of the smaller are enlarged, states are padded."""
    attention = [kind for kind in found if kind.cache.kind != "state"]
    states = [kind for kind in found if kind.cache.kind == "state"]
    per_token = {kind: _attention_bytes(case, kind) for kind in attention}
    tokens = dict.fromkeys(attention, block)
    if states and attention:
        largest = max(_state_bytes(case, kind) for kind in states)
        smallest = min(per_token.values())
        needed = math.ceil(largest / smallest / 16) * 16
        tokens = dict.fromkeys(attention, max(block, needed))
    page = max((per_token[kind] * tokens[kind] for kind in attention), default=0.0)
    for kind in attention:
        ratio = page / (per_token[kind] * tokens[kind])
        if ratio >= 2:
            tokens[kind] *= int(ratio)
    if not attention:
        page = max(_state_bytes(case, kind) for kind in states)
    return [_Paged(kind, 0 if kind.cache.kind == "state" else tokens[kind], page) for kind in found]


def _threshold(version: tuple[int, ...]) -> float | None:
    if version < (0, 12, 0):
        return None
    return 1.25 if version < (0, 18, 0) else 1.5


def in_flight_tokens(case: Case) -> int:
    """Tokens that may be computed before a sliding window's blocks are freed."""
    tokens = case.plan.max_step_tokens.get("max_num_batched_tokens")
    if case.release.version < (0, 26, 0):
        return tokens
    stages = case.plan.pipeline.get()
    if stages > 1:
        return tokens * stages
    return tokens * (2 if case.plan.extra["async_scheduling"].get() else 1)


def _request_pages(case: Case, paged: _Paged, in_flight: Callable[[], int]) -> Callable[[int], int]:
    cache, block = paged.kind.cache, max(paged.tokens, 1)
    context = max(1, case.plan.context.get())
    if cache.kind == "state":
        tokens = case.plan.draft_tokens
        spec = tokens.either(0) if tokens is not None and case.plan.draft is not None else 0
        return lambda _: 1 + int(spec or 0)
    if cache.kind == "sliding" and cache.window:
        flight = in_flight()
        return lambda length: kv.sliding_blocks(cache.window, flight, length, block)
    if cache.kind == "chunked" and cache.window:
        flight = in_flight()
        return lambda length: kv.chunked_blocks(cache.window, flight, length, block)
    return lambda length: math.ceil(math.ceil(length / context) / block)


def layout(case: Case, stage: int, sizes: Sequence[int]) -> KvLayout:
    """Pages on one pipeline stage. Raises Unknown."""
    model = case.model.get("model").architecture
    plan = case.plan
    tensor = plan.tensor.get("tensor_parallel_size")
    layers = stage_layers(model.layers, plan.pipeline.get(), stage, sizes)
    found = kinds(case, layers, tensor)
    if stage == len(sizes) - 1:
        found += _draft_kinds(case)
    if not found:
        return KvLayout(1, 0.0, 0.0, lambda _: 0, lambda _: 0.0, "no KV cache")
    paged = _unify(case, found, block_tokens(case))
    words = f"{sum(kind.layers for kind in found)} layers"
    if len({(one.tokens, one.page) for one in paged}) == 1 and len(found) == 1:
        return _uniform(case, paged[0], words)
    if all(one.kind.cache.kind in ("full", "latent") for one in paged):
        return _several_full(case, paged, words)
    return _hybrid(case, paged, words)


def _uniform(case: Case, one: _Paged, words: str) -> KvLayout:
    pages = _request_pages(case, one, lambda: in_flight_tokens(case))
    context = max(1, case.plan.context.get())
    block = one.tokens * context if one.tokens else 1
    per_token = one.page * one.kind.layers / max(one.tokens, 1) / context
    return KvLayout(
        max(one.tokens, 1), one.page * one.kind.layers, per_token if one.tokens else 0.0,
        pages, lambda blocks: float(blocks * block), words,
    )  # fmt: skip


def _several_full(case: Case, paged: Sequence[_Paged], words: str) -> KvLayout:
    """Full-attention layers of several widths (a draft model's) in blocks of equal tokens."""
    block = min(one.tokens for one in paged)
    context = max(1, case.plan.context.get())
    per_token = sum(_attention_bytes(case, one.kind) * one.kind.layers for one in paged)
    return KvLayout(
        block, per_token * block, per_token / context,
        lambda length: math.ceil(math.ceil(length / context) / block),
        lambda blocks: float(blocks * block * context), words,
    )  # fmt: skip


def _hybrid(case: Case, paged: Sequence[_Paged], words: str) -> KvLayout:
    version = case.release.version
    size = kv.group_size([one.kind.layers for one in paged], _threshold(version))
    groups = [math.ceil(one.kind.layers / size) for one in paged]
    pages = [_request_pages(case, one, lambda: in_flight_tokens(case)) for one in paged]
    page = paged[0].page
    growing = [
        (one, count)
        for one, count in zip(paged, groups, strict=True)
        if one.kind.cache.kind in ("full", "latent")
    ]
    per_token = sum(count * page * size / one.tokens for one, count in growing)
    block = next((one.tokens for one, _ in growing), paged[0].tokens or 1)

    def request(length: int) -> int:
        return sum(count * need(length) for count, need in zip(groups, pages, strict=True))

    def logged(blocks: float) -> float:
        # The log's figure changed from a count per group to concurrency x length.
        if version < (0, 25, 0):
            return float(int(blocks) // sum(groups) * block)
        length = case.plan.max_request_tokens.get("max_model_len")
        return float(int(blocks / request(length) * length))

    return KvLayout(block, page * size, per_token, request, logged, words)
