"""What a model is made of: tensors to hold and caches to grow, as an engine sees them.

Model families (plugins) turn a Hugging Face `config.json` into an `Architecture`; physics and
rules read nothing else. Sizes are of the whole model: sharding is the reader's business.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Role = Literal[
    "embedding", "head", "attention", "mlp", "expert", "shared_expert", "router", "norm",
    "state", "indexer", "lookup", "vision", "audio", "projector", "draft", "other",
]  # fmt: skip
Split = Literal["column", "row", "vocabulary", "replicated"]
CacheKind = Literal["full", "sliding", "chunked", "latent", "state", "cross"]
MixerKind = Literal["full", "sliding", "chunked", "mla", "mamba", "linear", "convolution", "none"]


class Part(NamedTuple):
    """One checkpoint tensor that engines fuse with its neighbours: q_proj of qkv_proj."""

    name: str  # inside its layer, as in the checkpoint: "self_attn.q_proj"
    out: int  # output features
    heads: int = 0  # > 0: sharded by whole heads and replicated beyond them (KV heads)
    held: int = 1  # how often engines hold it: 2 where keys also fill the place of values


class Tensor(NamedTuple):
    """A weight as engines hold it: fused parts over one input, possibly many copies (experts)."""

    role: Role
    parts: tuple[Part, ...]
    into: int = 0  # input features; 0 for a vector (norm weight, bias)
    split: Split = "replicated"
    copies: int = 1  # experts of one layer
    linear: bool = True  # a matrix that quantization may pack; False: kept at the model's dtype
    dtype: str = ""  # a fixed storage dtype ("fp32") whatever the model's is

    @property
    def out(self) -> int:
        """Output features of all parts, of one copy."""
        return sum(part.out for part in self.parts)

    @property
    def elements(self) -> int:
        """Elements of all copies."""
        return self.out * max(self.into, 1) * self.copies


class Cache(NamedTuple):
    """What one layer keeps for each running request."""

    kind: CacheKind
    heads: int = 0  # KV heads (latent: 1)
    key: int = 0  # head size of keys (latent: kv_lora_rank + qk_rope_head_dim, stored once)
    value: int = 0  # head size of values (latent: 0)
    window: int = 0  # sliding window or chunk, tokens
    conv: int = 0  # state kinds: convolution elements per request, whole model width
    ssm: int = 0  # state kinds: recurrent elements per request, whole model width
    conv_kernel: int = 0
    indexer: int = 0  # sparse-attention index key width per token, elements
    state_dtype: str = ""  # of the recurrent state where the model fixes it: "fp32"
    compress: int = 1  # tokens that share one latent; beside them a window is kept uncompressed
    index_compress: int = 1  # tokens that share one index key


class Mixer(NamedTuple):
    """How a layer mixes tokens: for FLOPs and for what divides."""

    kind: MixerKind
    heads: int = 0  # query heads
    head_size: int = 0  # of queries and keys
    value_size: int = 0
    kv_heads: int = 0
    window: int = 0
    latent: int = 0  # MLA: kv_lora_rank
    rope: int = 0  # MLA: qk_rope_head_dim
    nope: int = 0  # MLA: qk_nope_head_dim
    state: int = 0  # recurrent kinds: state elements per head
    topk: int = 0  # sparse attention: tokens that are attended to
    groups: int = 0  # recurrent kinds: groups (Mamba-2) or key heads that heads share


class Layer(NamedTuple):
    """One decoder layer. `cache` is None when it allocates nothing (shared KV, MLP only)."""

    mixer: Mixer
    tensors: tuple[Tensor, ...]
    cache: Cache | None
    experts: int = 0
    experts_per_token: int = 0


class Rope(NamedTuple):
    """One table of sines and cosines that an engine keeps per distinct rope."""

    positions: int
    dimensions: int  # rotary dimensions (cos and sin together)
    copies: int = 1  # tables of this size: M-RoPE keeps four, an indexer may have its own
    dtype: str = ""  # a fixed dtype ("fp32") whatever the model's is
    base: float = 0.0  # of the angles: tables of other bases are other tables


class Audio(NamedTuple):
    """The encoder of sound, as far as memory profiling needs it."""

    hidden: int
    intermediate: int
    tokens: int  # most tokens of one clip
    positions: int  # of the encoder that become one token


class Vision(NamedTuple):
    """The encoder of images, as far as memory profiling needs it."""

    hidden: int
    layers: int
    intermediate: int
    patch: int
    merge: int  # patches per side that become one token
    image_tokens: int  # most tokens one image becomes at the processor's default limit; 0: unknown
    deepstack: int = 0  # extra hidden states that are kept per token
    video_tokens: int = 0  # most tokens of one video; 0: only the length limits it, or no videos
    frames: int = 1  # of one patch
    gated: bool = False  # its feed-forwards
    rotary: bool = False  # positions turn queries and keys
    placed: bool = False  # learned positions are interpolated to the grid of each image
    outputs: int = 1  # layers whose hidden states lie side by side in the output
    audio: Audio | None = None


class Architecture(NamedTuple):
    """A model, before quantization: what the catalogue or a config.json says."""

    id: str
    family: str  # model_type
    layers: tuple[Layer, ...]
    outer: tuple[Tensor, ...]  # embedding, head (absent when tied), final norm
    towers: tuple[Tensor, ...]  # vision, audio and their projectors
    draft: tuple[Layer, ...]  # MTP layers stored with the checkpoint
    draft_outer: tuple[Tensor, ...]  # their projections, and embedding and head where duplicated
    hidden: int
    vocabulary: int
    tied: bool  # the head is the embedding
    heads: int  # query heads that must divide over tensor parallel
    kv_heads: int
    head_size: int
    intermediate: int
    experts: int
    experts_per_token: int
    expert_intermediate: int
    max_positions: int | None  # context the config promises, rope scaling applied; None: not told
    dtype: str  # torch_dtype: bf16, fp16, fp32; "" when not told
    ropes: tuple[Rope, ...]
    vision: Vision | None
    config: Mapping[str, Any]  # the (trimmed) config.json itself
    quantization: Mapping[str, Any] | None  # its quantization_config
    sources: tuple[str, ...] = ()
    doubts: tuple[str, ...] = ()
    layer_prefix: str = "model.layers"  # the checkpoint's name of the list of layers
    most_positions_without_yarn: int | None = None  # for engines that do not apply yarn's factor
    start_positions: int | None = None  # served when no length is asked for (longrope: shorter)

    def tensors(self) -> Iterator[Tensor]:
        """Every tensor of the main model: outer, layers, towers; not the draft's."""
        yield from self.outer
        for layer in self.layers:
            yield from layer.tensors
        yield from self.towers

    @property
    def parameters(self) -> int:
        """Distinct parameters without the draft layers, as checkpoints count them."""
        return sum(tensor.elements for tensor in self.tensors())

    @property
    def active_parameters(self) -> int:
        """Parameters that one token meets: experts count by the share that is routed to."""
        total = 0.0
        for tensor in (*self.outer, *self.towers):
            total += tensor.elements
        for layer in self.layers:
            share = layer.experts_per_token / layer.experts if layer.experts else 1.0
            for tensor in layer.tensors:
                total += tensor.elements * (share if tensor.role == "expert" else 1.0)
        return round(total)
