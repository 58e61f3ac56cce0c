"""Mixers that keep a state instead of keys and values: Mamba, gated delta nets, convolutions."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.architecture import Cache, Mixer, Part

from .blocks import (
    SELF_ATTENTION,
    Block,
    Tensors,
    column,
    linear,
    norm,
    replicated,
    row,
    vector,
)


def _convolution(name: str, parts: tuple[Part, ...], kernel: int, *, bias: bool) -> Tensors:
    """A depthwise convolution: one kernel per channel, sharded with the channels."""
    named = tuple(part._replace(name=name) for part in parts)
    weight = linear("state", named, kernel, "column")[0]._replace(linear=False)
    if not bias:
        return (weight,)
    biases = tuple(part._replace(name=f"{name}.bias") for part in parts)
    return weight, weight._replace(parts=biases, into=0)


class Mamba2(NamedTuple):
    """The widths of a Mamba-2 mixer."""

    hidden: int
    heads: int
    size: int  # of one head
    groups: int
    state: int
    kernel: int
    bias: bool = False
    conv_bias: bool = True
    normed: bool = True

    @property
    def width(self) -> int:
        """All heads together."""
        return self.heads * self.size


def mamba2(widths: Mamba2, prefix: str, state_dtype: str = "") -> Block:
    """Mamba-2. Groups are sharded like KV heads: replicated when there are more devices."""
    wide = widths.width
    shared = widths.groups * widths.state
    groups = (Part("B", shared, widths.groups), Part("C", shared, widths.groups))
    conv = (Part("x", wide), *groups)
    into = (Part("z", wide), *conv, Part("dt", widths.heads))
    named = tuple(part._replace(name=f"{prefix}.in_proj") for part in into)
    tensors = (
        *linear("state", named, widths.hidden, "column", bias=widths.bias),
        *_convolution(f"{prefix}.conv1d", conv, widths.kernel, bias=widths.conv_bias),
        *(
            tensor._replace(dtype="fp32")
            for tensor in vector("state", f"{prefix}.A_log", widths.heads, "column")
        ),
        *vector("state", f"{prefix}.D", widths.heads, "column"),
        *vector("state", f"{prefix}.dt_bias", widths.heads, "column"),
        *row("state", f"{prefix}.out_proj", widths.hidden, wide, bias=widths.bias),
    )
    if widths.normed:
        tensors += vector("state", f"{prefix}.norm", wide, "column")
    conv_width = wide + 2 * shared
    mixer = Mixer(
        "mamba", widths.heads, widths.size, state=widths.size * widths.state, groups=widths.groups
    )
    cache = Cache(
        "state",
        conv=conv_width * (widths.kernel - 1),
        ssm=wide * widths.state,
        conv_kernel=widths.kernel,
        state_dtype=state_dtype,
    )
    return Block(tensors, mixer, cache)


class Mamba1(NamedTuple):
    """The widths of a Mamba-1 mixer."""

    hidden: int
    width: int
    state: int
    kernel: int
    rank: int  # of the time step
    bias: bool = False
    conv_bias: bool = True
    normed: bool = True  # time step, B and C are normed (Jamba)


def mamba1(widths: Mamba1, prefix: str) -> Block:
    """Mamba-1: every channel has a state of its own."""
    wide, state = widths.width, widths.state
    into = (Part(f"{prefix}.in_proj", wide), Part(f"{prefix}.in_proj", wide))
    tensors = (
        *linear("state", into, widths.hidden, "column", bias=widths.bias),
        *_convolution(f"{prefix}.conv1d", (Part("x", wide),), widths.kernel, bias=widths.conv_bias),
        *row("state", f"{prefix}.x_proj", widths.rank + 2 * state, wide),
        *column("state", f"{prefix}.dt_proj", wide, widths.rank, bias=True),
        linear("state", (Part(f"{prefix}.A_log", wide),), state, "column")[0]._replace(
            linear=False, dtype="fp32"
        ),
        *vector("state", f"{prefix}.D", wide, "column"),
        *row("state", f"{prefix}.out_proj", widths.hidden, wide, bias=widths.bias),
    )
    if widths.normed:
        tensors += norm(f"{prefix}.dt_layernorm", widths.rank, role="state")
        tensors += norm(f"{prefix}.b_layernorm", state, role="state")
        tensors += norm(f"{prefix}.c_layernorm", state, role="state")
    mixer = Mixer("mamba", wide, 1, state=state)
    kernel = widths.kernel
    return Block(
        tensors,
        mixer,
        Cache("state", conv=wide * (kernel - 1), ssm=wide * state, conv_kernel=kernel),
    )


class Delta(NamedTuple):
    """The widths of a gated delta net."""

    hidden: int
    key_heads: int
    value_heads: int
    key: int  # of one head
    value: int
    kernel: int

    @property
    def keys(self) -> int:
        """All key heads together."""
        return self.key_heads * self.key

    @property
    def values(self) -> int:
        """All value heads together."""
        return self.value_heads * self.value

    def mixer(self) -> Mixer:
        """Value heads share key heads, which are what tensor parallelism must divide."""
        return Mixer(
            "linear",
            self.value_heads,
            self.key,
            self.value,
            state=self.key * self.value,
            groups=self.key_heads,
        )

    def cache(self, state_dtype: str = "") -> Cache:
        """The last tokens of the convolution, and one key-by-value matrix per head."""
        return Cache(
            "state",
            conv=(2 * self.keys + self.values) * (self.kernel - 1),
            ssm=self.value_heads * self.key * self.value,
            conv_kernel=self.kernel,
            state_dtype=state_dtype,
        )


def gated_delta_net(
    widths: Delta, *, split_names: bool, prefix: str = "linear_attn", state_dtype: str = ""
) -> Block:
    """Qwen's gated delta net.

    `split_names`: the checkpoint stores in_proj_qkv, _z, _b and _a (Qwen3.5) rather than the two
    fused ones of Qwen3-Next; engines fuse both to the same two tensors.
    """
    conv = (Part("q", widths.keys), Part("k", widths.keys), Part("v", widths.values))
    qkv, z = ("in_proj_qkv", "in_proj_z") if split_names else ("in_proj_qkvz",) * 2
    b, a = ("in_proj_b", "in_proj_a") if split_names else ("in_proj_ba",) * 2
    big = (
        *(part._replace(name=f"{prefix}.{qkv}") for part in conv),
        Part(f"{prefix}.{z}", widths.values),
    )
    small = (
        Part(f"{prefix}.{b}", widths.value_heads),
        Part(f"{prefix}.{a}", widths.value_heads),
    )
    tensors = (
        *linear("state", big, widths.hidden, "column"),
        *linear("state", small, widths.hidden, "column"),
        *_convolution(f"{prefix}.conv1d", conv, widths.kernel, bias=False),
        *vector("state", f"{prefix}.A_log", widths.value_heads, "column"),
        *vector("state", f"{prefix}.dt_bias", widths.value_heads, "column"),
        *norm(f"{prefix}.norm", widths.value),
        *row("state", f"{prefix}.out_proj", widths.hidden, widths.values),
    )
    return Block(tensors, widths.mixer(), widths.cache(state_dtype))


def kimi_delta(
    widths: Delta,
    *,
    low_rank_decay: bool = True,
    low_rank_gate: bool = True,
    prefix: str = "self_attn",
) -> Block:
    """Kimi delta attention: a decay for every channel. Its recurrent state is kept in fp32.

    `low_rank_decay` and `low_rank_gate`: the decay, the output gate go through a narrow
    projection of one head's width.
    """
    keys, names = widths.keys, SELF_ATTENTION
    qkv = (
        Part(names.q.replace("self_attn", prefix), keys),
        Part(names.k.replace("self_attn", prefix), keys),
        Part(names.v.replace("self_attn", prefix), widths.values),
    )
    tensors: Tensors = linear("state", qkv, widths.hidden, "column")
    for letter, part in zip("qkv", qkv, strict=True):
        tensors += _convolution(f"{prefix}.{letter}_conv1d", (part,), widths.kernel, bias=False)
    gates = (("f", keys, low_rank_decay), ("g", widths.values, low_rank_gate))
    for gate, wide, low_rank in gates:
        if low_rank:
            tensors += replicated("state", f"{prefix}.{gate}_a_proj", widths.key, widths.hidden)
            tensors += column("state", f"{prefix}.{gate}_b_proj", wide, widths.key)
        else:
            tensors += column("state", f"{prefix}.{gate}_proj", wide, widths.hidden)
    tensors += (
        *column("state", f"{prefix}.b_proj", widths.value_heads, widths.hidden),
        *vector("state", f"{prefix}.A_log", widths.value_heads, "column"),
        *vector("state", f"{prefix}.dt_bias", keys, "column"),
        *norm(f"{prefix}.o_norm", widths.value, role="state"),
        *row("state", f"{prefix}.o_proj", widths.hidden, widths.values),
    )
    return Block(tensors, widths.mixer(), widths.cache("fp32"))


def lightning(hidden: int, heads: int, size: int, *, prefix: str = "self_attn") -> Block:
    """MiniMax's lightning attention: linear attention with a fixed decay and an output gate."""
    wide = heads * size
    qkv = (Part(f"{prefix}.qkv_proj", wide),) * 3
    tensors = (
        *linear("attention", qkv, hidden, "column"),
        *column("attention", f"{prefix}.output_gate", wide, hidden),
        *row("attention", f"{prefix}.out_proj", hidden, wide),
        *vector("norm", f"{prefix}.norm", wide, "column"),
    )
    mixer = Mixer("linear", heads, size, size, state=size * size)
    return Block(tensors, mixer, Cache("state", ssm=heads * size * size))


def short_convolution(hidden: int, kernel: int, *, bias: bool, prefix: str = "conv") -> Block:
    """LFM2's gated short convolution: the last tokens are all it keeps."""
    into = (Part(f"{prefix}.in_proj", hidden),) * 3
    tensors = (
        *linear("state", into, hidden, "column", bias=bias),
        *_convolution(f"{prefix}.conv", (Part("x", hidden),), kernel, bias=bias),
        *row("state", f"{prefix}.out_proj", hidden, hidden, bias=bias),
    )
    cache = Cache("state", conv=hidden * (kernel - 1), conv_kernel=kernel)
    return Block(tensors, Mixer("convolution", 1, hidden), cache)
