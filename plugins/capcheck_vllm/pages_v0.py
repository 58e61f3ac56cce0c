"""V0's KV cache: every layer in blocks of one size, shared by the pipeline's engines."""

from __future__ import annotations

import math
from collections.abc import Sequence

from capcheck import Case, KvLayout
from capcheck.physics import kv
from capcheck_vllm.pages_backends import block_tokens
from capcheck_vllm.pages_kinds import ELEMENT_BYTES, Cached, Kind, token_bytes

WHOLE_HEAD = 256  # head size that latents were unfolded to before vLLM kept them
LATENT_STEP = 256  # bytes that latents were rounded up to in 0.7.2 and 0.7.3


def _bytes(case: Case, kind: Kind) -> float:
    version = case.release.version
    if kind.cache.kind != "latent":
        return token_bytes(case, kind)
    element = ELEMENT_BYTES.get(kind.dtype, 2.0)
    if version < (0, 7, 1):
        heads = max(1, case.model.get("model").architecture.heads // kind.tensor)
        return 2 * heads * WHOLE_HEAD * element
    if (0, 7, 2) <= version < (0, 8, 0):
        return kv.padded(kind.cache.key * 2.0, LATENT_STEP) / 2.0 * element
    return token_bytes(case, kind)


def layout(case: Case, layers: Sequence[Cached], stage: int) -> KvLayout:
    """Windows are kept whole, states lie outside. With pipeline stages each of so many engines
    has its share of the blocks, and one request has to fit a share; the log counts them all.
    """
    here = [
        layer.kind for layer in layers if layer.stage == stage and layer.kind.cache.kind != "state"
    ]
    block, engines = block_tokens(case), max(1, case.plan.pipeline.get())
    per_token = sum(_bytes(case, kind) for kind in here)
    size = per_token * block

    def request(length: int) -> int:
        return math.ceil(length / block)

    return KvLayout(
        block, size, per_token, request, lambda blocks: float(int(blocks) * block),
        f"{len(here)} layers", start=lambda length: request(length) * engines * size,
    )  # fmt: skip
