from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics.packing import (
    block_scales,
    group_scales,
    groups,
    pack_factor,
    packed_bytes,
    padded,
    swizzled_scales,
)

SIZE = st.integers(1, 100_000)


@given(SIZE, st.integers(1, 512))
def test_padding_is_the_least_multiple(size: int, multiple: int) -> None:
    result = padded(size, multiple)
    assert result % multiple == 0
    assert size <= result < size + multiple


@pytest.mark.parametrize(("bits", "factor"), [(4, 8), (8, 4), (2, 16), (3, 1), (0, 1)])
def test_weights_in_a_word(bits: float, factor: int) -> None:
    assert pack_factor(bits) == factor


def test_bytes_and_scales() -> None:
    assert packed_bytes(1024, 4) == 512
    assert groups(2880, 32) == 90
    assert groups(100, 128) == groups(100, 0) == 1
    assert group_scales(4096, 11008, 128) == 4096 * 86
    assert group_scales(4096, 11008, 0) == 4096
    assert group_scales(4096, 11008, -1) == 1
    assert block_scales(576, 7168, (128, 128)) == 5 * 56
    assert swizzled_scales(100, 100, 16) == 128 * 8


@given(SIZE, SIZE, st.integers(1, 256))
def test_every_weight_has_a_scale(out: int, into: int, group: int) -> None:
    assert group_scales(out, into, group) * group >= out * into
    assert swizzled_scales(out, into, group) >= group_scales(out, into, group)
    assert block_scales(out, into, (group, group)) * group * group >= out * into
