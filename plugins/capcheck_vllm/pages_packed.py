"""DeepSeek-V4's pool: latents of several densities, windows, and states of the compressors."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from capcheck import Case
from capcheck.physics import kv
from capcheck_vllm.pages_kinds import INDEX_SCALE_BYTES, Cached

PACKED_BYTES = 584.0  # of one latent: 448 fp8, 64 x 2 B of rope, 8 B of scales
PACKED_STEP = 576  # pages are multiples of it
PLAIN_STEP = 512  # where latents are kept plain
WINDOW_BLOCK = 64
STATE_BLOCKS = {4: 4, 128: 8}  # tokens of a block of compressor states, by tokens of one latent
STATE_ELEMENT_BYTES = 4.0


Members = Sequence[tuple[int, list[float]]]  # of each layer: its stage, and its pages' bytes


class Slot(NamedTuple):
    """Caches that need the same slots: a window of 0 keeps every token."""

    block: int
    window: int


class PackedGroup(NamedTuple):
    """One block table, and its layers' pages by size on one stage."""

    slot: Slot
    pages: Counter[float]

    @property
    def width(self) -> float:
        """Bytes of its pages of one block."""
        return sum(size * count for size, count in self.pages.items())


def _pages_of(layer: Cached, block: int) -> list[tuple[Slot, float]]:
    """The caches of one layer: its window; latents, index keys, states of their compressors."""
    cache = layer.kind.cache
    packed = layer.kind.dtype.startswith("fp8") or layer.kind.dtype == "fp8_ds_mla"
    step = PACKED_STEP if packed else PLAIN_STEP
    token = PACKED_BYTES if packed else cache.key * 2.0
    own = [(Slot(WINDOW_BLOCK, cache.window), WINDOW_BLOCK * token)]
    ratio = cache.compress
    if cache.kind == "latent" and ratio > 1:
        # Neighbouring groups overlap where few tokens make a latent.
        overlap = 2 if ratio in STATE_BLOCKS and ratio < WINDOW_BLOCK else 1
        states = Slot(STATE_BLOCKS.get(ratio, 8), overlap * ratio)
        column = 2 * overlap * STATE_ELEMENT_BYTES
        own += [
            (Slot(block, 0), block // ratio * token),
            (states, states.block * column * cache.key),
        ]
        if cache.indexer:
            key = cache.indexer + INDEX_SCALE_BYTES
            own += [
                (Slot(block, 0), block // ratio * key),
                (states, states.block * column * cache.indexer),
            ]
    return [(slot, float(kv.padded(size, step))) for slot, size in own]


def groups(
    case: Case, layers: Sequence[Cached], stage: int, block: int
) -> tuple[list[PackedGroup], float]:
    """Block tables and bytes of one block on a stage."""
    members: dict[Slot, list[tuple[int, list[float]]]] = {}
    for layer in layers:
        own: dict[Slot, list[float]] = {}
        for slot, size in _pages_of(layer, block):
            own.setdefault(slot, []).append(size)
        for slot, sizes in own.items():
            members.setdefault(slot, []).append((layer.stage, sizes))
    whole = next((slot for slot in members if not slot.window), None)
    size = _repeats_of_a_group(case.release.version, members, whole)
    found = []
    if whole is not None:
        found.append(PackedGroup(whole, _count(members.pop(whole), stage)))
    for slot, held in members.items():
        number = math.ceil(len(held) / size)
        found += [PackedGroup(slot, _count(held[index::number], stage)) for index in range(number)]
    return found, _block_bytes(case.release.version, found)


def _repeats_of_a_group(
    version: tuple[int, ...], members: Mapping[Slot, Members], whole: Slot | None
) -> int:
    """Layers of a pattern that one group holds: what least padding makes of all groups.

    The group of whole latents counts before 0.29, and where it has as many of each size.
    """
    sizes = {slot: Counter(_all_sizes(found)) for slot, found in members.items()}
    counted = {
        slot: max(found.values())
        for slot, found in sizes.items()
        if slot != whole or version < (0, 29, 0) or len(set(found.values())) == 1
    }
    if whole is not None and version < (0, 29, 0):
        least = counted[whole]
    else:
        least = max((counted[slot] for slot in counted if len(sizes[slot]) > 1), default=1)
    return kv.least_padding(list(counted.values()), least)


def _all_sizes(found: Members) -> list[float]:
    return [size for _, sizes in found for size in sizes]


def _count(found: Members, stage: int) -> Counter[float]:
    return Counter(_all_sizes([one for one in found if one[0] == stage]))


def _block_bytes(version: tuple[int, ...], found: Sequence[PackedGroup]) -> float:
    """From 0.27 the widest group; before, pages padded to the latents' sizes, by slots or whole."""
    if version >= (0, 27, 0):
        return max(group.width for group in found)
    sizes = sorted(found[0].pages)
    slots = dict.fromkeys(sizes, 0)
    for group in found:
        held: Counter[float] = Counter()
        for size, count in group.pages.items():
            held[next((own for own in sizes if own >= size), sizes[-1])] += count
        for size, count in held.items():
            slots[size] = max(slots[size], count)
    if version >= (0, 23, 0):
        return sum(size * count for size, count in slots.items())
    return sum(sizes) * max(slots.values())


def needed(group: PackedGroup, length: int, in_flight: int) -> int:
    """Blocks of one group that a request of `length` takes."""
    slot = group.slot
    if not slot.window:
        return math.ceil(length / slot.block)
    return kv.sliding_blocks(slot.window, in_flight, length, slot.block)


def is_packed(layers: Sequence[Cached]) -> bool:
    """Whether the pool is DeepSeek-V4's: latents that share tokens, or windows of latents."""
    return any(
        layer.kind.cache.compress > 1
        or (layer.kind.cache.kind == "sliding" and layer.kind.mixer == "mla")
        for layer in layers
    )
