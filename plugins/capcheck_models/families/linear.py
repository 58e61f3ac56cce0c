"""Gated delta nets between full attention layers: Qwen3-Next and Qwen3.5."""

from __future__ import annotations

from capcheck.architecture import Layer

from .blocks import Tensors, attention, gated_mlp, norms, replicated
from .config import Config
from .decoder import Decoder, ends, intermediate, layer, routing, sizes, stack, tied
from .moe import MOST_DRAFT_LAYERS, Mixture, mixture_experts, stepped
from .rope import ropes
from .state import Delta, gated_delta_net
from .style import TWO_NORMS, Style

_QWEN_MIXTURE = Mixture(
    Style(), stepped, shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate"
)


def delta_widths(c: Config, hidden: int) -> Delta:
    """Read a gated delta net. Raises BadConfig."""
    return Delta(
        hidden,
        c.size("linear_num_key_heads"),
        c.size("linear_num_value_heads"),
        c.size("linear_key_head_dim"),
        c.size("linear_value_head_dim"),
        c.size("linear_conv_kernel_dim", default=4),
    )


def delta_kinds(c: Config, layers: int) -> tuple[str, ...]:
    """Linear layers and, every `full_attention_interval`, a full one; or as listed."""
    told = c.per_layer("layer_types", layers)
    if told is not None:
        return told
    every = c.whole("full_attention_interval", default=4, least=1)
    return tuple(
        "linear_attention" if (index + 1) % every else "full_attention" for index in range(layers)
    )


def state_dtype(c: Config) -> str:
    """The dtype that a configuration fixes for recurrent states."""
    told = c.word("mamba_ssm_dtype", "mamba_ssm_cache_dtype")
    return "fp32" if told == "float32" else ""


def _prediction(c: Config, built: Decoder, one: Layer) -> Decoder:
    """Qwen's MTP: a full layer, a projection of two hidden states, three norms; named mtp.*"""
    count = c.whole(
        "mtp_num_hidden_layers", "num_nextn_predict_layers", default=0, most=MOST_DRAFT_LAYERS
    )
    if not count:
        return built
    hidden = built.sizes.hidden
    around = replicated("draft", "mtp.fc", hidden, 2 * hidden) + norms(
        hidden, "mtp.pre_fc_norm_embedding", "mtp.pre_fc_norm_hidden", "mtp.norm"
    )
    return built._replace(draft=(one,) * count, draft_outer=around)


def _qwen(c: Config, *, split_names: bool) -> Decoder:
    widths = sizes(c)
    hidden = widths.hidden
    bias = c.flag("attention_bias")
    gated = c.flag("attn_output_gate", default=True)
    full = attention(widths.attention(), bias=bias, out_bias=bias, qk_norm="head", gated=gated)
    mixes = gated_delta_net(
        delta_widths(c, hidden), split_names=split_names, state_dtype=state_dtype(c)
    )
    around = norms(hidden, *TWO_NORMS)
    route = routing(c) if c.has("num_experts", "num_local_experts") else None
    experts = mixture_experts(_QWEN_MIXTURE, route, hidden) if route else None
    sparse = stepped(c, widths.layers) if route else (False,) * widths.layers
    plain: Tensors = () if all(sparse) else gated_mlp(hidden, intermediate(c))

    def make(kind: tuple[str, bool]) -> Layer:
        mixer, has_experts = kind
        block = full if mixer == "full_attention" else mixes
        if has_experts:
            return layer(block, around, experts=experts)
        return layer(block, plain, around)

    is_tied = tied(c, False)
    root = "model"
    built = Decoder(
        layers=stack(zip(delta_kinds(c, widths.layers), sparse, strict=True), make),
        outer=ends(widths, is_tied, root=root),
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size, 0.25),
        routing=route,
    )
    return _prediction(c, built, make(("full_attention", route is not None)))


def qwen3_next(c: Config) -> Decoder:
    """Qwen3-Next: three gated delta nets to one gated full attention, experts everywhere."""
    return _qwen(c, split_names=False)


def qwen3_5(c: Config) -> Decoder:
    """The text part of Qwen3.5 and later: as Qwen3-Next, dense or with experts."""
    return _qwen(c, split_names=True)


FAMILIES = {
    "qwen3_next": qwen3_next,
    "qwen3_5_text": qwen3_5,
    "qwen3_5_moe_text": qwen3_5,
}
