"""What a caching allocator takes: worked examples, and what always holds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics import memory
from capcheck.physics.allocator import held
from capcheck.quantity import MIB


def test_small_tensors_share_segments_of_2_mib() -> None:
    assert held([1]) == (512, 2 * MIB)
    assert held([MIB] * 5) == (5 * MIB, 6 * MIB)


def test_middling_tensors_share_segments_of_20_mib() -> None:
    # Three of 6 MiB: the 2 MiB left over are cut off and take one more of 1.5 MiB whole.
    assert held([6 * MIB] * 3) == (18 * MIB, 20 * MIB)
    assert held([*[6 * MIB] * 3, 1.5 * MIB]) == (20 * MIB, 20 * MIB)
    # Two of 9.5 MiB: the last MiB is not worth cutting off.
    assert held([9.5 * MIB] * 2) == (20 * MIB, 20 * MIB)


def test_large_tensors_have_their_own_in_steps_of_2_mib() -> None:
    assert held([12 * MIB]) == (12 * MIB, 12 * MIB)
    assert held([11.5 * MIB]) == (12 * MIB, 12 * MIB)
    # What is cut off a large one serves a later one.
    assert held([10.5 * MIB, 1.4 * MIB]) == (12 * MIB, 12 * MIB)


def test_the_smallest_block_that_is_large_enough_is_taken() -> None:
    # 20 - 12.1 leaves 7.9 MiB of one segment, 20 - 17 leaves 3 of another.
    sizes = [9 * MIB, 3.1 * MIB, 9 * MIB, 8 * MIB, 2.9 * MIB]
    assert held(sizes).reserved == 40 * MIB


@given(st.lists(st.integers(0, int(40 * MIB)), max_size=60))
def test_blocks_hold_the_tensors_and_segments_the_blocks(sizes: list[int]) -> None:
    taken = held(sizes)
    assert sum(sizes) <= taken.allocated <= taken.reserved
    assert taken.allocated <= sum(size + MIB + 512 for size in sizes)


@given(st.floats(10 * MIB, 1e11))
def test_one_large_tensor_alone(size: float) -> None:
    assert held([size]).allocated == memory.allocated(size)
