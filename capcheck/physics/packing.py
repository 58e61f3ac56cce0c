"""Sizes of packed weights and of what is stored beside them. Pure; elements and bytes."""

from __future__ import annotations

import math


def padded(size: int, multiple: int) -> int:
    """The next multiple that holds `size` elements."""
    return math.ceil(size / multiple) * multiple if multiple > 1 else size


def packed_bytes(elements: float, bits: float) -> float:
    """Bytes of `elements` weights at `bits` bits each."""
    return elements * bits / 8


def pack_factor(bits: float) -> int:
    """Weights in one 32-bit word; 1 where they do not fill it evenly."""
    return int(32 // bits) if bits and 32 % bits == 0 else 1


def groups(into: int, group: int) -> int:
    """Scale groups along the input: 1 per output channel when `group` is 0, rounded up else."""
    return math.ceil(into / group) if group > 0 else 1


def group_scales(out: int, into: int, group: int) -> int:
    """How many scales a matrix has: one per group and output channel, or one in all (-1)."""
    return 1 if group < 0 else out * groups(into, group)


def block_scales(out: int, into: int, block: tuple[int, int]) -> int:
    """How many scales a matrix has in blocks of (out, into), both rounded up."""
    return math.ceil(out / block[0]) * math.ceil(into / block[1])


def swizzled_scales(out: int, into: int, group: int, tile: tuple[int, int] = (128, 4)) -> int:
    """Scales of a matrix whose kernel wants whole tiles of them: (outputs, groups)."""
    return padded(out, tile[0]) * padded(groups(into, group), tile[1])
