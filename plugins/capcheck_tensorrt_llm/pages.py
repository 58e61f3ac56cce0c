"""KV blocks on one rank: layers alike, latents, and layers with windows of their own."""

from __future__ import annotations

import math

from capcheck import Cache, Case, KvLayout, Layer, Unknown
from capcheck.physics import kv
from capcheck.physics.memory import stage_layers
from capcheck_tensorrt_llm.drafts import WITHOUT_MODEL, is_mtp
from capcheck_tensorrt_llm.reading import Options
from capcheck_tensorrt_llm.weights import Stage

FLASH_MLA_BLOCK, HOPPER = 64, 9.0
INDEXER_SCALE_BYTES = 4.0
STATES = "how TensorRT-LLM pools recurrent states was not measured"
SHORTENS = "TensorRT-LLM then lowers max_seq_len and goes on"


def block_tokens(case: Case) -> int:
    """Tokens of one block; the Hopper kernel for latents wants 64."""
    model = case.model.get("model").architecture
    part = case.accelerator.get("accelerator")
    latent = any(layer.cache and layer.cache.kind == "latent" for layer in model.layers)
    if latent and part.capability == HOPPER:
        return FLASH_MLA_BLOCK
    return max(1, int(case.plan.extra["tokens_per_block"].get("tokens_per_block")))


def _bytes(case: Case, cache: Cache) -> float:
    """Bytes that one token takes in one layer on one rank."""
    width = kv.KV_ELEMENT_BYTES.get(case.plan.kv_dtype.get("kv_cache_config.dtype"), 2.0)
    tensor = case.plan.tensor.get("tensor_parallel_size")
    size = kv.attention_bytes_per_token(cache, tensor, width)
    return size + (cache.indexer + INDEXER_SCALE_BYTES if cache.indexer else 0.0)


def _draft_layers(case: Case) -> tuple[Layer, ...]:
    """Layers of the draft, which share the pool."""
    named = case.plan.draft
    if named is None:
        return ()
    name = named.get("draft model")
    if is_mtp(name):
        return case.model.get("model").architecture.draft
    if name in WITHOUT_MODEL:
        return ()
    draft = case.draft_model()
    return draft.architecture.layers if draft is not None else ()


def _cached(case: Case, stage: Stage) -> list[float]:
    """Bytes of one token in each cached layer of the stage. Raises Unknown."""
    model = case.model.get("model").architecture
    layers = stage_layers(model.layers, len(stage.sizes), stage.number, stage.sizes)
    last = stage.number == len(stage.sizes) - 1
    found = []
    for layer in (*layers, *(_draft_layers(case) if last else ())):
        cache = layer.cache
        if cache is None:
            continue
        if cache.kind in ("state", "cross"):
            raise Unknown(case.model.because(STATES))
        found.append(_bytes(case, cache))
    return found


def layout(case: Case, stage: Stage) -> KvLayout:
    """Blocks of all layers of one pipeline stage. Raises Unknown."""
    each = _cached(case, stage)
    block = block_tokens(case)
    total = sum(each)
    stated = Options(case.deployment, case.release.version).windows()
    windows = stated.get("max_attention_window") if stated is not None else ()
    shortens = "" if case.plan.extra["strict_window"].either(False) else SHORTENS
    if not windows:
        return KvLayout(
            block, total * block, total, lambda tokens: math.ceil(tokens / block),
            lambda blocks: float(blocks * block), f"{len(each)} layers", shortens=shortens,
        )  # fmt: skip
    # The list is a pattern that is repeated over the layers.
    limits = [windows[number % len(windows)] for number in range(len(each))]
    longest = max(limits)

    def request(tokens: int) -> int:
        held = sum(
            size * math.ceil(min(tokens, limit) / block) * block
            for size, limit in zip(each, limits, strict=True)
        )
        return math.ceil(held / (total * block))

    growing = sum(size for size, limit in zip(each, limits, strict=True) if limit == longest)
    return KvLayout(
        block, total * block, growing, request, lambda blocks: float(blocks * block),
        f"{len(each)} layers, windows of {', '.join(str(one) for one in sorted(set(limits)))}",
        shortens=shortens,
    )  # fmt: skip
