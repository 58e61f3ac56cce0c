"""Transformer encoders of images and sound: blocks of attention and a feed-forward.

Names are whole (with the block's index), since quantization configurations exclude towers by
their full names. Blocks are sharded as the decoder's are; patch embeddings, positions and norms
are replicated.
"""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Part, Role, Tensor

from .blocks import Tensors, column, linear, norm, replicated, row, vector


class Encoder(NamedTuple):
    """The drawing of one encoder's blocks and the names of their parts."""

    prefix: str  # of the list of blocks: "visual.blocks"
    layers: int
    hidden: int
    intermediate: int
    qkv: tuple[str, ...] = ("attn.qkv",)  # one fused name, or three
    out: str = "attn.proj"
    mlp: tuple[str, ...] = ("mlp.fc1", "mlp.fc2")  # three: a gated one
    norms: tuple[str, ...] = ("norm1", "norm2")
    qkv_bias: bool = True
    key_bias: bool = True  # Whisper's keys have none
    out_bias: bool = True
    mlp_bias: bool = True
    norm_bias: bool = True
    qk_norm: tuple[str, ...] = ()
    qk_norm_size: int = 0
    qk_norm_bias: bool = False
    scales: tuple[str, ...] = ()  # one learned factor per channel
    gates: tuple[str, ...] = ()  # one learned number
    attended: int = 0  # width of all heads together; 0: the hidden size
    role: Role = "vision"


def _qkv(e: Encoder, at: str) -> Tensors:
    names = e.qkv * 3 if len(e.qkv) == 1 else e.qkv
    parts = tuple(Part(f"{at}.{name}", e.attended or e.hidden) for name in names)
    weight = Tensor(e.role, parts, e.hidden, "column")
    if not e.qkv_bias:
        return (weight,)
    biased = parts if e.key_bias else (parts[0], parts[2])
    named = tuple(Part(f"{part.name}.bias", part.out) for part in biased)
    return weight, Tensor(e.role, named, 0, "column", linear=False)


def _feed(e: Encoder, at: str) -> Tensors:
    *ups, down = (f"{at}.{name}" for name in e.mlp)
    parts = tuple(Part(name, e.intermediate) for name in ups)
    return (
        *linear(e.role, parts, e.hidden, "column", bias=e.mlp_bias),
        *row(e.role, down, e.hidden, e.intermediate, bias=e.mlp_bias),
    )


def _block(e: Encoder, at: str) -> Tensors:
    wide = e.attended or e.hidden
    tensors = _qkv(e, at) + row(e.role, f"{at}.{e.out}", e.hidden, wide, bias=e.out_bias)
    tensors += _feed(e, at)
    for name in e.norms:
        tensors += norm(f"{at}.{name}", e.hidden, bias=e.norm_bias, role=e.role)
    for name in e.qk_norm:
        tensors += norm(f"{at}.{name}", e.qk_norm_size, bias=e.qk_norm_bias, role=e.role)
    for name in e.scales:
        tensors += vector(e.role, f"{at}.{name}", e.hidden)
    for name in e.gates:
        tensors += vector(e.role, f"{at}.{name}", 1)
    return tensors


def blocks(e: Encoder) -> Tensors:
    """All blocks of an encoder: one is drawn, the others differ in the index in their names."""
    drawn = _block(e, "")
    found = []
    for index in range(e.layers):
        at = f"{e.prefix}.{index}"
        for role, parts, into, split, copies, packed, dtype in drawn:
            named = tuple(Part(at + name, *sizes) for name, *sizes in parts)
            found.append(Tensor(role, named, into, split, copies, packed, dtype))
    return tuple(found)


def patches(name: str, hidden: int, patch: int, *, frames: int = 1, bias: bool = True) -> Tensors:
    """The embedding of image patches: a convolution over three colours and perhaps frames."""
    return fixed("vision", name, hidden, 3 * frames * patch * patch, bias=bias)


def fixed(role: Role, name: str, out: int, into: int, *, bias: bool = False) -> Tensors:
    """A matrix that no method packs and every device holds: convolutions, position tables."""
    weight, *rest = replicated(role, name, out, into, bias=bias)
    return (weight._replace(linear=False), *rest)


def projector(
    *widths: int, names: tuple[str, ...], bias: bool = True, shard: bool = True
) -> Tensors:
    """A chain of matrices from the encoder's width to the decoder's: `widths` in between.

    With two matrices the first is column-parallel and the second row-parallel.
    """
    tensors: Tensors = ()
    for index, name in enumerate(names):
        into, out = widths[index], widths[index + 1]
        if not shard or len(names) == 1:
            tensors += replicated("projector", name, out, into, bias=bias)
        elif index == 0:
            tensors += column("projector", name, out, into, bias=bias)
        else:
            tensors += row("projector", name, out, into, bias=bias)
    return tensors
