"""Architectures written by hand from public config.json files, for the physics tests."""

from __future__ import annotations

from typing import Literal

from capcheck.architecture import Architecture, Cache, Layer, Mixer, Part, Role, Split, Tensor


def matrix(
    role: Role, name: str, out: int, into: int, split: Split, copies: int = 1, heads: int = 0
) -> Tensor:
    return Tensor(role, (Part(name, out, heads),), into, split, copies)


def norm(width: int) -> Tensor:
    return Tensor("norm", (Part("norm", width),), linear=False)


def grouped_attention(
    hidden: int, heads: int, kv_heads: int, size: int, window: int = 0, gated: bool = False
) -> tuple[Mixer, tuple[Tensor, ...], Cache]:
    query = heads * size * (2 if gated else 1)
    qkv = (
        Part("q_proj", query, heads),
        Part("k_proj", kv_heads * size, kv_heads),
        Part("v_proj", kv_heads * size, kv_heads),
    )
    kind: Literal["sliding", "full"] = "sliding" if window else "full"
    tensors = (
        Tensor("attention", qkv, hidden, "column"),
        matrix("attention", "o_proj", hidden, heads * size, "row"),
        norm(hidden),
    )
    mixer = Mixer(kind, heads, size, size, kv_heads, window)
    return mixer, tensors, Cache(kind, kv_heads, size, size, window)


def latent_attention(hidden: int, heads: int) -> tuple[Mixer, tuple[Tensor, ...], Cache]:
    """DeepSeek-V3's: query rank 1536, latent 512, rope 64, nope and value heads of 128."""
    down = (Part("q_a_proj", 1536), Part("kv_a_proj_with_mqa", 576))
    tensors = (
        Tensor("attention", down, hidden, "replicated"),
        matrix("attention", "q_b_proj", heads * 192, 1536, "column", heads=heads),
        matrix("attention", "kv_b_proj", heads * 256, 512, "column", heads=heads),
        matrix("attention", "o_proj", hidden, heads * 128, "row"),
        norm(hidden),
        norm(1536),
        norm(512),
    )
    mixer = Mixer("mla", heads, 192, 128, heads, latent=512, rope=64, nope=128)
    return mixer, tensors, Cache("latent", 1, 576)


def linear_attention(
    hidden: int, key_heads: int, value_heads: int, size: int, kernel: int
) -> tuple[Mixer, tuple[Tensor, ...], Cache]:
    """A gated delta net: the state is one matrix for each value head."""
    width = 2 * key_heads * size + value_heads * size
    tensors = (
        matrix("attention", "in_proj_qkvz", width + value_heads * size, hidden, "column"),
        matrix("attention", "in_proj_ba", 2 * value_heads, hidden, "column"),
        matrix("attention", "out_proj", hidden, value_heads * size, "row"),
        norm(hidden),
    )
    mixer = Mixer("linear", value_heads, size, size, state=size * size)
    state = Cache(
        "state", conv=(kernel - 1) * width, ssm=value_heads * size * size, conv_kernel=kernel
    )
    return mixer, tensors, state


def mlp(role: Role, hidden: int, inner: int, copies: int = 1) -> tuple[Tensor, ...]:
    gate_up = (Part("gate_proj", inner), Part("up_proj", inner))
    return (
        Tensor(role, gate_up, hidden, "column", copies),
        matrix(role, "down_proj", hidden, inner, "row", copies),
        norm(hidden),
    )


def expert_mlp(hidden: int, inner: int, experts: int, shared: int = 0) -> tuple[Tensor, ...]:
    routed = mlp("expert", hidden, inner, experts)[:2]
    always = mlp("shared_expert", hidden, shared)[:2] if shared else ()
    return (*routed, *always, matrix("router", "gate", experts, hidden, "replicated"), norm(hidden))


def architecture(
    model: str,
    family: str,
    layers: tuple[Layer, ...],
    hidden: int,
    vocabulary: int,
    *,
    tied: bool = False,
) -> Architecture:
    embedding = matrix("embedding", "embed_tokens", vocabulary, hidden, "vocabulary")
    head = matrix("head", "lm_head", vocabulary, hidden, "vocabulary")
    outer = (embedding, norm(hidden)) if tied else (embedding, norm(hidden), head)
    first = layers[0].mixer
    experts = max(layer.experts for layer in layers)
    return Architecture(
        model, family, layers, outer, (), (), (), hidden, vocabulary, tied,
        first.heads, first.kv_heads, first.head_size, 0, experts,
        max(layer.experts_per_token for layer in layers), 0, None, "bf16", (), None, {}, None,
    )  # fmt: skip


def dense_model(
    model: str,
    family: str,
    *,
    layers: int,
    hidden: int,
    heads: int,
    kv_heads: int,
    size: int,
    inner: int,
    vocabulary: int,
    tied: bool = False,
) -> Architecture:
    mixer, tensors, cache = grouped_attention(hidden, heads, kv_heads, size)
    layer = Layer(mixer, tensors + mlp("mlp", hidden, inner), cache)
    return architecture(model, family, (layer,) * layers, hidden, vocabulary, tied=tied)


def llama_8b() -> Architecture:
    return dense_model(
        "meta-llama/Llama-3.1-8B", "llama",
        layers=32, hidden=4096, heads=32, kv_heads=8, size=128, inner=14336, vocabulary=128256,
    )  # fmt: skip


def qwen3_32b() -> Architecture:
    return dense_model(
        "Qwen/Qwen3-32B", "qwen3",
        layers=64, hidden=5120, heads=64, kv_heads=8, size=128, inner=25600, vocabulary=151936,
    )  # fmt: skip


def gpt_oss_120b() -> Architecture:
    def layer(window: int) -> Layer:
        mixer, tensors, cache = grouped_attention(2880, 64, 8, 64, window)
        return Layer(mixer, tensors + expert_mlp(2880, 2880, 128), cache, 128, 4)

    layers = (layer(128), layer(0)) * 18
    return architecture("openai/gpt-oss-120b", "gpt_oss", layers, 2880, 201088)


def deepseek_v3() -> Architecture:
    mixer, tensors, cache = latent_attention(7168, 128)
    first = Layer(mixer, tensors + mlp("mlp", 7168, 18432), cache)
    rest = Layer(mixer, tensors + expert_mlp(7168, 2048, 256, 2048), cache, 256, 8)
    layers = (first,) * 3 + (rest,) * 58
    return architecture("deepseek-ai/DeepSeek-V3", "deepseek_v3", layers, 7168, 129280)


def minimax_m2() -> Architecture:
    mixer, tensors, cache = grouped_attention(3072, 48, 8, 128)
    layer = Layer(mixer, tensors + expert_mlp(3072, 1536, 256), cache, 256, 8)
    return architecture("MiniMaxAI/MiniMax-M2.5", "minimax_m2", (layer,) * 62, 3072, 200064)


def qwen3_5_397b() -> Architecture:
    full_mixer, full_tensors, full_cache = grouped_attention(4096, 32, 2, 256, gated=True)
    mixer, tensors, cache = linear_attention(4096, 16, 64, 128, 4)
    experts = expert_mlp(4096, 1024, 512, 1024)
    linear = Layer(mixer, tensors + experts, cache, 512, 10)
    full = Layer(full_mixer, full_tensors + experts, full_cache, 512, 10)
    layers = (linear, linear, linear, full) * 15
    return architecture("Qwen/Qwen3.5-397B-A17B", "qwen3_5_moe", layers, 4096, 248320)
