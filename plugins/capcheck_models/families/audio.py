"""Encoders of sound: Whisper's kind, and the conformers of Gemma 4 and Phi-4."""

from __future__ import annotations

from .blocks import Tensors, column, norm, norms, replicated, row, vector
from .config import MOST_BLOCKS, Config
from .towers import depth
from .vit import Encoder, blocks, fixed

_WHISPER_QKV = ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj")


def _sounding(tensors: Tensors) -> Tensors:
    """The same tensors in the role of an audio tower."""
    return tuple(tensor._replace(role="audio") for tensor in tensors)


def whisper_blocks(c: Config, root: str, *, key_bias: bool) -> Tensors:
    """The blocks of a Whisper encoder and the norm behind them."""
    hidden, width = c.size("d_model"), c.size("encoder_ffn_dim")
    layers = c.whole("encoder_layers", "num_hidden_layers", least=1, most=MOST_BLOCKS)
    return blocks(
        Encoder(
            f"{root}.layers",
            layers,
            hidden,
            width,
            qkv=_WHISPER_QKV,
            out="self_attn.out_proj",
            mlp=("fc1", "fc2"),
            norms=("self_attn_layer_norm", "final_layer_norm"),
            key_bias=key_bias,
            role="audio",
        )
    ) + norm(f"{root}.ln_post", hidden, bias=True, role="audio")


def qwen25_audio(c: Config, root: str) -> Tensors:
    """Qwen2.5-Omni's encoder: Whisper with a projection to the decoder."""
    hidden, bins, out = c.size("d_model"), c.size("num_mel_bins"), c.size("output_dim")
    return (
        *fixed("audio", f"{root}.conv1", hidden, bins * 3, bias=True),
        *fixed("audio", f"{root}.conv2", hidden, hidden * 3, bias=True),
        *fixed("audio", f"{root}.audio_bos_eos_token", 2, out),
        *whisper_blocks(c, root, key_bias=False),
        *replicated("audio", f"{root}.proj", out, hidden, bias=True),
    )


def qwen3_audio(c: Config, root: str) -> Tensors:
    """Qwen3-Omni's encoder: three two-dimensional convolutions in front of the blocks."""
    hidden, bins, out = c.size("d_model"), c.size("num_mel_bins"), c.size("output_dim")
    channels = c.size("downsample_hidden_size")
    folded = channels * -(-bins // 8)  # three strides of two
    return (
        *fixed("audio", f"{root}.conv2d1", channels, 9, bias=True),
        *fixed("audio", f"{root}.conv2d2", channels, channels * 9, bias=True),
        *fixed("audio", f"{root}.conv2d3", channels, channels * 9, bias=True),
        *replicated("audio", f"{root}.conv_out", hidden, folded),
        *whisper_blocks(c, root, key_bias=True),
        *replicated("audio", f"{root}.proj1", hidden, hidden, bias=True),
        *replicated("audio", f"{root}.proj2", out, hidden, bias=True),
    )


def _gemma_block(c: Config, at: str) -> Tensors:
    hidden = c.size("hidden_size")
    head_size = c.multiple(hidden, c.size("num_attention_heads"), "num_attention_heads")
    tensors: Tensors = ()
    for feed in ("feed_forward1", "feed_forward2"):
        tensors += column("audio", f"{at}.{feed}.ffw_layer_1", 4 * hidden, hidden)
        tensors += row("audio", f"{at}.{feed}.ffw_layer_2", hidden, 4 * hidden)
        tensors += norms(hidden, f"{at}.{feed}.pre_layer_norm", f"{at}.{feed}.post_layer_norm")
    for name in ("q_proj", "k_proj", "v_proj", "post", "relative_k_proj"):
        tensors += replicated("audio", f"{at}.self_attn.{name}", hidden, hidden)
    return (
        *tensors,
        *vector("audio", f"{at}.self_attn.per_dim_scale", head_size),
        *replicated("audio", f"{at}.lconv1d.linear_start", 2 * hidden, hidden),
        *replicated("audio", f"{at}.lconv1d.linear_end", hidden, hidden),
        *fixed("audio", f"{at}.lconv1d.depthwise_conv1d", hidden, c.size("conv_kernel_size")),
        *norms(
            hidden,
            f"{at}.lconv1d.pre_layer_norm",
            f"{at}.lconv1d.conv_norm",
            f"{at}.norm_pre_attn",
            f"{at}.norm_post_attn",
            f"{at}.norm_out",
        ),
    )


def gemma_conformer(c: Config, root: str, text_hidden: int) -> Tensors:
    """Gemma 4's conformer: two half feed-forwards, relative attention, a light convolution."""
    hidden = c.size("hidden_size")
    channels = c.wholes("subsampling_conv_channels") or ()
    if len(channels) != 2:
        raise c.bad("subsampling_conv_channels", "two numbers of channels")
    first, second = channels
    out = c.size("output_proj_dims")
    sub = f"{root}.subsample_conv_projection"
    tensors = (
        *fixed("audio", f"{sub}.layer0.conv", first, 9),
        *norm(f"{sub}.layer0.norm", first),
        *fixed("audio", f"{sub}.layer1.conv", second, first * 9),
        *norm(f"{sub}.layer1.norm", second),
        *replicated("audio", f"{sub}.input_proj_linear", hidden, second * 32),
    )
    for index in range(depth(c)):
        tensors += _gemma_block(c, f"{root}.layers.{index}")
    tensors += replicated("audio", f"{root}.output_proj", out, hidden, bias=True)
    tensors += replicated("projector", "model.embed_audio.embedding_projection", text_hidden, out)
    return _sounding(tensors)


def _phi_block(c: Config, at: str) -> Tensors:
    hidden, width = c.size("hidden_size"), c.size("intermediate_size")
    pointwise = c.size("ext_pw_out_channel")
    depthwise = c.size("depthwise_separable_out_channel")
    tensors: Tensors = ()
    for feed in ("feed_forward_in", "feed_forward_out"):
        tensors += norm(f"{at}.{feed}.layer_norm", hidden, bias=True)
        tensors += replicated("audio", f"{at}.{feed}.gate_up_proj", 2 * width, hidden, bias=True)
        tensors += replicated("audio", f"{at}.{feed}.down_proj", hidden, width, bias=True)
    for name in ("q_proj", "k_proj", "v_proj", "o_proj"):
        tensors += replicated("audio", f"{at}.self_attn.{name}", hidden, hidden, bias=True)
    glu = f"{at}.conv.glu"
    return (
        *tensors,
        *norm(f"{at}.conv.layer_norm", hidden, bias=True),
        *vector("audio", f"{glu}.b1", pointwise),
        *vector("audio", f"{glu}.b2", pointwise),
        *fixed("audio", f"{glu}.ext_pw_conv_1d", 2 * pointwise, hidden, bias=True),
        *fixed("audio", f"{at}.conv.dw_conv", hidden, c.size("kernel_size"), bias=True),
        *fixed("audio", f"{at}.conv.pw_conv", depthwise, hidden, bias=True),
        *fixed("audio", f"{at}.conv.ext_pw_conv_1d", pointwise, depthwise, bias=True),
        *norm(f"{at}.layer_norm_att", hidden, bias=True),
        *norm(f"{at}.layer_norm", hidden, bias=True),
    )


def phi_conformer(c: Config, root: str, text_hidden: int) -> Tensors:
    """Phi-4-multimodal's conformer and its two projections (speech alone, speech with images)."""
    hidden = c.size("hidden_size")
    channels = c.size("nemo_conv_channels")
    encoder = f"{root}.encoder"
    tensors: Tensors = ()
    for index, into in ((0, 9), (2, 9), (5, 9), (3, channels), (6, channels)):
        tensors += fixed("audio", f"{encoder}.embed.conv.{index}", channels, into, bias=True)
    folded = channels * c.size("nemo_final_size")
    tensors += replicated("audio", f"{encoder}.embed.out", hidden, folded, bias=True)
    # The bias table reaches as far back as ahead.
    rows = 2 * c.size("bias_max_distance")
    tensors += fixed(
        "audio", f"{encoder}.relative_attention_bias", rows, c.size("num_attention_heads")
    )
    for index in range(c.whole("num_blocks", "num_hidden_layers", least=1, most=MOST_BLOCKS)):
        tensors += _phi_block(c, f"{encoder}.encoders.{index}")
    for kind in ("speech", "vision_speech"):
        tensors += replicated("audio", f"{root}.up_proj_for_{kind}", text_hidden, hidden, bias=True)
        tensors += replicated(
            "audio", f"{root}.down_proj_for_{kind}", text_hidden, text_hidden, bias=True
        )
    return _sounding(tensors)
