"""The KV cache of llama.cpp: how many cells it allocates, and their bytes. Pure; tokens, bytes.

Everything is allocated when the server starts: cells for the whole context, in one stream for all
sequences or one for each; few cells for layers that look back only a window; and a recurrent
state for each sequence.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from capcheck.architecture import Cache, Mixer
from capcheck.physics.kv import KV_ELEMENT_BYTES

TYPE_BYTES = {**KV_ELEMENT_BYTES, "iq4_nl": 18 / 32}
BLOCKS = {"q8_0": 32, "q5_1": 32, "q5_0": 32, "q4_1": 32, "q4_0": 32, "iq4_nl": 32}
STATE_BYTES = 4.0  # recurrent states are kept in 32 bits

Latent = Literal["latent", "latent and values", "heads"]

PADS_BY_FLASH = 3900  # builds from here on pad to 256 cells with flash attention, else to 32
STREAMS = 5913  # from here on each sequence has a stream of its own, unless they are unified
WINDOWED = 5427  # from here on sliding layers keep their window only
PADS_ALWAYS = 6980  # from here on everything is padded to 256 cells
PADS_FIRST = 2770  # before, nothing was
WIDE, NARROW = 256, 32


class Cells(NamedTuple):
    """What one context allocates: `streams` caches of `each` cells in every layer."""

    each: int
    streams: int
    sequences: int
    ubatch: int
    build: int
    pad: int
    whole_windows: bool = False  # sliding layers get as many cells as the others

    @property
    def total(self) -> int:
        """Cells of one layer that looks back over everything."""
        return self.each * self.streams

    @property
    def of_one(self) -> int:
        """The most cells that one sequence can have."""
        return self.each

    def windowed(self, window: int) -> int:
        """Cells of one layer that looks back `window` tokens."""
        if self.build < WINDOWED or self.whole_windows:
            return self.total
        shared = self.sequences if self.streams == 1 else 1
        wanted = window * shared + self.ubatch
        if self.build >= PADS_ALWAYS:
            return padded(min(self.each, wanted), WIDE) * self.streams
        return min(self.each, padded(wanted, self.pad)) * self.streams


def padded(size: int, multiple: int) -> int:
    """The next multiple that holds `size`."""
    return -(-size // multiple) * multiple


def pad_of(build: int, flash: bool) -> int:
    """What a build pads the number of cells to."""
    if build < PADS_FIRST:
        return 1
    if build >= PADS_ALWAYS or build < PADS_BY_FLASH or flash:
        return WIDE
    return NARROW


def cells(
    context: int,
    sequences: int,
    *,
    ubatch: int,
    unified: bool,
    flash: bool,
    build: int,
    whole_windows: bool = False,
) -> Cells:
    """The cells of a context of so many tokens for so many sequences."""
    pad = pad_of(build, flash)
    if build < STREAMS or unified or sequences <= 1:
        each, streams = padded(context, pad), 1
    else:
        whole = padded(context, pad) if build >= PADS_ALWAYS else context + sequences - 1
        each, streams = padded(max(1, whole // sequences), pad), sequences
    return Cells(each, streams, sequences, min(ubatch, each * streams), build, pad, whole_windows)


def element_bytes(cache: Cache, mixer: Mixer, k: float, v: float, latent: Latent) -> float:
    """Bytes of one cell of one attention layer: keys in one type, values in another."""
    if cache.kind != "latent":
        return cache.heads * (cache.key * k + cache.value * v)
    if latent == "heads":
        keys = mixer.heads * (mixer.nope + mixer.rope)
        return keys * k + mixer.heads * mixer.value_size * v
    values = mixer.latent * v if latent == "latent and values" else 0.0
    return cache.key * k + values


def state_bytes(cache: Cache, sequences: int) -> float:
    """Bytes of one recurrent layer: what a convolution looks back on, and the state."""
    return (cache.conv + cache.ssm) * STATE_BYTES * sequences


def layer_bytes(
    cache: Cache, mixer: Mixer, at: Cells, k: float, v: float, latent: Latent, *, slides: bool
) -> float:
    """Bytes of one attention layer. `slides`: whether its window bounds what it keeps."""
    if cache.kind == "state":
        return 0.0
    many = at.windowed(cache.window) if slides and cache.window else at.total
    indexed = cache.indexer * k * at.total
    return element_bytes(cache, mixer, k, v, latent) * many + indexed
