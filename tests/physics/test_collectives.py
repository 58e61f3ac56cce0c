"""Collectives: bytes that cross a link, and their latency."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.collectives import (
    all_reduce_seconds,
    all_to_all_bytes,
    ring_share,
    transfer_seconds,
)

LINK = {"start_seconds": 4e-6, "rank_seconds": 1e-6, "bytes_per_second": 450e9, "efficiency": 0.4}


def test_a_ring_moves_almost_twice_the_data() -> None:
    assert [ring_share(ranks) for ranks in (1, 2, 4, 8)] == [0.0, 1.0, 1.5, 1.75]


def test_all_reduce_is_latency_plus_transfer() -> None:
    # 8 ranks, 1 MB: 4 + 8 us and 1.75 MB at 180 GB/s
    seconds = all_reduce_seconds(1e6, 8, **LINK)
    assert seconds == pytest.approx(12e-6 + 1.75e6 / 180e9)


def test_one_rank_reduces_nothing() -> None:
    assert all_reduce_seconds(1e6, 1, **LINK) == 0.0


def test_a_token_visits_each_device_at_most_once() -> None:
    # 8 experts over 2 devices: nearly both devices, half of the copies stay at home
    moved = all_to_all_bytes(10, 1000, 8, 2, 2.0)
    assert moved == pytest.approx(2 * 10 * 1000 * 2 * (1 - 0.5**8))
    assert all_to_all_bytes(10, 1000, 8, 1, 2.0) == 0.0


def test_a_link_without_rate_is_an_error() -> None:
    assert transfer_seconds(0.0, 0.0, 1.0) == 0.0
    with pytest.raises(ValueError, match="rate"):
        transfer_seconds(1.0, 0.0, 1.0)


@given(st.floats(0, 1e9), st.integers(2, 64))
def test_more_ranks_never_reduce_faster(data: float, ranks: int) -> None:
    assert all_reduce_seconds(data, ranks + 1, **LINK) >= all_reduce_seconds(data, ranks, **LINK)
