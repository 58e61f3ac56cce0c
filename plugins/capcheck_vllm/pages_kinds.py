"""Which layers keep what: the kinds of cache that vLLM pages, and their bytes by release."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from capcheck import Case, Layer, Unknown
from capcheck.architecture import Cache
from capcheck.physics import kv
from capcheck.physics.memory import stage_sizes
from capcheck_vllm.pages_backends import sparse_backend
from capcheck_vllm.weights import draft_tensor, is_mtp

# Bytes of one element in a KV cache; scales for each token and head come beside the last three.
ELEMENT_BYTES = {
    **kv.KV_ELEMENT_BYTES, "fp8_per_token_head": 1.0, "int8_per_token_head": 1.0,
    "int4_per_token_head": 0.5,
}  # fmt: skip
# Bytes of one token of one layer where a latent is packed with its scales and its rope.
PACKED_LATENT_BYTES = {"fp8_ds_mla": 656.0, "nvfp4_ds_mla": 352.0}
HEAD_SCALES_BYTES = 8.0  # fp32, of keys and of values
INDEX_SCALE_BYTES = 4.0  # one fp32 scale beside each fp8 index key
STATE_BYTES = {"float32": 4.0, "fp32": 4.0}
UNPACKED = ("ngram", "[ngram]", "ngram_gpu", "suffix")  # drafts that have no layers


class Kind(NamedTuple):
    """Layers that are paged alike."""

    cache: Cache
    tensor: int
    dtype: str  # of keys and values
    mixer: str = ""  # of states, and of windows of latents
    groups: int = 0  # of heads that share columns of a convolution
    shared: int = 0  # elements of one column that they share

    @property
    def grows(self) -> bool:
        """Whether every token of a request stays in it."""
        return self.cache.kind in ("full", "latent")


class Cached(NamedTuple):
    """One layer with a cache."""

    stage: int
    kind: Kind


def cached_layers(case: Case, sizes: tuple[int, ...]) -> list[Cached]:
    """Every layer with a cache, first to last; a draft's own come last, on the last stage."""
    model = case.model.get("model").architecture
    plan = case.plan
    tensor = plan.tensor.get("tensor_parallel_size")
    sizes = sizes or stage_sizes(len(model.layers), plan.pipeline.get())
    stages = [stage for stage, size in enumerate(sizes) for _ in range(size)]
    dtypes = _Dtypes(case)
    found = [
        Cached(stage, kind)
        for index, (stage, layer) in enumerate(zip(stages, model.layers, strict=False))
        for kind in _kinds(case, layer, tensor, dtypes.of(index, layer))
    ]
    layers, own = _draft(case, tensor)
    last = len(sizes) - 1
    for layer in layers:
        found += [Cached(last, kind) for kind in _kinds(case, layer, own, dtypes.main)]
    return found


class _Dtypes:
    """The dtype of each layer's cache: some may be left out of the quantization."""

    def __init__(self, case: Case) -> None:
        self.main = case.plan.kv_dtype.get("kv_cache_dtype")
        self._plain = case.plan.weight_dtype
        self._skipped = frozenset(case.plan.extra["kv_cache_dtype_skip_layers"].get("skipped"))

    def of(self, index: int, layer: Layer) -> str:
        if not self._skipped or layer.cache is None:
            return self.main
        windowed = layer.cache.kind == "sliding" and "sliding_window" in self._skipped
        skipped = windowed or str(index) in self._skipped
        return self._plain.get("dtype") if skipped else self.main


def _kinds(case: Case, layer: Layer, tensor: int, dtype: str) -> Iterator[Kind]:
    cache, mixer = layer.cache, layer.mixer
    if cache is None:
        return
    v1 = bool(case.plan.extra["v1"].get())
    if cache.kind == "cross" and v1 and case.release.version < (0, 10, 2):
        return
    groups = mixer.groups if mixer.kind == "mamba" else 0
    shared = 2 * groups * (mixer.state // mixer.head_size) if groups else 0
    whole = cache.kind == "sliding" and case.plan.extra["disable_sliding_window"].get()
    if whole or (cache.kind == "chunked" and case.release.version < (0, 10, 0)):
        cache = cache._replace(kind="full", window=0)
    word = mixer.kind if cache.kind == "state" or mixer.kind == "mla" else ""
    yield Kind(cache, tensor, dtype, word, groups, shared)


def _draft(case: Case, tensor: int) -> tuple[tuple[Layer, ...], int]:
    """The draft's layers and its tensor parallel size."""
    named = case.plan.draft
    if named is None:
        return (), tensor
    name = named.get("draft model")
    if name.lower() in UNPACKED:
        return (), tensor
    if is_mtp(name):
        return case.model.get("model").architecture.draft, tensor
    draft = case.draft_model()
    return (draft.architecture.layers if draft else ()), draft_tensor(case, tensor)


def drafted_tokens(case: Case) -> int:
    """Tokens that speculation adds to a step; 0 without."""
    tokens = case.plan.draft_tokens
    return int(tokens.either(0) or 0) if tokens is not None and case.plan.draft is not None else 0


def as_full(kinds: list[Kind]) -> list[Kind]:
    """Windows and chunks kept whole, as without the hybrid manager; alone they stay as they are."""
    if not any(kind.grows for kind in kinds):
        return kinds
    return [
        kind._replace(cache=kind.cache._replace(kind="full", window=0))
        if kind.cache.kind in ("sliding", "chunked")
        else kind
        for kind in kinds
    ]


def _element(case: Case, dtype: str) -> float:
    size = ELEMENT_BYTES.get(dtype)
    if size is None:
        raise Unknown(case.plan.kv_dtype.because(f"the layout of a KV cache in {dtype}"))
    return size


def index_bytes(kind: Kind) -> float:
    """Bytes that one token's index key takes beside one layer's keys and values.

    Beside latents it is fp8 with a scale, whatever the cache's dtype; elsewhere bf16.
    """
    cache = kind.cache
    if not cache.indexer:
        return 0.0
    size = cache.indexer + INDEX_SCALE_BYTES if cache.kind == "latent" else cache.indexer * 2.0
    return size / cache.index_compress


def token_bytes(case: Case, kind: Kind) -> float:
    """Bytes that one token takes in one layer on one rank, without its index key."""
    cache, dtype = kind.cache, kind.dtype
    if cache.kind == "latent":
        return _latent_bytes(case, kind)
    size = kv.attention_bytes_per_token(cache, kind.tensor, _element(case, dtype))
    if dtype.endswith("per_token_head"):
        size += HEAD_SCALES_BYTES * max(1, cache.heads // kind.tensor)
    return size


def _latent_bytes(case: Case, kind: Kind) -> float:
    """A latent; sparse attention's fp8 is packed with scales, except on FlashInfer."""
    cache, dtype = kind.cache, kind.dtype
    if cache.indexer and dtype.startswith("fp8"):
        packs = sparse_backend(case) != "FLASHINFER_MLA_SPARSE" or dtype == "fp8_ds_mla"
        dtype = "fp8_ds_mla" if packs else dtype
    if dtype in PACKED_LATENT_BYTES:
        return PACKED_LATENT_BYTES[dtype] / cache.compress
    return cache.key * _element(case, dtype) / cache.compress


def state_bytes(case: Case, kind: Kind) -> float:
    """Bytes of one request's recurrent state in one layer on one rank."""
    extra = case.plan.extra
    plain = 4.0 if case.plan.weight_dtype.get("dtype") == "fp32" else 2.0
    stated = extra["mamba_cache_dtype"].get("mamba_cache_dtype")
    conv = plain if stated == "auto" else STATE_BYTES.get(stated, 2.0)
    word = extra["mamba_ssm_cache_dtype"].get("mamba_ssm_cache_dtype")
    if word == "auto":
        word = _model_state_dtype(case, kind)
    ssm = STATE_BYTES.get(word, 2.0) if word else conv
    return kv.state_bytes(
        kind.cache, kind.tensor, conv, ssm,
        shared=kind.shared, groups=kind.groups, more_tokens=drafted_tokens(case),
    )  # fmt: skip


def _model_state_dtype(case: Case, kind: Kind) -> str:
    """What the model's configuration fixes and the release heeds; "": the convolution's dtype.

    Nemotron's is read from 0.13; what it does not tell was fp16, from 0.20 fp32. Qwen3.5 and
    later are published with fp32 throughout, though copies of their configurations omit it.
    """
    family, version = case.model.get("model").architecture.family, case.release.version
    if family.startswith("nemotron_h"):
        if version < (0, 13, 0):
            return ""
        return kind.cache.state_dtype or ("fp16" if version < (0, 20, 0) else "fp32")
    if family.startswith("qwen3_5"):
        return "fp32"
    return kind.cache.state_dtype
