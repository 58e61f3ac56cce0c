"""Qwen 4 experimental: hyper-connections, n-gram tables, sparse full layers."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from capcheck.architecture import Layer, Part

from .blocks import (
    Block,
    Tensors,
    attention,
    linear,
    norm,
    norms,
    replicated,
    with_indexer,
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
from .moe import MOST_DRAFT_LAYERS, Mixture, mixture_experts
from .multimodal import text_part, with_tower
from .rope import ropes
from .state import gated_delta_net
from .style import Style
from .towers import QWEN3, qwen_vision
from .vit import fixed

_MOST_TABLES = 256
_QWEN4 = Mixture(Style(), shared="mlp.shared_expert", shared_gate="mlp.shared_expert_gate")


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
    (table,) = embedding(rows, size, f"{at}.ple_embedding.ngram_embedding")
    return (
        table._replace(role="lookup"),
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
    return with_indexer(block, tensors, size, c.size("indexer_budget"), ratio)


class _Qwen4Kind(NamedTuple):
    full: bool
    hashed: bool  # n-gram embeddings enter here


def _prediction_outer(hidden: int, wide: int, rank: int) -> Tensors:
    return (
        *replicated("draft", "mtp.fc_embedding", hidden, hidden),
        *replicated("draft", "mtp.fc_hidden", hidden, hidden),
        *norm("mtp.pre_fc_norm_embedding", hidden),
        *norm("mtp.pre_fc_norm_hidden", wide),
        *_gated_residual("mtp.hyper_connection_mixer", wide, rank, 0),
    )


def qwen4_text(c: Config) -> Decoder:
    """The text part: gated delta nets, sparse full layers, hyper-connections, n-gram tables."""
    widths = sizes(c)
    hidden, streams = widths.hidden, c.size("hc_count")
    wide, rank = streams * hidden, c.size("hc_lowrank")
    route = routing(c)
    experts = mixture_experts(_QWEN4, route, hidden)
    mixes = gated_delta_net(delta_widths(c, hidden), split_names=True, state_dtype=state_dtype(c))
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
    drafts = c.whole("mtp_num_hidden_layers", default=0, most=MOST_DRAFT_LAYERS)
    return Decoder(
        layers=stack(kinds, make),
        outer=ends(widths, is_tied, final_norm=False) + mixer,
        sizes=widths,
        tied=is_tied,
        ropes=ropes(c, widths.head_size, 0.25),
        routing=route,
        draft=(make(_Qwen4Kind(True, False)),) * drafts,
        draft_outer=_prediction_outer(hidden, wide, rank) if drafts else (),
    )


def qwen4(c: Config) -> Decoder:
    """Qwen 4 experimental with its vision tower."""
    built = text_part(c, "qwen4_exp_text", ("model.language_model", "lm_head"))
    tower = qwen_vision(c.section("vision_config"), "model.visual", QWEN3, built.sizes.hidden)
    tables = tuple(rope._replace(copies=4) for rope in built.ropes)
    return with_tower(built, tower)._replace(ropes=tables)


FAMILIES = {
    "qwen4_exp_text": qwen4_text,
    "qwen4_exp": qwen4,
}
