"""What one device reads and computes for a decode step or a prompt of a model.

`work_of` condenses an `Architecture` under a parallel layout to a few numbers for the most
loaded tensor-parallel rank. Pipeline stages are not cut here: a request passes all layers, so
latency needs their sum (`load` divides what stages share).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import NamedTuple

from capcheck.architecture import Architecture, Layer, Mixer, Tensor
from capcheck.physics.memory import Split, part_out, rank_into

RECURRENT = ("mamba", "linear", "convolution")
STATE_OPERATIONS = 6.0  # decay, update, read-out: a multiply and an add for each state element
ELSEWHERE = ("expert", "embedding", "head", "lookup", "vision", "audio", "projector", "draft")


class Layout(NamedTuple):
    """How a replica's devices share a model.

    The experts are shared by all tensor x data devices: by whole experts over `expert` of them,
    and what remains splits each expert.
    """

    tensor: int = 1
    data: int = 1  # attention data-parallel ranks
    expert: int = 1
    pipeline: int = 1
    context: int = 1  # ranks that share each request's KV cache by position

    @property
    def expert_devices(self) -> int:
        """Devices that share the experts."""
        return max(self.tensor * self.data, self.expert, 1)


class Machine(NamedTuple):
    """What a device can do at its peak."""

    bandwidth: float  # bytes/s of memory
    attention_flops: float  # FLOP/s of the dtype that attention computes in
    link_bandwidth: float = 0.0  # bytes/s one way between the devices of a group


class Storage(NamedTuple):
    """How weights and caches are stored, and at which peak their products run."""

    weight_bytes_of: Callable[[Tensor], float]  # stored bytes of a whole tensor, all copies
    flops_of: Callable[[Tensor], float]  # peak FLOP/s of the product with this tensor
    kv_bytes: float  # bytes of one cached key or value element
    state_bytes: float = 4.0  # bytes of one recurrent state element
    indexer_bytes: float = 1.0  # bytes of one element of a sparse-attention index key
    group_reads: float = 0.0  # 1: query heads that share a key head each read it; 0: once for all


class Products(NamedTuple):
    """Matrix products with a group of weights, on one rank."""

    bytes: float = 0.0  # of weights
    flops: float = 0.0  # for each token
    peak_seconds: float = 0.0  # for each token, at the peaks of their dtypes

    def plus(self, other: Products) -> Products:
        """Both groups together."""
        return Products(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


class Attention(NamedTuple):
    """Attention of like layers, on one rank, for each position that a query looks back at."""

    limit: float  # positions looked back at, at most; infinite for full attention
    latent: bool  # multi-head latent attention, absorbed when decoding
    read_bytes: float  # for each request and position, one decode step
    decode_flops: float  # for each query token and position
    prefill_flops: float


class Work(NamedTuple):
    """A model under a layout on a machine: all that a step's duration depends on."""

    dense: Products  # attention, MLP, shared experts, routers, norms
    head: Products
    experts: Products  # bytes of all; FLOPs of the chosen, for each token of the rank's group
    attention: tuple[Attention, ...]
    state_bytes: float  # read and written for each request and step
    state_flops: float  # for each token
    layers: int
    moe_layers: int
    latent_layers: int
    recurrent_layers: int
    hidden: int
    expert_count: int  # of one layer
    experts_per_token: int
    layout: Layout
    machine: Machine

    @property
    def weight_bytes(self) -> float:
        """Weights that a step reads at most, bytes on one rank."""
        return self.dense.bytes + self.head.bytes + self.experts.bytes

    def cache_bytes(self, context_tokens: float) -> float:
        """KV cache and state that one request's decode step moves at a context, bytes."""
        grown = sum(
            part.read_bytes * min(max(context_tokens, 0.0), part.limit) for part in self.attention
        )
        return grown + self.state_bytes


def rank_share(tensor: Tensor, ranks: int) -> float:
    """The share of a tensor on the most loaded of `ranks` tensor-parallel ranks.

    Replicated tensors are whole on each; parts cut by heads keep at least one head.
    """
    if ranks <= 1 or not tensor.elements:
        return 1.0
    split = Split(tensor=ranks)
    out = sum(part_out(part, tensor, split) for part in tensor.parts)
    return out * max(rank_into(tensor, split), 1) * tensor.copies / tensor.elements


def _alike(layers: Iterable[Layer]) -> list[tuple[Layer, int]]:
    """Distinct layer objects and how often each comes: families share what is alike."""
    found: dict[int, tuple[Layer, int]] = {}
    for layer in layers:
        have = found.get(id(layer))
        found[id(layer)] = (layer, have[1] + 1 if have else 1)
    return list(found.values())


def _product(tensor: Tensor, storage: Storage, stored: float, computed: float) -> Products:
    """A tensor of which a rank stores one share and computes with another for each token."""
    flops = 2.0 * tensor.elements * computed if tensor.into else 0.0
    peak_seconds = flops / storage.flops_of(tensor) if flops else 0.0
    return Products(storage.weight_bytes_of(tensor) * stored, flops, peak_seconds)


def _products(tensors: Iterable[tuple[Tensor, int]], storage: Storage, ranks: int) -> Products:
    total = Products()
    for tensor, count in tensors:
        share = rank_share(tensor, ranks) * count
        total = total.plus(_product(tensor, storage, share, share))
    return total


def _experts(layers: Iterable[tuple[Layer, int]], storage: Storage, layout: Layout) -> Products:
    total = Products()
    for layer, count in layers:
        chosen = layer.experts_per_token / layer.experts if layer.experts else 0.0
        share = count / layout.expert_devices
        for tensor in layer.tensors:
            if tensor.role == "expert":
                total = total.plus(_product(tensor, storage, share, share * chosen))
    return total


def _attention_of(layer: Layer, storage: Storage, layout: Layout) -> list[Attention]:
    mixer = layer.mixer
    if mixer.kind in RECURRENT or mixer.kind == "none":
        return []
    heads = math.ceil(mixer.heads / layout.tensor)
    if mixer.kind == "mla":
        found = [_latent(mixer, heads, storage)]
    else:
        found = [_grouped(mixer, heads, storage, layout.tensor)]
    found += _indexing(layer, storage)
    return [
        part._replace(
            read_bytes=part.read_bytes / layout.context,
            decode_flops=part.decode_flops / layout.context,
            prefill_flops=part.prefill_flops / layout.context,
        )
        for part in found
    ]


def _indexing(layer: Layer, storage: Storage) -> list[Attention]:
    """Scoring every position to pick those that are attended to: each rank scores with all heads.

    DeepSeek-AI, "DeepSeek-V3.2-Exp", 2025: index queries of all heads against one key for each
    position. The queries are the widest product of the indexer.
    """
    cache = layer.cache
    if cache is None or not cache.indexer:
        return []
    parts = [part for tensor in layer.tensors if tensor.role == "indexer" for part in tensor.parts]
    queries = max((part.out for part in parts), default=0)
    keys = 1.0 / cache.index_compress  # for each position
    flops = 2.0 * queries * keys
    read = cache.indexer * storage.indexer_bytes * keys
    return [Attention(math.inf, False, read, flops, flops)]


def _latent(mixer: Mixer, heads: int, storage: Storage) -> Attention:
    """Decoding works on the latent, which every rank holds whole; prefill on full heads."""
    read = (mixer.latent + mixer.rope) * storage.kv_bytes
    decode = 2.0 * heads * (2 * mixer.latent + mixer.rope)
    prefill = 2.0 * heads * (mixer.nope + mixer.rope + (mixer.value_size or mixer.head_size))
    return Attention(float(mixer.topk or math.inf), True, read, decode, prefill)


def _grouped(mixer: Mixer, heads: int, storage: Storage, ranks: int) -> Attention:
    widths = mixer.head_size + (mixer.value_size or mixer.head_size)
    kv_heads = math.ceil(mixer.kv_heads / ranks)
    flops = 2.0 * heads * widths
    limit = float(mixer.window or mixer.topk or math.inf)
    readers = kv_heads + storage.group_reads * max(heads - kv_heads, 0)
    return Attention(limit, False, readers * widths * storage.kv_bytes, flops, flops)


def _merged(parts: Iterable[tuple[Attention, int]]) -> tuple[Attention, ...]:
    found: dict[tuple[float, bool], Attention] = {}
    for part, count in parts:
        key = (part.limit, part.latent)
        have = found.get(key, Attention(*key, 0.0, 0.0, 0.0))
        found[key] = Attention(
            *key,
            have.read_bytes + part.read_bytes * count,
            have.decode_flops + part.decode_flops * count,
            have.prefill_flops + part.prefill_flops * count,
        )
    return tuple(found[key] for key in sorted(found))


def _state_elements(layers: Iterable[Layer]) -> float:
    caches = (layer.cache for layer in layers if layer.mixer.kind in RECURRENT)
    return float(sum(cache.conv + cache.ssm for cache in caches if cache is not None))


def work_of(architecture: Architecture, storage: Storage, layout: Layout, machine: Machine) -> Work:
    """Condense a model: what its most loaded rank reads and computes.

    The embedding is looked up, not read; a tied one is read as the head. Encoders and draft
    layers are left out. Raises ValueError for a layout or machine that cannot be.
    """
    if min(layout) < 1:
        raise ValueError("parallel sizes are at least 1")
    if machine.bandwidth <= 0 or machine.attention_flops <= 0:
        raise ValueError("bandwidth and FLOP/s must be positive")
    devices = layout.expert_devices * layout.context * layout.pipeline
    if devices > 1 and machine.link_bandwidth <= 0:
        raise ValueError("devices that share a model need a link")
    layers, alike = architecture.layers, _alike(architecture.layers)
    heads = "embedding" if architecture.tied else "head"
    outer = [(tensor, 1) for tensor in architecture.outer]
    inner = [(tensor, count) for layer, count in alike for tensor in layer.tensors]
    dense = [pair for pair in (*outer, *inner) if pair[0].role not in ELSEWHERE]
    head = [pair for pair in outer if pair[0].role == heads]
    state = _state_elements(layers) / layout.tensor
    kinds = [layer.mixer.kind for layer in layers]
    return Work(
        dense=_products(dense, storage, layout.tensor),
        head=_products(head, storage, layout.tensor),
        experts=_experts(alike, storage, layout),
        attention=_merged(
            (part, count)
            for layer, count in alike
            for part in _attention_of(layer, storage, layout)
        ),
        state_bytes=2.0 * state * storage.state_bytes,
        state_flops=STATE_OPERATIONS * state,
        layers=len(layers),
        moe_layers=len([layer for layer in layers if layer.experts]),
        latent_layers=kinds.count("mla"),
        recurrent_layers=len([kind for kind in kinds if kind in RECURRENT]),
        hidden=architecture.hidden,
        expert_count=max((layer.experts for layer in layers), default=0),
        experts_per_token=max((layer.experts_per_token for layer in layers), default=0),
        layout=layout,
        machine=machine,
    )
