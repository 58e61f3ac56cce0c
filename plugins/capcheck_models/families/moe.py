"""Decoders whose feed-forward is a mixture of experts, and the prediction layers they store."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import NamedTuple

from capcheck.architecture import Layer

from .blocks import (
    Experts,
    Heads,
    Names,
    Tensors,
    fused,
    gated_mlp,
    norms,
    replicated,
    router,
    stacked_experts,
    vector,
)
from .config import Config
from .decoder import Decoder, Routing, Sizes, embedding, head, layer, routing, sizes, stack, tied
from .rope import ropes
from .style import (
    ATTENTION_BIAS,
    LLAMA,
    TWO_NORMS,
    Bias,
    Style,
    style_attention,
    style_ends,
    style_mlp,
    style_norms,
    windows,
)

MOST_DRAFT_LAYERS = 100
DEEPSEEK_NAMES = ("eh_proj", "enorm", "hnorm", "shared_head.norm")
Sparse = Callable[[Config, int], tuple[bool, ...]]


def all_sparse(_c: Config, layers: int) -> tuple[bool, ...]:
    """Every layer has experts."""
    return (True,) * layers


def after_dense(*keys: str, default: int = 0) -> Sparse:
    """Experts everywhere but in the first so many layers, which a key tells."""

    def rule(c: Config, layers: int) -> tuple[bool, ...]:
        first = c.whole(*keys, default=default)
        return tuple(index >= first for index in range(layers))

    return rule


def stepped(c: Config, layers: int) -> tuple[bool, ...]:
    """Experts every `decoder_sparse_step` layers, but not in `mlp_only_layers`."""
    step = c.whole("decoder_sparse_step", default=1, least=1)
    plain = frozenset(c.wholes("mlp_only_layers") or ())
    return tuple(index not in plain and (index + 1) % step == 0 for index in range(layers))


def listed(c: Config, layers: int) -> tuple[bool, ...]:
    """Experts where `moe_layer_freq` (or `mlp_layer_types`) says so, layer by layer."""
    types = c.per_layer("mlp_layer_types", layers)
    if types is not None:
        return tuple(kind == "sparse" for kind in types)
    flags = c.wholes("moe_layer_freq", most=1)
    if flags is None or len(flags) < layers:
        raise c.bad("moe_layer_freq", f"0 or 1 for each of {layers} layers")
    return tuple(bool(flag) for flag in flags[:layers])


def listed_or_all(c: Config, layers: int) -> tuple[bool, ...]:
    """As `listed` where the configuration lists the layers, else experts everywhere."""
    told = c.has("mlp_layer_types") or c.has("moe_layer_freq")
    return listed(c, layers) if told else all_sparse(c, layers)


def listed_or_after_dense(c: Config, layers: int) -> tuple[bool, ...]:
    """As `listed` where the configuration lists the layers, else after the first dense ones."""
    if c.has("mlp_layer_types"):
        return listed(c, layers)
    return after_dense("first_k_dense_replace", default=1)(c, layers)


class Mixture(NamedTuple):
    """One family's experts: where they are, how they are named, what is shared."""

    style: Style
    sparse: Sparse = all_sparse
    width: tuple[str, ...] = ("moe_intermediate_size",)
    dense_width: tuple[str, ...] = ("intermediate_size",)
    experts: str = "mlp.experts"
    names: tuple[str, ...] = ("gate_proj", "up_proj", "down_proj")
    router: str = "mlp.gate"
    router_bias: bool = False
    router_dtype: str = ""
    expert_bias: bool = False
    correction: str = ""  # a stored parameter per expert beside the router
    shared: str = "mlp.shared_experts"
    shared_gate: str = ""
    shared_count: int = 0  # when the configuration does not tell
    drafts: str = ""  # stored prediction layers: "" none, "bare", with "ends", or "dense"


def mixture_routing(c: Config, mixture: Mixture) -> Routing:
    """Experts, experts per token and widths. Raises BadConfig."""
    found = routing(c, width=mixture.width)
    if not found.shared and not c.has("n_shared_experts", "num_shared_experts"):
        found = found._replace(shared=mixture.shared_count * found.intermediate)
    return found if mixture.shared else found._replace(shared=0)


def mixture_experts(mixture: Mixture, sizes_of: Routing, hidden: int) -> Experts:
    """The experts of one layer, their router and the shared experts."""
    scores = router(
        sizes_of.experts, hidden, name=mixture.router, bias=mixture.router_bias
    )
    if mixture.router_dtype:
        scores = tuple(tensor._replace(dtype=mixture.router_dtype) for tensor in scores)
    tensors = scores + stacked_experts(
        sizes_of.experts,
        hidden,
        sizes_of.intermediate,
        prefix=mixture.experts,
        names=mixture.names,
        bias=mixture.expert_bias,
    )
    if mixture.correction:
        tensors += vector("router", mixture.correction, sizes_of.experts)
    if sizes_of.shared:
        tensors += gated_mlp(
            hidden, sizes_of.shared, prefix=mixture.shared, role="shared_expert"
        )
        if mixture.shared_gate:
            tensors += replicated("router", mixture.shared_gate, 1, hidden)
    return Experts(tensors, sizes_of.experts, sizes_of.per_token)


def sparse_decoder(
    c: Config,
    mixture: Mixture,
    heads_of: Callable[[Config, Sizes, int, int], Heads] | None = None,
) -> Decoder:
    """A decoder whose layers have experts or, where the family says so, a dense feed-forward.

    `heads_of(config, sizes, layer, window)` gives the attention shape of layers that differ.
    Raises BadConfig.
    """
    widths, style = sizes(c), mixture.style
    route = mixture_routing(c, mixture)
    sparse = mixture.sparse(c, widths.layers)
    around = style_norms(style, widths.hidden)
    experts = mixture_experts(mixture, route, widths.hidden)
    plain: Tensors = ()
    if not all(sparse):
        plain = style_mlp(c, style, widths.hidden, c.size(*mixture.dense_width))

    def make(kind: tuple[Heads, int, bool]) -> Layer:
        heads, window, has_experts = kind
        block = style_attention(c, style, heads, window)
        if has_experts:
            return layer(block, around, experts=experts)
        return layer(block, around, plain)

    kinds = []
    for index, window in enumerate(windows(c, style, widths.layers)):
        heads = heads_of(c, widths, index, window) if heads_of else widths.attention()
        kinds.append((heads, window, sparse[index]))
    built = Decoder(
        layers=stack(kinds, make),
        outer=style_ends(c, style, widths),
        sizes=widths,
        tied=tied(c, style.tied),
        ropes=ropes(c, _rotated(c, widths), style.partial),
        prefix=f"{style.root}.{style.layers}",
        routing=route,
    )
    if not mixture.drafts:
        return built
    if mixture.drafts == "dense":  # ERNIE predicts with a dense layer
        feed = style_mlp(c, style, widths.hidden, c.size(*mixture.dense_width))
        one = layer(style_attention(c, style, widths.attention(), 0), feed, around)
        return with_prediction(c, built, one=one, names=_ERNIE_NAMES)
    own_ends = mixture.drafts == "ends"
    return with_prediction(c, built, embed=own_ends, own_head=own_ends)


def _rotated(c: Config, widths: Sizes) -> int:
    return c.whole("rotary_dim", default=widths.head_size)


def with_prediction(
    c: Config,
    built: Decoder,
    *,
    one: Layer | None = None,
    embed: bool = False,
    own_head: bool = False,
    names: tuple[str, ...] = DEEPSEEK_NAMES,
) -> Decoder:
    """Add the stored next-token prediction layers (DeepSeek's kind of MTP).

    Each is a decoder layer (`one`, or else a copy of the last), a projection of two hidden states
    to one and norms, named in `names`; `embed` and `own_head` when an embedding and a head of its
    own are stored with it.
    """
    count = c.whole("num_nextn_predict_layers", default=0, most=MOST_DRAFT_LAYERS)
    if not count:
        return built
    hidden, vocabulary = built.sizes.hidden, built.sizes.vocabulary
    around = replicated("draft", names[0], hidden, 2 * hidden) + norms(hidden, *names[1:])
    if embed:
        around += embedding(vocabulary, hidden, "embed_tokens")
    if own_head:
        around += head(vocabulary, hidden, "shared_head.head")
    layers = (one or built.layers[-1],) * count
    return built._replace(draft=layers, draft_outer=around * count)


_ERNIE_NAMES = ("mtp_linear_proj", "mtp_emb_norm", "mtp_hidden_norm")
_SHARED = {"shared": "mlp.shared_expert", "shared_gate": "mlp.shared_expert_gate"}
_W = ("w1", "w3", "w2")
_BLOCK = {"experts": "block_sparse_moe.experts", "router": "block_sparse_moe.gate", "names": _W}
_QWEN = Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head", sliding="asked")
_FIRST_DENSE = after_dense("first_k_dense_replace")
_BAILING = fused("attention", "query_key_value", "dense")._replace(
    q_norm="attention.query_layernorm", k_norm="attention.key_layernorm"
)
_HUNYUAN = Names(q_norm="self_attn.query_layernorm", k_norm="self_attn.key_layernorm")

MIXTURES: dict[str, Mixture] = {
    "mixtral": Mixture(
        Style(sliding="all"), width=("intermediate_size",), shared="", **_BLOCK
    ),
    "qwen2_moe": Mixture(Style(Bias("qkv_bias", True), sliding="asked"), stepped, **_SHARED),
    "qwen3_moe": Mixture(_QWEN, stepped, shared=""),
    "olmoe": Mixture(
        Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="whole"),
        width=("intermediate_size",),
        shared="",
    ),
    "phimoe": Mixture(
        Style(
            ATTENTION_BIAS,
            ATTENTION_BIAS,
            norm_bias=True,
            sliding="all",
            head_bias=Bias("lm_head_bias"),
        ),
        width=("intermediate_size",),
        shared="",
        **_BLOCK,
    ),
    "granitemoe": Mixture(
        LLAMA._replace(tied=True),
        width=("intermediate_size",),
        experts="block_sparse_moe",
        names=("input_linear", "input_linear", "output_linear"),
        router="block_sparse_moe.router.layer",
        shared="",
    ),
    "gpt_oss": Mixture(
        Style(
            Bias("attention_bias", True),
            Bias("attention_bias", True),
            sinks="self_attn.sinks",
            full_every=2,
        ),
        width=("intermediate_size",),
        names=("gate_up_proj", "gate_up_proj", "down_proj"),
        router="mlp.router",
        router_bias=True,
        expert_bias=True,
        shared="",
    ),
    "minimax_m2": Mixture(
        Style(qk_norm="whole"),
        width=("intermediate_size",),
        router_dtype="fp32",
        shared="",
        **_BLOCK,
    ),
    "dots1": Mixture(
        Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head"), _FIRST_DENSE
    ),
    "solar_open": Mixture(Style(), _FIRST_DENSE),
    "glm4_moe": Mixture(
        Style(ATTENTION_BIAS, qk_norm="head", qk_norm_if=Bias("use_qk_norm"), partial=0.5),
        _FIRST_DENSE,
        router_dtype="fp32",
        drafts="ends",
    ),
    "hy_v3": Mixture(
        Style(qk_norm="head"),
        listed_or_after_dense,
        router="mlp.router.gate",
        router_dtype="fp32",
        shared="mlp.shared_mlp",
        drafts="bare",
    ),
    "hunyuan_v1_moe": Mixture(
        Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head", names=_HUNYUAN),
        width=("moe_intermediate_size", "intermediate_size"),
        router="mlp.gate.wg",
        shared="mlp.shared_mlp",
        shared_count=1,
    ),
    "ernie4_5_moe": Mixture(
        Style(Bias("use_bias"), Bias("use_bias"), Bias("use_bias"), tied=True),
        after_dense("moe_layer_start_index", default=1),
        router_dtype="fp32",
        correction="mlp.moe_statics.e_score_correction_bias",
        drafts="dense",
    ),
    "afmoe": Mixture(
        Style(
            qk_norm="head",
            full_gate="self_attn.gate_proj",
            norms=(*TWO_NORMS, "pre_mlp_layernorm", "post_mlp_layernorm"),
            full_every=4,
        ),
        after_dense("num_dense_layers"),
        router="mlp.router.gate",
        router_dtype="fp32",
        correction="mlp.expert_bias",
    ),
    "mellum": Mixture(Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head"), listed_or_all, shared=""),
    "bailing_moe": Mixture(
        Style(
            Bias("use_qkv_bias"),
            Bias("use_bias"),
            qk_norm="head",
            qk_norm_if=Bias("use_qk_norm"),
            names=_BAILING,
            embed="word_embeddings",
        ),
        _FIRST_DENSE,
    ),
}

FAMILIES = {name: partial(sparse_decoder, mixture=mixture) for name, mixture in MIXTURES.items()}
