"""SGLang's pool of cells: bytes of one token, two pools for windows, recurrent states."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from capcheck import Case, KvLayout, Layer, Unknown
from capcheck.architecture import Cache
from capcheck.measure import show_bytes
from capcheck.physics import kv
from capcheck.physics.memory import stage_layers
from capcheck_sglang import defaults
from capcheck_sglang.drafting import LOOKUP, OWN

INDEX_SCALE_BYTES = 4.0  # one fp32 scale for each indexed token
SPARSE_FP8_BYTES = 656.0  # 512 fp8 + 4 scales of 4 B + 64 x 2 B of rope
COMPRESSED_BYTES = 584.0  # DeepSeek-V4: 448 fp8 + 8 B of scales + 64 x 2 B of rope
STATE_BYTES = {"float32": 4.0, "fp32": 4.0, "bfloat16": 2.0, "bf16": 2.0, "float16": 2.0}

REFUSES_LATER = "the server starts all the same and refuses longer requests"

# Families whose windowed layers have a pool of their own, from which release on (and up to).
WINDOWED = (
    ("gemma2", (0, 4, 9, 6), (0, 5, 1)), ("gemma3", (0, 4, 9, 6), (0, 5, 1)),
    ("gpt_oss", (0, 5, 8), None), ("llama4", (0, 5, 8), None), ("mimo_v2", (0, 5, 7), None),
    ("step3p5", (0, 5, 9), None), ("gemma4", (0, 5, 11), None), ("laguna", (0, 5, 12), None),
    ("deepseek_v4", (0, 5, 12), None), ("step3p7", (0, 5, 13), None),
    ("mellum", (0, 5, 16), None), ("inkling", (0, 5, 16), None), ("muse", (0, 5, 18), None),
)  # fmt: skip


class Cells(NamedTuple):
    """Bytes of one token over the layers of one stage, and of one request's states."""

    full: float  # in the layers that keep every token
    windowed: float  # in the layers of the second pool
    ratio: float  # windowed tokens for each full one
    window: int  # the widest window; 0: one pool only
    state: float  # recurrent state of one request

    @property
    def token(self) -> float:
        """Bytes of the pool for one token of `max_total_num_tokens`."""
        if not self.full:
            return self.windowed
        return self.full + self.ratio * self.windowed


def two_pools(case: Case) -> bool:
    """Whether windowed layers are paged apart."""
    if case.plan.extra["disable_hybrid_swa_memory"].get("disable_hybrid_swa_memory"):
        return False
    family = case.model.get("model").architecture.family
    version = case.release.version
    return any(
        family.startswith(name) and version >= since and (until is None or version < until)
        for name, since, until in WINDOWED
    )


def token_bytes(case: Case, cache: Cache, tensor: int) -> float:
    """Bytes that one token takes in one layer on one rank."""
    dtype = case.plan.kv_dtype.get("kv_cache_dtype")
    size = kv.KV_ELEMENT_BYTES.get(dtype, 2.0)
    if cache.kind != "latent":
        return kv.attention_bytes_per_token(cache, tensor, size)
    index = cache.indexer + INDEX_SCALE_BYTES if cache.indexer else 0.0
    if cache.compress > 1 or case.model.get("model").architecture.family == "deepseek_v4":
        return COMPRESSED_BYTES / cache.compress + index / cache.index_compress
    scaled = cache.indexer and dtype.startswith("fp8") and case.release.version >= (0, 5, 9)
    if scaled and case.accelerator.get("accelerator").vendor == "nvidia":
        return SPARSE_FP8_BYTES + index
    return cache.key * size + index / cache.index_compress


def _state_bytes(case: Case, cache: Cache, tensor: int) -> float:
    stated = case.deployment.text("engine", "args", "mamba_ssm_dtype")
    config = case.model.get("model").architecture.config
    word = (stated.either("") if stated is not None else "") or ""
    word = word or str(config.get("mamba_ssm_dtype") or cache.state_dtype or "float32")
    return kv.state_bytes(cache, tensor, 2.0, STATE_BYTES.get(word, 4.0))


def _draft_layers(case: Case) -> Sequence[Layer]:
    """Layers of the draft that have cells of their own; an unknown one has one of the model's."""
    named = case.plan.draft
    if named is None or named.get("draft model") == LOOKUP:
        return ()
    model = case.model.get("model").architecture
    if named.get() == OWN:
        return model.draft
    try:
        draft = case.draft_model()
    except Unknown:
        draft = None
    return draft.architecture.layers if draft is not None else model.layers[-1:]


def draft_cell(case: Case) -> float:
    """Bytes of one token in the draft's own layers."""
    tensor = max(1, case.plan.tensor.get("tp_size"))
    caches = [layer.cache for layer in _draft_layers(case)]
    return sum(token_bytes(case, one, tensor) for one in caches if one and one.kind != "state")


def draft_counted(case: Case) -> bool:
    """Whether the draft's cells are part of the pool's."""
    first = (0, 5, 11) if case.plan.extra["speculative_algorithm"].get() == "DFLASH" else None
    return case.release.version >= (first or defaults.DRAFT_COUNTED)


def paged(layers: Sequence[Layer]) -> list[Layer]:
    """The layers as the pool counts them: those that read another's cells have cells all the same.

    They are told by attending exactly as a layer that keeps its own.
    """
    own = {layer.mixer: layer.cache for layer in layers if layer.cache is not None}
    return [
        layer if layer.cache is not None else layer._replace(cache=own.get(layer.mixer))
        for layer in layers
    ]


def cells(case: Case, stage: int, sizes: Sequence[int]) -> Cells:
    """The cells of one pipeline stage. Raises Unknown."""
    model = case.model.get("model").architecture
    tensor = max(1, case.plan.tensor.get("tp_size"))
    layers = stage_layers(paged(model.layers), len(sizes), stage, sizes)
    apart = two_pools(case)
    full = windowed = state = 0.0
    window = 0
    known: dict[Cache, float] = {}
    for layer in layers:
        cache = layer.cache
        if cache is None or cache.kind == "cross":
            continue
        if cache not in known:
            one = _state_bytes if cache.kind == "state" else token_bytes
            known[cache] = one(case, cache, tensor)
        if cache.kind == "state":
            state += known[cache]
        elif apart and cache.kind in ("sliding", "chunked") and cache.window:
            windowed += known[cache]
            window = max(window, cache.window)
        else:
            full += known[cache]
    if case.plan.draft is not None and draft_counted(case):
        full += draft_cell(case)
    ratio = case.plan.extra["swa_full_tokens_ratio"].get("swa_full_tokens_ratio")
    if model.family == "deepseek_v4" and apart:
        windowed, window = _compressed_windows(layers), 128
    return Cells(full, windowed, ratio if window else 0.0, window, state)


def _compressed_windows(layers: Sequence[Layer]) -> float:
    """Uncompressed cells of the window that every compressed layer keeps."""
    return COMPRESSED_BYTES * sum(layer.cache is not None for layer in layers)


def page_tokens(case: Case) -> int:
    """Tokens of one page."""
    stated = case.plan.extra["page_size"].get("page_size")
    if stated > 0:
        return int(stated)
    model = case.model.get("model").architecture
    if model.family == "deepseek_v4":
        return 256
    if any(layer.cache is not None and layer.cache.indexer for layer in model.layers):
        return 64
    return 1


def layout(case: Case, stage: int, sizes: Sequence[int]) -> KvLayout:
    """Pages of one pipeline stage. Raises Unknown."""
    cell = cells(case, stage, sizes)
    page = page_tokens(case) * max(1, case.plan.context.get("dcp_size"))
    if not cell.token:
        return KvLayout(page, 0.0, 0.0, lambda _: 0, lambda _: 0.0, words="no KV cache")
    words = f"{show_bytes(cell.token)} a token"

    def blocks(tokens: int) -> int:
        if not cell.window:
            return math.ceil(tokens / page)
        kept = min(tokens, cell.window + page)
        return math.ceil(max(tokens if cell.full else 0, kept / (cell.ratio or 1.0)) / page)

    def logged(count: float) -> float:
        return float(int(count) * page + _extra_cells(case))

    each = cell.full or cell.windowed
    size = cell.token / case.plan.context.get() * page
    return KvLayout(page, size, each, blocks, logged, words=words, shortens=REFUSES_LATER)


def _extra_cells(case: Case) -> int:
    """Cells that releases before 0.5.8 add for drafts, not paid for by the share."""
    low, high = defaults.EXTRA_CELLS
    algorithm = case.plan.extra["speculative_algorithm"].get()
    if not (low <= case.release.version < high) or algorithm in ("", "NGRAM"):
        return 0
    tokens = case.plan.draft_tokens
    each = (tokens.either(0) if tokens is not None else 0) or 0
    return int(case.plan.max_sequences.get("max_running_requests")) * int(each) + 100


def state_slots(case: Case, rest: float, state: float) -> int:
    """Recurrent states that are kept; `rest`: bytes that weights leave. Raises Unknown."""
    extra, release = case.plan.extra, case.release.version
    ranks = max(1, extra["attention_ranks"].get())
    stated = extra["max_mamba_cache_size"].get("max_mamba_cache_size")
    if stated > 0:
        return max(1, int(stated) // int(ranks))
    radix = case.plan.prefix_caching.get("disable_radix_cache")
    sequences = case.plan.max_sequences
    if not radix:
        return int(sequences.get()) if sequences.origin.kind == "written" else 512
    ratio = extra["mamba_full_memory_ratio"].get("mamba_full_memory_ratio")
    budget = rest * ratio / (1 + ratio)
    spare = 1 if release >= (0, 5, 17) else 0  # a slot that is never used
    return max(0, int(budget // state) - spare)


def states_bytes(case: Case, rest: float, state: float) -> float:
    """Bytes of all recurrent states, those that speculation may go back to included."""
    if not state:
        return 0.0
    slots = state_slots(case, rest, state)
    spare = 1 if case.release.version >= (0, 5, 17) else 0
    total = (slots + spare) * state
    tokens = case.plan.draft_tokens
    if case.plan.draft is not None and tokens is not None:
        running = min(case.plan.max_sequences.get("max_running_requests"), slots)
        total += running * state * tokens.get("speculative_num_draft_tokens")
    return total
