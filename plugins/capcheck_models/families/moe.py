"""Decoders whose feed-forward is a mixture of experts, and the prediction layers they store."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from capcheck.architecture import Layer

from .blocks import (
    Experts,
    Heads,
    Tensors,
    gated_mlp,
    norms,
    replicated,
    router,
    stacked_experts,
    vector,
)
from .config import Config
from .decoder import (
    Decoder,
    Routing,
    Sizes,
    embedding,
    feeding_layer,
    head,
    layer,
    routing,
    sizes,
    stack,
    tied,
)
from .rope import ropes
from .style import (
    Style,
    style_attention,
    style_ends,
    style_mlp,
    style_norms,
    windows,
)

MOST_DRAFT_LAYERS = 100
ERNIE_NAMES = ("mtp_linear_proj", "mtp_emb_norm", "mtp_hidden_norm")
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
    scores = router(sizes_of.experts, hidden, name=mixture.router, bias=mixture.router_bias)
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
        tensors += gated_mlp(hidden, sizes_of.shared, prefix=mixture.shared, role="shared_expert")
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
        return feeding_layer(block, around, experts, plain, has_experts)

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
    return _drafted(c, mixture, built)


def _drafted(c: Config, mixture: Mixture, built: Decoder) -> Decoder:
    """Add the prediction layers that the family stores."""
    if not mixture.drafts:
        return built
    if mixture.drafts == "dense":  # ERNIE predicts with a dense layer
        style, widths = mixture.style, built.sizes
        feed = style_mlp(c, style, widths.hidden, c.size(*mixture.dense_width))
        block = style_attention(c, style, widths.attention(), 0)
        one = layer(block, feed, style_norms(style, widths.hidden))
        return with_prediction(c, built, one=one, names=ERNIE_NAMES)
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
