"""What a caching allocator takes for tensors that come one after the other and stay. Pure; bytes.

PyTorch's: small tensors share segments of 2 MiB, middling ones of 20 MiB, large ones get their own
in steps of 2 MiB. A block is cut where what is left over is worth it: 512 B of a small segment,
more than 1 MiB of another. Source: the constants of PyTorch's CUDA caching allocator.
"""

from __future__ import annotations

import math
from bisect import bisect_left, insort
from collections.abc import Iterable
from typing import NamedTuple

from capcheck.quantity import MIB

_STEP = 512
_SMALL = int(MIB)  # the largest tensor of the small pool, and the largest rest that is not cut off
_SMALL_SEGMENT = 2 * _SMALL
_LARGE_SEGMENT = 20 * _SMALL
_OWN_SEGMENT = 10 * _SMALL  # from this size on a tensor has a segment to itself
_OWN_STEP = 2 * _SMALL


class Held(NamedTuple):
    """Bytes of the blocks in use, and of the segments that the device gave for them."""

    allocated: float
    reserved: float


def held(sizes: Iterable[float]) -> Held:
    """What tensors of these sizes, allocated in this order and kept, take."""
    small = allocated = reserved = 0
    free: list[int] = []  # blocks of the large pool, smallest first
    for size in sizes:
        if size <= 0:
            continue
        need = math.ceil(size / _STEP) * _STEP
        if need <= _SMALL:
            small += need
            continue
        at = bisect_left(free, need)
        if at < len(free):
            block = free.pop(at)
        else:
            block = _segment(need)
            reserved += block
        rest = block - need
        if rest > _SMALL:
            insort(free, rest)
            block = need
        allocated += block
    segments = math.ceil(small / _SMALL_SEGMENT) * _SMALL_SEGMENT
    return Held(float(allocated + small), float(reserved + segments))


def _segment(need: int) -> int:
    if need < _OWN_SEGMENT:
        return _LARGE_SEGMENT
    return math.ceil(need / _OWN_STEP) * _OWN_STEP
