"""KV blocks on one shard: every layer alike, block size by attention kernel."""

from __future__ import annotations

import math

from capcheck import Case, KvLayout, Unknown
from capcheck.physics import kv
from capcheck_tgi.defaults import block_tokens


def layout(case: Case) -> KvLayout:
    """Blocks of all layers; windows are kept whole. Raises Unknown."""
    model = case.model.get("model").architecture
    dtype = case.plan.kv_dtype.get("kv_cache_dtype")
    tensor = case.plan.tensor.get("num_shard")
    width = kv.KV_ELEMENT_BYTES.get(dtype, 2.0)
    per_token = 0.0
    for layer in model.layers:
        cache = layer.cache
        if cache is None:
            continue
        if cache.kind in ("latent", "state", "cross"):
            why = f"how {case.engine.name} keeps {cache.kind} caches was not read"
            raise Unknown(case.model.because(why))
        per_token += kv.attention_bytes_per_token(cache, tensor, width)
    slots = block_tokens(case.plan.extra["attention"].get("ATTENTION"))

    def blocks(tokens: int) -> int:
        return math.ceil(tokens / slots)

    return KvLayout(
        slots, per_token * slots, per_token, blocks, lambda count: float(count * slots),
        f"{len(model.layers)} layers",
    )  # fmt: skip
