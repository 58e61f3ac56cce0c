"""How many tokens a block holds: vLLM's attention backends by release and device."""

from __future__ import annotations

from capcheck import Case

DEFAULT_BLOCK = 16
INTEL_BLOCK = 64  # in V1
# From 0.18 on the smallest block that a backend takes, where 16 is none.
BACKEND_BLOCKS = {
    "FLASHMLA": 64, "CUTLASS_MLA": 128, "FLASHINFER_MLA": 32, "TOKENSPEED_MLA": 32,
    "FLASHMLA_SPARSE": 64, "FLASHINFER_MLA_SPARSE": 32, "ROCM_AITER_UNIFIED_ATTN": 64,
}  # fmt: skip
FORCED_BLOCKS = {**BACKEND_BLOCKS, "FLASHINFER_MLA": 64, "FLASHINFER_MLA_SPARSE": 64}
V4_BLOCK = 256  # DeepSeek-V4's compressed latents share a block of so many tokens


def _capability(case: Case) -> float:
    part = case.accelerator.either(None)
    return (part.capability if part is not None else None) or 0.0


def _named(case: Case) -> str:
    return str(case.plan.extra["attention_backend"].get("attention_backend"))


def sparse_backend(case: Case) -> str:
    """The backend of sparse latent attention: FlashMLA's unless FlashInfer's is preferred.

    That is on datacentre Blackwell: from 0.16 with few heads on a rank, from 0.19.1 in fp8.
    """
    named = _named(case)
    if named:
        return named
    version = case.release.version
    if not 10.0 <= _capability(case) < 11.0 or version < (0, 16, 0):
        return "FLASHMLA_SPARSE"
    if version >= (0, 19, 1) and case.plan.kv_dtype.get("kv_cache_dtype").startswith("fp8"):
        return "FLASHINFER_MLA_SPARSE"
    heads = case.model.get("model").architecture.heads // case.plan.tensor.get()
    return "FLASHINFER_MLA_SPARSE" if heads <= 16 else "FLASHMLA_SPARSE"


def latent_backend(case: Case) -> str:
    """The backend of dense latent attention where it decides the block; "" else."""
    named, version, capability = _named(case), case.release.version, _capability(case)
    if named:
        return named
    if version < (0, 8, 0):
        return ""
    if 9.0 <= capability < 10.0:
        # FlashAttention's comes first from 0.18, but not with a quantized cache.
        plain = case.plan.kv_dtype.get("kv_cache_dtype") in ("bf16", "fp16")
        return "" if version >= (0, 18, 0) and plain else "FLASHMLA"
    if 10.0 <= capability < 11.0:
        if version < (0, 10, 1):
            return ""
        narrow = any(
            layer.mixer.nope not in (0, 128)
            for layer in case.model.get("model").architecture.layers
            if layer.mixer.kind == "mla"
        )
        return "CUTLASS_MLA" if version < (0, 16, 0) or narrow else "FLASHINFER_MLA"
    return ""


def block_tokens(case: Case) -> int:
    """Tokens of one attention block before hybrids enlarge it."""
    written = int(case.plan.extra["block_size"].get("block_size"))
    model = case.model.get("model").architecture
    version = case.release.version
    if model.family.startswith("deepseek_v4"):
        return written or V4_BLOCK
    part = case.accelerator.either(None)
    vendor = part.vendor if part is not None else ""
    if written and (version >= (0, 18, 0) or vendor != "nvidia"):
        return written
    backend = _named(case)
    if vendor != "amd" and any(layer.mixer.kind == "mla" for layer in model.layers):
        sparse = any(layer.cache is not None and layer.cache.indexer for layer in model.layers)
        backend = sparse_backend(case) if sparse else latent_backend(case)
    needed = (BACKEND_BLOCKS if version >= (0, 18, 0) else FORCED_BLOCKS).get(backend)
    intel = vendor == "intel" and version >= (0, 9, 0)
    chosen = written or (INTEL_BLOCK if intel else DEFAULT_BLOCK)
    if needed is None or (chosen % needed == 0 and version >= (0, 12, 0)):
        return chosen
    return needed


def alignment(case: Case, block: int, *, latent: bool, head_size: int) -> int:
    """What a block that recurrent states enlarge is a multiple of.

    From 0.20 the block before enlarging, and for latents at least 128 from 0.27.
    """
    version, backend = case.release.version, _named(case)
    if version >= (0, 20, 0):
        return max(block, 128) if latent and version >= (0, 27, 0) else block
    if version < (0, 11, 1):
        return DEFAULT_BLOCK
    if latent:
        return 128 if latent_backend(case) == "CUTLASS_MLA" else 64
    wide = head_size == 256 and 10.0 <= _capability(case) < 11.0
    return 32 if wide and version < (0, 17, 2) and backend in ("", "FLASHINFER") else DEFAULT_BLOCK
