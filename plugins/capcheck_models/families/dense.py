"""Dense decoders in the manner of Llama."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from .blocks import Names, fused
from .config import Config
from .decoder import Decoder
from .moe import with_prediction
from .style import (
    ATTENTION_BIAS,
    FOUR_NORMS,
    LLAMA,
    TWO_NORMS,
    Bias,
    Style,
    dense,
)

_QKV = Bias("qkv_bias", True)
_OLMO_NORMS = ("post_attention_layernorm", "post_feedforward_layernorm")
_GLM4_NORMS = (*TWO_NORMS, "post_self_attn_layernorm", "post_mlp_layernorm")

QWEN2 = Style(_QKV, sliding="asked")
QWEN3 = Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head", sliding="asked")
GLM = Style(
    ATTENTION_BIAS, names=Names(), mlp=("gate_up_proj", "gate_up_proj", "down_proj"), partial=0.5
)
PHI3 = Style(
    names=fused("self_attn", "qkv_proj", "o_proj"),
    mlp=("gate_up_proj", "gate_up_proj", "down_proj"),
    sliding="all",
)
GEMMA3 = Style(
    ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="head", norms=FOUR_NORMS, tied=True, full_every=6
)
COHERE = Style(ATTENTION_BIAS, ATTENTION_BIAS, norms=("input_layernorm",), tied=True)
STARCODER2 = Style(
    Bias("use_bias", True),
    Bias("use_bias", True),
    Bias("use_bias", True),
    norm_bias=True,
    gated=False,
    mlp=("", "c_fc", "c_proj"),
    sliding="all",
    tied=True,
)
EXAONE = Style(
    ATTENTION_BIAS,
    ATTENTION_BIAS,
    names=Names(
        "attn.attention.q_proj",
        "attn.attention.k_proj",
        "attn.attention.v_proj",
        "attn.attention.out_proj",
    ),
    norms=("ln_1", "ln_2"),
    mlp=("c_fc_0", "c_fc_1", "c_proj"),
    root="transformer",
    layers="h",
    embed="wte",
    last="ln_f",
)
INTERNLM2 = Style(
    Bias("bias"),
    Bias("bias"),
    names=fused("attention", "wqkv", "wo"),
    norms=("attention_norm", "ffn_norm"),
    mlp=("w1", "w3", "w2"),
    mlp_prefix="feed_forward",
    embed="tok_embeddings",
    lm_head="output",
)
HUNYUAN = Style(
    ATTENTION_BIAS,
    ATTENTION_BIAS,
    Bias("mlp_bias"),
    qk_norm="head",
    names=Names(q_norm="self_attn.query_layernorm", k_norm="self_attn.key_layernorm"),
)

STYLES: dict[str, Style] = {
    "llama": LLAMA,
    "solar": LLAMA,
    "minicpm": LLAMA._replace(tied=True),
    "baichuan": Style(names=fused("self_attn", "W_pack", "o_proj")),
    "stablelm": Style(Bias("use_qkv_bias"), norm_bias=True, partial=0.25),
    "mistral": Style(sliding="all"),
    "ministral": Style(sliding="all"),
    "ministral3": Style(sliding="all"),
    "qwen2": QWEN2,
    "qwen3": QWEN3,
    "phi3": PHI3,
    "granite": LLAMA,
    "smollm3": LLAMA._replace(tied=True, sliding="asked"),
    "arcee": LLAMA._replace(gated=False, mlp=("", "up_proj", "down_proj")),
    "seed_oss": Style(
        Bias("attention_bias", True), Bias("attention_out_bias"), Bias("mlp_bias"), tied=False
    ),
    "ernie4_5": Style(Bias("use_bias"), Bias("use_bias"), Bias("use_bias"), tied=True),
    "exaone": EXAONE,
    "exaone4": Style(qk_norm="head", norms=_OLMO_NORMS, full_every=4),
    "internlm2": INTERNLM2,
    "internlm3": Style(Bias("qkv_bias"), Bias("bias"), Bias("bias")),
    "gemma": Style(ATTENTION_BIAS, ATTENTION_BIAS, tied=True),
    "gemma2": Style(ATTENTION_BIAS, ATTENTION_BIAS, norms=FOUR_NORMS, tied=True, full_every=2),
    "gemma3_text": GEMMA3,
    "glm": GLM,
    "glm4": GLM._replace(norms=_GLM4_NORMS),
    "cohere2": COHERE._replace(full_every=4),
    "starcoder2": STARCODER2,
    "olmo": LLAMA._replace(norms=(), final_norm=False),
    "olmo2": Style(ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="whole", norms=_OLMO_NORMS),
    "olmo3": Style(
        ATTENTION_BIAS, ATTENTION_BIAS, qk_norm="whole", norms=_OLMO_NORMS, full_every=4
    ),
    "nemotron": LLAMA._replace(
        norm_bias=True, gated=False, mlp=("", "up_proj", "down_proj"), partial=0.5
    ),
    "hunyuan_v1_dense": HUNYUAN,
    "muse_glimmer_text": Style(
        ATTENTION_BIAS,
        ATTENTION_BIAS,
        full_gate="self_attn.gate_proj",
        norms=FOUR_NORMS,
        full_every=4,
    ),
}

_MIMO_NAMES = ("input_proj", "token_layernorm", "hidden_layernorm", "final_layernorm")


def mimo(c: Config) -> Decoder:
    """MiMo: Qwen2 with stored prediction layers."""
    built = dense(c, Style(Bias("attention_bias", True), sliding="asked"))
    return with_prediction(c, built, names=_MIMO_NAMES)


FAMILIES: dict[str, Callable[[Config], Decoder]] = {
    name: partial(dense, style=style) for name, style in STYLES.items()
}
FAMILIES["mimo"] = mimo
