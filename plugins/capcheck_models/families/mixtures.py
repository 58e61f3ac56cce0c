"""Sparse families in the manner of Mixtral, Qwen-MoE and GLM-4.5, as table rows."""

from __future__ import annotations

from functools import partial

from .blocks import Names, fused
from .moe import (
    Mixture,
    after_dense,
    listed_or_after_dense,
    listed_or_all,
    sparse_decoder,
    stepped,
)
from .style import ATTENTION_BIAS, LLAMA, TWO_NORMS, Bias, Style

_QWEN = Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head", sliding="asked")
_FIRST_DENSE = after_dense("first_k_dense_replace")
_BAILING = fused("attention", "query_key_value", "dense")._replace(
    q_norm="attention.query_layernorm", k_norm="attention.key_layernorm"
)
_HUNYUAN = Names(q_norm="self_attn.query_layernorm", k_norm="self_attn.key_layernorm")

# Experts as Mixtral names and tells them.
_MIXTRAL = Mixture(
    Style(sliding="all"),
    width=("intermediate_size",),
    experts="block_sparse_moe.experts",
    names=("w1", "w3", "w2"),
    router="block_sparse_moe.gate",
    shared="",
)

MIXTURES: dict[str, Mixture] = {
    "mixtral": _MIXTRAL,
    "qwen2_moe": Mixture(
        Style(Bias("qkv_bias", True), sliding="asked"),
        stepped,
        shared="mlp.shared_expert",
        shared_gate="mlp.shared_expert_gate",
    ),
    "qwen3_moe": Mixture(_QWEN, stepped, shared=""),
    "olmoe": Mixture(
        Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="whole"),
        width=("intermediate_size",),
        shared="",
    ),
    "phimoe": _MIXTRAL._replace(
        style=Style(
            ATTENTION_BIAS,
            ATTENTION_BIAS,
            norm_bias=True,
            sliding="all",
            head_bias=Bias("lm_head_bias"),
        )
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
    "minimax_m2": _MIXTRAL._replace(style=Style(qk_norm="whole"), router_dtype="fp32"),
    "dots1": Mixture(Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head"), _FIRST_DENSE),
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
    "mellum": Mixture(
        Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head"), listed_or_all, shared=""
    ),
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
