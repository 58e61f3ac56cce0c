"""DeepSeek V4: one shared head of compressed latents, hyper-connections instead of residuals."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Cache, Layer, Mixer, Part, Rope, Tensor

from .blocks import Block, Tensors, column, linear, norm, norms, replicated, row, vector
from .config import Config
from .decoder import Decoder, Sizes, embedding, head, layer, layer_count, stack, tied
from .moe import MOST_DRAFT_LAYERS, Mixture, mixture_experts, mixture_routing
from .rope import ropes
from .style import Style
from .vit import fixed

_MIXTURE = Mixture(
    Style(),
    experts="ffn.experts",
    names=("w1", "w3", "w2"),
    router="ffn.gate",
    shared="ffn.shared_experts",
)
# A layer that compresses four tokens to one overlaps its windows: two sets of weights.
_OVERLAPPING = 4


class Widths(NamedTuple):
    """The widths of V4's attention."""

    hidden: int
    heads: int
    size: int  # of the one latent head
    query_rank: int
    out_groups: int
    out_rank: int
    window: int
    rope: int
    index_heads: int
    index_size: int
    topk: int
    streams: int  # of the hyper-connections


def _widths(c: Config) -> Widths:
    return Widths(
        hidden=c.size("hidden_size"),
        heads=c.size("num_attention_heads"),
        size=c.size("head_dim"),
        query_rank=c.size("q_lora_rank"),
        out_groups=c.size("o_groups"),
        out_rank=c.size("o_lora_rank"),
        window=c.size("sliding_window"),
        rope=c.size("qk_rope_head_dim"),
        index_heads=c.size("index_n_heads"),
        index_size=c.size("index_head_dim"),
        topk=c.size("index_topk"),
        streams=c.size("hc_mult"),
    )


def _compressor(widths: Widths, ratio: int, size: int, prefix: str) -> Tensors:
    wide = size * (2 if ratio == _OVERLAPPING else 1)
    parts = (Part(f"{prefix}.wkv", wide), Part(f"{prefix}.wgate", wide))
    return (
        *fixed("indexer", f"{prefix}.ape", ratio, wide),
        *(
            tensor._replace(linear=False)  # kept at the model's dtype by every engine
            for tensor in linear("indexer", parts, widths.hidden, "replicated")
        ),
        *norm(f"{prefix}.norm", size),
    )


def _attention(c: Config, widths: Widths, ratio: int) -> Block:
    wide = widths.heads * widths.size
    share = c.multiple(wide, widths.out_groups, "o_groups")
    down = (Part("attn.wq_a", widths.query_rank), Part("attn.wkv", widths.size))
    tensors = (
        *linear("attention", down, widths.hidden, "replicated"),
        *norm("attn.q_norm", widths.query_rank),
        *norm("attn.kv_norm", widths.size),
        *column("attention", "attn.wq_b", wide, widths.query_rank),
        *column("attention", "attn.wo_a", widths.out_groups * widths.out_rank, share),
        *row("attention", "attn.wo_b", widths.hidden, widths.out_groups * widths.out_rank),
        Tensor("attention", (Part("attn.attn_sink", widths.heads),), 0, "column", 1, False, "fp32"),
    )
    index = 0
    if ratio > 1:
        tensors += _compressor(widths, ratio, widths.size, "attn.compressor")
    if ratio == _OVERLAPPING:
        index = widths.index_size
        tensors += (
            *_compressor(widths, ratio, index, "attn.indexer.compressor"),
            *replicated(
                "indexer", "attn.indexer.wq_b", widths.index_heads * index, widths.query_rank
            ),
            *replicated("indexer", "attn.indexer.weights_proj", widths.index_heads, widths.hidden),
        )
    return Block(tensors, _mixer(widths, index), _cache(widths, ratio, index))


def _mixer(widths: Widths, index: int) -> Mixer:
    return Mixer(
        kind="mla",
        heads=widths.heads,
        head_size=widths.size,
        value_size=widths.size,
        kv_heads=1,
        window=widths.window,
        latent=widths.size - widths.rope,
        rope=widths.rope,
        topk=widths.topk if index else 0,
    )


def _cache(widths: Widths, ratio: int, index: int) -> Cache:
    """Every layer keeps a window; a compressing one keeps one latent for `ratio` tokens too."""
    if ratio <= 1:
        return Cache("sliding", 1, widths.size, 0, widths.window)
    return Cache(
        "latent",
        1,
        widths.size,
        0,
        widths.window,
        indexer=index,
        compress=ratio,
        index_compress=ratio,
    )


def _hyper(widths: Widths, name: str, mixes: int, scales: int) -> Tensors:
    wide = widths.streams * widths.hidden
    found = (
        *fixed("other", f"{name}_fn", mixes, wide),
        *vector("other", f"{name}_base", mixes),
        *vector("other", f"{name}_scale", scales),
    )
    return tuple(tensor._replace(dtype="fp32") for tensor in found)


def _ratios(c: Config, layers: int) -> tuple[int, ...]:
    told = c.wholes("compress_ratios", most=10_000)
    if told is None or len(told) < layers:
        raise c.bad("compress_ratios", f"one ratio for each of {layers} layers")
    return told[:layers]


def _draft(c: Config, widths: Widths, one: Layer) -> tuple[tuple[Layer, ...], Tensors]:
    count = c.whole("num_nextn_predict_layers", default=0, most=MOST_DRAFT_LAYERS)
    around = (
        *replicated("draft", "e_proj", widths.hidden, widths.hidden),
        *replicated("draft", "h_proj", widths.hidden, widths.hidden),
        *norms(widths.hidden, "enorm", "hnorm", "norm"),
        *_hyper(widths, "hc_head", widths.streams, 1),
    )
    return (one,) * count, around * count


def _ropes(c: Config, widths: Widths) -> tuple[Rope, ...]:
    """One table for plain and one for compressed positions; kept in fp32."""
    bases = (c.number("rope_theta", 10000.0), c.number("compress_rope_theta", 160000.0))
    tables = ropes(c, widths.rope)[:1]
    return tuple(table._replace(dtype="fp32", base=base) for table in tables for base in bases)


def deepseek_v4(c: Config) -> Decoder:
    """DeepSeek V4. Raises BadConfig."""
    widths = _widths(c)
    hidden, layers = widths.hidden, layer_count(c)
    route = mixture_routing(c, _MIXTURE)
    experts = mixture_experts(_MIXTURE, route, hidden)
    mixes = widths.streams * (widths.streams + 2)
    around = (
        *norms(hidden, "attn_norm", "ffn_norm"),
        *_hyper(widths, "hc_attn", mixes, 3),
        *_hyper(widths, "hc_ffn", mixes, 3),
    )

    def make(ratio: int) -> Layer:
        return layer(_attention(c, widths, ratio), around, experts=experts)

    is_tied = tied(c, False)
    vocabulary = c.size("vocab_size")
    outer = embedding(vocabulary, hidden, "embed") + norm("norm", hidden)
    outer += () if is_tied else head(vocabulary, hidden, "head")
    told = Sizes(hidden, layers, widths.heads, 1, widths.size, vocabulary, 0)
    draft, draft_outer = _draft(c, widths, make(0))
    return Decoder(
        layers=stack(_ratios(c, layers), make),
        outer=outer + _hyper(widths, "hc_head", widths.streams, 1),
        sizes=told,
        tied=is_tied,
        ropes=_ropes(c, widths),
        prefix="layers",
        routing=route,
        draft=draft,
        draft_outer=draft_outer,
    )


FAMILIES = {"deepseek_v4": deepseek_v4}
