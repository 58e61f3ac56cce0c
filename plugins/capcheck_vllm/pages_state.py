"""Recurrent states as pages: how many a request takes, and the blocks they ask for."""

from __future__ import annotations

import math

from capcheck import Case
from capcheck_vllm.pages_backends import alignment
from capcheck_vllm.pages_kinds import Kind, drafted_tokens, state_bytes, token_bytes

# Where a configuration names no chunk: what its type has, and what vLLM takes for the rest.
CHUNKS = {"nemotron_h": 128, "bamba": 256, "falcon_h1": 256, "granitemoehybrid": 256,
          "mamba2": 256, "zamba2": 256}  # fmt: skip
DEFAULT_CHUNK = 2048


def mode(case: Case) -> str:
    """`mamba_cache_mode` as it ends up: none, align or all."""
    return str(case.plan.extra["mamba_cache_mode"].get("mamba_cache_mode"))


def request_pages(case: Case, kind: Kind, length: int, block: int) -> int:
    """Pages of one state that a request of `length` takes; `block`: tokens between kept states."""
    version, spec = case.release.version, drafted_tokens(case)
    if version < (0, 11, 1):
        return 1
    if mode(case) == "all":
        return math.ceil(length / max(block, 1)) + (spec if version >= (0, 22, 0) else 0)
    if version < (0, 15, 0):
        return 1
    if mode(case) == "align":
        # Mamba-2 hands over the state of a block's end from inside one step.
        exported = 1 if version >= (0, 32, 0) and kind.mixer == "mamba" and kind.groups else 0
        return 2 + spec + exported
    return 1 + spec


def enlarged_block(case: Case, attention: Kind, states: list[Kind], block: int) -> int:
    """Tokens of an attention block whose page is no smaller than a state's."""
    state = max(state_bytes(case, kind) for kind in states)
    if not state:
        return block
    per_token = token_bytes(case, attention)
    latent = attention.cache.kind == "latent"
    step = alignment(case, block, latent=latent, head_size=attention.cache.key)
    if mode(case) == "all":
        step = math.lcm(chunk(case), step)
    needed = math.ceil(state / (per_token * step)) * step
    return max(block, needed)


def chunk(case: Case) -> int:
    """Tokens that a recurrent layer works on at once: kept states lie on its multiples."""
    written = int(case.plan.extra["mamba_block_size"].get("mamba_block_size"))
    if written:
        return written
    model = case.model.get("model").architecture
    for name in ("mamba_chunk_size", "chunk_size"):
        told = model.config.get(name)
        if isinstance(told, int) and told > 0:
            return told
    return CHUNKS.get(model.family, DEFAULT_CHUNK)
