"""Time that devices spend on each other. Bytes, seconds, bytes/s one way per device."""

from __future__ import annotations


def ring_share(ranks: int) -> float:
    """Bytes that cross a device's link for each byte that is all-reduced: 2 (n - 1) / n."""
    return 2.0 * (ranks - 1) / ranks if ranks > 1 else 0.0


def transfer_seconds(data_bytes: float, bytes_per_second: float, efficiency: float) -> float:
    """Seconds to move bytes over a link; 0 for no bytes. Raises ValueError without a rate."""
    if data_bytes <= 0:
        return 0.0
    rate = bytes_per_second * efficiency
    if rate <= 0:
        raise ValueError("the link has no rate")
    return data_bytes / rate


def all_reduce_seconds(
    data_bytes: float,
    ranks: int,
    *,
    start_seconds: float,
    rank_seconds: float,
    bytes_per_second: float,
    efficiency: float,
) -> float:
    """One all-reduce of `data_bytes` held by each of `ranks`: latency and ring transfer.

    `start_seconds` and `rank_seconds` (for each rank) are the fixed cost; 0 for a single rank.
    """
    if ranks <= 1:
        return 0.0
    moved = data_bytes * ring_share(ranks)
    latency = start_seconds + rank_seconds * ranks
    return latency + transfer_seconds(moved, bytes_per_second, efficiency)


def all_to_all_bytes(
    tokens: float, hidden: int, chosen: int, groups: int, value_bytes: float
) -> float:
    """Bytes that leave a device when its tokens visit experts on `groups` devices and return.

    A token is sent once to each device that holds one of its `chosen` experts: at most as many
    as there are devices, one share of which stays at home.
    """
    if groups <= 1:
        return 0.0
    copies = groups * (1.0 - (1.0 - 1.0 / groups) ** chosen)
    away = copies * (groups - 1) / groups
    return 2.0 * tokens * hidden * value_bytes * away
