"""The KV cache as rules see it: single cells on the device that is worst off."""

from __future__ import annotations

import math

from capcheck import Case, KvLayout
from capcheck_llama_cpp import cells
from capcheck_llama_cpp.layout import cache_bytes, cells_of, latent_of, settings_of, type_bytes
from capcheck_llama_cpp.memory import placed


def layout(case: Case) -> KvLayout:
    """One cell of every attention layer that the device holds. Raises Unknown.

    The pool is shared out evenly: a cell's bytes are those of the whole cache by its cells, so
    that what sliding layers save is in them.
    """
    at, found = cells_of(case), placed(case)
    caches, where = cache_bytes(case), found.at
    mine = [index for index, owner in enumerate(where.owners[:-1]) if owner == found.number]
    pool = sum(caches[index][0] for index in mine) if where.kv_on_devices else 0.0
    if not pool:
        return _states(case, sum(caches[index][1] for index in mine))
    settings, latent = settings_of(case), latent_of(case)
    k, v = (
        type_bytes(settings.key_type, "cache-type-k"),
        type_bytes(settings.value_type, "cache-type-v"),
    )
    per_token = 0.0
    for index in mine:
        layer = where.model.layers[index]
        if (
            layer.cache is not None
            and layer.cache.kind not in ("state",)
            and not layer.cache.window
        ):
            per_token += cells.element_bytes(layer.cache, layer.mixer, k, v, latent)
    each = pool / at.total
    return KvLayout(
        block_tokens=1,
        block_bytes=each,
        bytes_per_token=per_token or each,
        request_blocks=lambda tokens: max(1, tokens),
        logged_tokens=float,
        words=f"{at.total:,} cells",
    )


def _states(case: Case, states: float) -> KvLayout:
    """Nothing but recurrent states: one block for each sequence, whatever its length."""
    sequences = cells_of(case).sequences
    each = states / max(sequences, 1)
    return KvLayout(
        block_tokens=1,
        block_bytes=each,
        bytes_per_token=0.0,
        request_blocks=lambda tokens: math.ceil(min(tokens, 1)),
        logged_tokens=float,
        words=f"{sequences} sequences",
    )
