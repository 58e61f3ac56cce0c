"""Decoders with drawings of their own: GPT-2, OPT, BLOOM, Falcon, GPT-NeoX, Phi, Cohere, DBRX."""

from __future__ import annotations

from capcheck.architecture import Layer

from .blocks import (
    Experts,
    Heads,
    Names,
    Tensors,
    attention,
    fused,
    gated_mlp,
    norm,
    norms,
    plain_mlp,
    replicated,
    router,
    stacked_experts,
    vector,
)
from .config import MOST_EXPERTS, Config
from .decoder import (
    Decoder,
    Routing,
    Sizes,
    embedding,
    ends,
    intermediate,
    layer,
    layer_count,
    sizes,
    tied,
)
from .rope import ropes


def _repeated(one: Layer, widths: Sizes) -> tuple[Layer, ...]:
    return (one,) * widths.layers


def _positions(name: str, count: int, hidden: int) -> Tensors:
    """A learned table of positions."""
    return embedding(count, hidden, name, split=False)


def gpt2(c: Config) -> Decoder:
    """GPT-2: learned positions, fused attention, biases everywhere."""
    widths = sizes(c)
    hidden = widths.hidden
    width = c.size("n_inner", default=4 * hidden)
    block = attention(
        widths.attention(), names=fused("attn", "c_attn", "c_proj"), bias=True, out_bias=True
    )
    feed = plain_mlp(hidden, width, names=("mlp.c_fc", "mlp.c_proj"), bias=True)
    is_tied = tied(c, True)
    outer = ends(widths, is_tied, root="transformer", embed="wte", last="ln_f", norm_bias=True)
    positions = _positions("transformer.wpe", c.size("n_positions", default=1024), hidden)
    one = layer(block, feed, norms(hidden, "ln_1", "ln_2", bias=True))
    return Decoder(
        _repeated(one, widths), outer + positions, widths._replace(intermediate=width), is_tied,
        prefix="transformer.h",
    )  # fmt: skip


def opt(c: Config) -> Decoder:
    """OPT: learned positions (two more than told), norms with biases, a projected embedding."""
    widths = sizes(c)
    hidden, bias = widths.hidden, c.flag("enable_bias", default=True)
    width = c.size("ffn_dim")
    inner = c.size("word_embed_proj_dim", default=hidden)
    block = attention(
        widths.attention(), names=Names(o="self_attn.out_proj"), bias=bias, out_bias=bias
    )
    around = norms(hidden, "self_attn_layer_norm", "final_layer_norm", bias=True)
    root, is_tied = "model.decoder", tied(c, True)
    outer = ends(widths._replace(hidden=inner), is_tied, root=root, final_norm=False) + _positions(
        f"{root}.embed_positions", c.size("max_position_embeddings") + 2, hidden
    )
    if inner != hidden:
        outer += replicated("other", f"{root}.project_in", hidden, inner)
        outer += replicated("other", f"{root}.project_out", inner, hidden)
    if c.flag("do_layer_norm_before", default=True):
        outer += norm(f"{root}.final_layer_norm", hidden, bias=True)
    feed = plain_mlp(hidden, width, names=("fc1", "fc2"), bias=bias)
    return Decoder(
        _repeated(layer(block, feed, around), widths), outer, widths._replace(intermediate=width),
        is_tied, prefix=f"{root}.layers",
    )  # fmt: skip


_NEOX_MLP = ("mlp.dense_h_to_4h", "mlp.dense_4h_to_h")


def bloom(c: Config) -> Decoder:
    """BLOOM: ALiBi instead of positions, a norm after the embedding."""
    widths = sizes(c)
    hidden = widths.hidden
    width = c.size("n_inner", default=4 * hidden)
    names = fused("self_attention", "query_key_value", "dense")
    block = attention(widths.attention(), names=names, bias=True, out_bias=True)
    feed = plain_mlp(hidden, width, names=_NEOX_MLP, bias=True)
    around = norms(hidden, "input_layernorm", "post_attention_layernorm", bias=True)
    is_tied = tied(c, True)
    outer = ends(
        widths, is_tied, root="transformer", embed="word_embeddings", last="ln_f", norm_bias=True
    ) + norm("transformer.word_embeddings_layernorm", hidden, bias=True)
    return Decoder(
        _repeated(layer(block, feed, around), widths), outer, widths._replace(intermediate=width),
        is_tied, prefix="transformer.h",
    )  # fmt: skip


def falcon(c: Config) -> Decoder:
    """Falcon: attention and feed-forward in parallel, one or a few KV heads."""
    newer = c.flag("new_decoder_architecture")
    queries_share = c.flag("multi_query", default=True) and not newer
    widths = sizes(c)
    if queries_share:
        widths = widths._replace(kv_heads=1)
    hidden, bias = widths.hidden, c.flag("bias")
    width = c.size("ffn_hidden_size", default=4 * hidden)
    names = fused("self_attention", "query_key_value", "dense")
    block = attention(widths.attention(), names=names, bias=bias, out_bias=bias)
    feed = plain_mlp(hidden, width, names=_NEOX_MLP, bias=bias)
    if newer and c.whole("num_ln_in_parallel_attn", default=2) == 2:
        named: tuple[str, ...] = ("ln_attn", "ln_mlp")
    elif newer or c.flag("parallel_attn", default=True):
        named = ("input_layernorm",)
    else:
        named = ("input_layernorm", "post_attention_layernorm")
    is_tied = tied(c, True)
    outer = ends(
        widths, is_tied, root="transformer", embed="word_embeddings", last="ln_f", norm_bias=True
    )
    tables = () if c.flag("alibi") else ropes(c, widths.head_size)
    return Decoder(
        _repeated(layer(block, feed, norms(hidden, *named, bias=True)), widths), outer,
        widths._replace(intermediate=width), is_tied, tables, prefix="transformer.h",
    )  # fmt: skip


def gpt_neox(c: Config) -> Decoder:
    """GPT-NeoX and Pythia: fused attention, partly rotated, untied."""
    widths = sizes(c)
    hidden, width, bias = widths.hidden, intermediate(c), c.flag("attention_bias", default=True)
    names = fused("attention", "query_key_value", "dense")
    block = attention(widths.attention(), names=names, bias=bias, out_bias=bias)
    feed = plain_mlp(hidden, width, names=_NEOX_MLP, bias=True)
    around = norms(hidden, "input_layernorm", "post_attention_layernorm", bias=True)
    is_tied = tied(c, False)
    outer = ends(
        widths, is_tied, root="gpt_neox", embed="embed_in", last="final_layer_norm",
        norm_bias=True, lm_head="embed_out",
    )  # fmt: skip
    share = c.number("rotary_pct", 0.25)
    return Decoder(
        _repeated(layer(block, feed, around), widths), outer, widths, is_tied,
        ropes(c, widths.head_size, share), prefix="gpt_neox.layers",
    )  # fmt: skip


def phi(c: Config) -> Decoder:
    """Phi-1 and Phi-2: one norm for both parallel branches, biases everywhere."""
    widths = sizes(c)
    hidden, width = widths.hidden, intermediate(c)
    block = attention(
        widths.attention(),
        names=Names(
            o="self_attn.dense", q_norm="self_attn.q_layernorm", k_norm="self_attn.k_layernorm"
        ),
        bias=True,
        out_bias=True,
        qk_norm="head" if c.flag("qk_layernorm") else "",
        qk_norm_bias=True,
    )
    feed = plain_mlp(hidden, width, names=("mlp.fc1", "mlp.fc2"), bias=True)
    is_tied = tied(c, False)
    outer = ends(widths, is_tied, last="final_layernorm", norm_bias=True, head_bias=True)
    one = layer(block, feed, norm("input_layernorm", hidden, bias=True))
    return Decoder(_repeated(one, widths), outer, widths, is_tied, ropes(c, widths.head_size, 0.5))


def cohere(c: Config) -> Decoder:
    """Command R: one norm for both parallel branches; Command R+ norms every head apart."""
    widths = sizes(c)
    hidden, bias = widths.hidden, c.flag("attention_bias")
    style = "whole" if c.flag("use_qk_norm") else ""
    block = attention(widths.attention(), bias=bias, out_bias=bias, qk_norm=style)
    feed = gated_mlp(hidden, intermediate(c))
    is_tied = tied(c, True)
    return Decoder(
        _repeated(layer(block, feed, norm("input_layernorm", hidden)), widths),
        ends(widths, is_tied),
        widths,
        is_tied,
        ropes(c, widths.head_size),
    )


def apertus(c: Config) -> Decoder:
    """Apertus: an ungated feed-forward whose activation has two learned numbers."""
    widths = sizes(c)
    hidden, bias = widths.hidden, c.flag("attention_bias")
    block = attention(widths.attention(), bias=bias, out_bias=bias, qk_norm="head")
    feed = (
        *plain_mlp(hidden, intermediate(c)),
        *vector("mlp", "mlp.act_fn.alpha_p", 1),
        *vector("mlp", "mlp.act_fn.alpha_n", 1),
    )
    around = norms(hidden, "attention_layernorm", "feedforward_layernorm")
    is_tied = tied(c, False)
    return Decoder(
        _repeated(layer(block, feed, around), widths),
        ends(widths, is_tied),
        widths,
        is_tied,
        ropes(c, widths.head_size),
    )


def dbrx(c: Config) -> Decoder:
    """DBRX: sixteen experts, sizes in two nested sections."""
    told, feed = c.section("attn_config"), c.section("ffn_config")
    hidden, heads = c.size("d_model"), c.size("n_heads")
    kv_heads = told.size("kv_n_heads", default=heads)
    width = feed.size("ffn_hidden_size")
    count = feed.whole("moe_num_experts", least=1, most=MOST_EXPERTS)
    per_token = feed.whole("moe_top_k", least=1, most=count)
    size = c.multiple(hidden, heads, "n_heads")
    widths = Sizes(hidden, layer_count(c), heads, kv_heads, size, c.size("vocab_size"), width)
    block = attention(
        Heads(hidden, heads, kv_heads, size),
        names=fused("norm_attn_norm.attn", "Wqkv", "out_proj"),
    )
    tensors = router(count, hidden, name="ffn.router.layer") + stacked_experts(
        count, hidden, width, prefix="ffn.experts.mlp", names=("w1", "v1", "w2")
    )
    around = norms(hidden, "norm_attn_norm.norm_1", "norm_attn_norm.norm_2")
    is_tied = tied(c, False)
    one = layer(block, around, experts=Experts(tensors, count, per_token))
    return Decoder(
        _repeated(one, widths),
        ends(widths, is_tied, root="transformer", embed="wte", last="norm_f"),
        widths,
        is_tied,
        ropes(c, size),
        prefix="transformer.blocks",
        routing=Routing(count, per_token, width, 0),
    )


def phi3small(c: Config) -> Decoder:
    """Phi-3-small: fused gate and up, layer norms, biases everywhere, tied."""
    widths = sizes(c)
    hidden, width = widths.hidden, c.size("ff_intermediate_size", "intermediate_size")
    names = fused("self_attn", "query_key_value", "dense")
    block = attention(widths.attention(), names=names, bias=True, out_bias=True)
    feed = gated_mlp(hidden, width, names=("up_proj", "up_proj", "down_proj"), bias=True)
    around = norms(hidden, "input_layernorm", "post_attention_layernorm", bias=True)
    is_tied = tied(c, True)
    return Decoder(
        _repeated(layer(block, feed, around), widths),
        ends(widths, is_tied, last="final_layernorm", norm_bias=True),
        widths._replace(intermediate=width),
        is_tied,
        ropes(c, widths.head_size),
    )


FAMILIES = {
    "phi3small": phi3small,
    "gpt2": gpt2,
    "opt": opt,
    "bloom": bloom,
    "falcon": falcon,
    "gpt_neox": gpt_neox,
    "phi": phi,
    "cohere": cohere,
    "apertus": apertus,
    "dbrx": dbrx,
}
