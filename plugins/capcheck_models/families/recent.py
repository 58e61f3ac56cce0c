"""Models with drawings of their own: MiniMax M3, Qwen 4 experimental, Nemotron-NAS."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from capcheck.architecture import Layer, Mixer, Part, Vision

from .blocks import (
    Block,
    Heads,
    Tensors,
    attention,
    gated_mlp,
    linear,
    norm,
    norms,
    replicated,
)
from .config import MOST_LAYERS, Config
from .decoder import (
    Decoder,
    Sizes,
    embedding,
    ends,
    layer,
    routing,
    sizes,
    stack,
    tied,
)
from .linear import delta_kinds, delta_widths, state_dtype
from .moe import Mixture, listed, mixture_experts
from .multimodal import text_part, with_tower
from .rope import ropes
from .state import gated_delta_net
from .style import TWO_NORMS, Style
from .towers import QWEN3, Tower, depth, qwen_vision, side
from .vit import Encoder, blocks, fixed, patches, projector

_BLOCK = "block_sparse_moe"
_M3 = Mixture(
    Style(),
    experts=f"{_BLOCK}.experts",
    names=("w1", "w3", "w2"),
    router=f"{_BLOCK}.gate",
    router_dtype="fp32",
    shared=f"{_BLOCK}.shared_experts",
)


def _with_indexer(
    block: Block, tensors: Tensors, width: int, topk: int, compress: int = 1
) -> Block:
    """Attention whose keys are picked by an indexer with keys of its own."""
    cache = block.cache._replace(indexer=width, index_compress=compress) if block.cache else None
    return Block(block.tensors + tensors, block.mixer._replace(topk=topk), cache)


def _m3_block(c: Config, widths: Sizes, indexed: bool) -> Block:
    style = "head" if c.flag("use_qk_norm", default=True) else ""
    block = attention(widths.attention(), qk_norm=style)
    if not indexed:
        return block
    told = c.section("sparse_attention_config")
    size, heads = told.size("sparse_index_dim"), told.size("sparse_num_index_heads")
    at = "self_attn.indexer"
    parts = (Part(f"{at}.q_proj", heads * size), Part(f"{at}.k_proj", size))
    tensors = linear("indexer", parts, widths.hidden, "replicated") + norms(
        size, f"{at}.q_norm", f"{at}.k_norm"
    )
    topk = told.size("sparse_topk_blocks") * told.size("sparse_block_size")
    return _with_indexer(block, tensors, size, topk)


def _m3_indexed(c: Config, layers: int) -> tuple[bool, ...]:
    told = c.section("sparse_attention_config").wholes("sparse_attention_freq", most=1)
    if told is None or len(told) < layers:
        raise c.bad("sparse_attention_config", f"sparse_attention_freq for {layers} layers")
    return tuple(bool(mark) for mark in told[:layers])


def minimax_m3_text(c: Config) -> Decoder:
    """The text part of MiniMax M3: block-sparse attention, experts after three dense layers."""
    widths = sizes(c)
    hidden = widths.hidden
    route = routing(c, width=("intermediate_size",))
    shared = c.whole("shared_intermediate_size", default=route.shared)
    route = route._replace(shared=shared)
    experts = mixture_experts(_M3, route, hidden)
    plain = gated_mlp(hidden, c.size("dense_intermediate_size"))
    around = norms(hidden, *TWO_NORMS)

    def make(kind: tuple[bool, bool]) -> Layer:
        indexed, sparse = kind
        block = _m3_block(c, widths, indexed)
        if sparse:
            return layer(block, around, experts=experts)
        return layer(block, plain, around)

    is_tied = tied(c, False)
    kinds = zip(_m3_indexed(c, widths.layers), listed(c, widths.layers), strict=True)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size),
        routing=route,
    )


def _m3_tower(c: Config, root: str) -> Tower:
    hidden, layers, width = c.size("hidden_size"), depth(c), c.size("intermediate_size")
    patch = side(c, "patch_size")
    told = c.section_or_self("img_token_compression_config")
    merge, frames = told.size("spatial_merge_size"), told.size("temporal_patch_size")
    tensors = (
        *patches(f"{root}.embeddings.proj", hidden, patch, frames=frames, bias=False),
        *norm(f"{root}.pre_layrnorm", hidden, bias=True, role="vision"),
        *blocks(
            Encoder(
                f"{root}.encoder.layers",
                layers,
                hidden,
                width,
                qkv=("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj"),
                out="self_attn.out_proj",
                norms=("layer_norm1", "layer_norm2"),
            )
        ),
    )
    side_tokens = side(c, "image_size") // (patch * merge)
    return Tower(tensors, Vision(hidden, layers, width, patch, merge, side_tokens * side_tokens))


def minimax_m3(c: Config) -> Decoder:
    """MiniMax M3 with its tower; patches are projected, then four are merged to one token."""
    names = ("language_model.model", "language_model.lm_head")
    built = text_part(c, "minimax_m3_vl_text", names)
    tower = _m3_tower(c.section("vision_config"), "vision_tower.vision_model")
    inner, hidden = tower.facts.hidden, built.sizes.hidden
    merge = tower.facts.merge
    wide = hidden * merge * merge
    root = "multi_modal_projector"
    more = projector(
        inner, hidden, hidden, names=(f"{root}.linear_1", f"{root}.linear_2")
    ) + projector(
        wide, hidden, hidden, names=("patch_merge_mlp.linear_1", "patch_merge_mlp.linear_2")
    )
    return with_tower(built, tower, more)


_MOST_TABLES = 256
_QWEN4 = Mixture(
    Style(), shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate"
)


def _is_prime(number: int) -> bool:
    divisor = 3
    while divisor * divisor <= number:
        if number % divisor == 0:
            return False
        divisor += 2
    return number == 2 or number % 2 != 0


@lru_cache(maxsize=4)
def _hashed_rows(base: int, tables: int, divisor: int) -> int:
    """Rows of all n-gram tables: the first primes from `base` on, padded to `divisor`."""
    total, number = 0, base
    for _ in range(tables):
        while not _is_prime(number):
            number += 1
        total += number
        number += 1
    return -(-total // divisor) * divisor


def _ngram_layer(c: Config, hidden: int, streams: int) -> Tensors:
    """Hashed n-gram embeddings that enter one layer."""
    width = c.size("ple_embed_dim")
    per_size, longest = c.size("heads_per_ngram"), c.size("ngram_size")
    tables = (longest - 1) * per_size
    if not 0 < tables <= _MOST_TABLES:
        raise c.bad("heads_per_ngram", f"at most {_MOST_TABLES} tables")
    divisor = c.size("make_ngram_vocab_size_divisible_by", default=1)
    rows = _hashed_rows(c.whole("ngram_vocab_size_base", least=3, most=10**8), tables, divisor)
    wide, at = streams * hidden, "ple"
    size = c.multiple(width, tables, "ple_embed_dim")
    return (
        *embedding(rows, size, f"{at}.ple_embedding.ngram_embedding"),
        *linear("other", (Part(f"{at}.key_proj", wide),), width, "replicated"),
        *linear("other", (Part(f"{at}.value_proj", hidden),), width, "replicated"),
        *norm(f"{at}.norm_key", wide),
        *norm(f"{at}.norm_query", wide),
        *norm(f"{at}.norm_conv", wide),
        *fixed("other", f"{at}.conv1d", wide, c.size("ple_conv_kernel_size")),
    )


def _gated_residual(name: str, wide: int, rank: int, streams: int) -> Tensors:
    """One branch's hyper-connection: a low-rank mix of the streams, and where to add."""
    tensors = (
        *norm(f"{name}.hc_norm", wide),
        *replicated("other", f"{name}.input_mix_weight_down", rank, wide),
        *replicated("other", f"{name}.input_mix_weight_up", wide, rank),
    )
    if streams:
        tensors += replicated("other", f"{name}.block_inject_weight", streams, wide)
    return tensors


def _qwen4_full(c: Config, widths: Sizes) -> Block:
    block = attention(widths.attention(), qk_norm="head", gated=True)
    if not c.has("indexer_n_heads"):
        return block
    size = c.size("indexer_head_dim")
    heads = c.size("indexer_n_heads") + c.size("indexer_kv_heads", default=1)
    at = "self_attn.indexer"
    tensors = replicated("indexer", f"{at}.index_qk_proj", heads * size, widths.hidden) + norms(
        size, f"{at}.q_layernorm", f"{at}.k_layernorm"
    )
    ratio = c.size("indexer_compress_ratio", default=1)
    return _with_indexer(block, tensors, size, c.size("indexer_budget"), ratio)


class _Qwen4Kind(NamedTuple):
    full: bool
    hashed: bool  # n-gram embeddings enter here


def qwen4_text(c: Config) -> Decoder:
    """The text part: gated delta nets, sparse full layers, hyper-connections, n-gram tables."""
    widths = sizes(c)
    hidden, streams = widths.hidden, c.size("hc_count")
    wide, rank = streams * hidden, c.size("hc_lowrank")
    route = routing(c)
    experts = mixture_experts(_QWEN4, route, hidden)
    mixes = gated_delta_net(
        delta_widths(c, hidden), split_names=True, state_dtype=state_dtype(c)
    )
    full = _qwen4_full(c, widths)
    around = _gated_residual("attn_hyper_connection", wide, rank, streams) + _gated_residual(
        "mlp_hyper_connection", wide, rank, streams
    )

    def make(kind: _Qwen4Kind) -> Layer:
        more = _ngram_layer(c, hidden, streams) if kind.hashed else ()
        return layer(full if kind.full else mixes, around, more, experts=experts)

    hashed = c.wholes("ple_layer_ids", most=MOST_LAYERS) or ()  # counted from 1
    kinds = [
        _Qwen4Kind(kind != "linear_attention", index + 1 in hashed)
        for index, kind in enumerate(delta_kinds(c, widths.layers))
    ]
    is_tied = tied(c, False)
    mixer = _gated_residual("model.hyper_connection_mixer", wide, rank, 0)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied, final_norm=False) + mixer,
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size, 0.25),
        routing=route,
    )


def qwen4(c: Config) -> Decoder:
    """Qwen 4 experimental with its vision tower."""
    built = text_part(c, "qwen4_exp_text", ("model.language_model", "lm_head"))
    tower = qwen_vision(
        c.section("vision_config"), "model.visual", QWEN3, built.sizes.hidden
    )
    tables = tuple(rope._replace(copies=4) for rope in built.ropes)
    return with_tower(built, tower)._replace(ropes=tables)


class _Nas(NamedTuple):
    kv_heads: int  # 0: no attention
    linear_attention: bool
    width: int  # 0: no feed-forward
    linear_feed: bool


def _nas_width(told: Config, hidden: int) -> int:
    plain = told.optional("intermediate_size", least=1)
    if plain is not None:
        return plain
    width = int(2 * told.number("ffn_mult", 0.0) * hidden / 3)
    if width <= 0:
        raise told.bad("ffn_mult", "a number above 0")
    return -(-width // 256) * 256


def _nas_kind(told: Config, heads: int, hidden: int) -> _Nas:
    attends, feed = told.section("attention"), told.section("ffn")
    replaced = attends.flag("replace_with_linear")
    kv_heads = 0
    if not attends.flag("no_op") and not replaced:
        kv_heads = attends.multiple(heads, attends.size("n_heads_in_group"), "n_heads_in_group")
    narrowed = feed.flag("replace_with_linear")
    width = 0 if feed.flag("no_op") or narrowed else _nas_width(feed, hidden)
    return _Nas(kv_heads, replaced, width, narrowed)


def nemotron_nas(c: Config) -> Decoder:
    """Llama layers that a search has thinned: attention or feed-forward may be missing."""
    hidden, heads = c.size("hidden_size"), c.size("num_attention_heads")
    size = c.size("head_dim", default=c.multiple(hidden, heads, "num_attention_heads"))
    kinds = [_nas_kind(told, heads, hidden) for told in c.sections("block_configs")]
    if not kinds or len(kinds) > MOST_LAYERS:
        raise c.bad("block_configs", f"1 to {MOST_LAYERS} blocks")

    def make(kind: _Nas) -> Layer:
        block, tensors = Block((), Mixer("none"), None), ()
        if kind.kv_heads:
            block = attention(Heads(hidden, heads, kind.kv_heads, size))
        elif kind.linear_attention:
            block = Block(
                replicated("attention", "self_attn.linear_attn", hidden, hidden),
                Mixer("none"), None,
            )  # fmt: skip
        if kind.width:
            tensors = gated_mlp(hidden, kind.width)
        elif kind.linear_feed:
            tensors = replicated("mlp", "mlp.linear_mlp", hidden, hidden)
        first = norm(TWO_NORMS[0], hidden) if block.tensors else ()
        second = norm(TWO_NORMS[1], hidden) if tensors else ()
        return layer(block, tensors, first, second)

    kv_heads = max((kind.kv_heads for kind in kinds), default=0) or heads
    widths = Sizes(
        hidden, len(kinds), heads, kv_heads, size, c.size("vocab_size"),
        max(kind.width for kind in kinds),
    )  # fmt: skip
    is_tied = tied(c, False)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, size),
    )


FAMILIES = {
    "minimax_m3_vl_text": minimax_m3_text,
    "minimax_m3_vl": minimax_m3,
    "qwen4_exp_text": qwen4_text,
    "qwen4_exp": qwen4,
    "nemotron-nas": nemotron_nas,
}
