"""Device memory of weights: allocator steps, shards, stages. Worked examples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.architecture import Part, Rope, Tensor
from capcheck.physics import memory
from capcheck.physics.memory import Split
from capcheck.quantity import MIB

QKV = Tensor(
    "attention",
    (Part("q", 4096, 32), Part("k", 1024, 8), Part("v", 1024, 8)),
    into=4096,
    split="column",
)
EXPERTS = Tensor("expert", (Part("w1", 1536), Part("w3", 1536)), 4096, "column", copies=64)


@pytest.mark.parametrize(
    ("size", "taken"),
    [
        (0, 0),
        (1, 512),
        (512, 512),
        (513, 1024),
        (9 * MIB, 9 * MIB),  # small pools keep to 512 B
        (10 * MIB + 1, 10 * MIB + 512),  # the rest of 2 MiB is more than 1 MiB: it is split off
        (11.5 * MIB, 12 * MIB),  # the rest is not split off
        (12 * MIB, 12 * MIB),
    ],
)
def test_allocator(size: float, taken: float) -> None:
    assert memory.allocated(size) == taken


@given(st.floats(1, 1e11))
def test_allocator_never_takes_less_nor_a_mebibyte_more(size: float) -> None:
    assert size <= memory.allocated(size) <= size + MIB + 512


def test_heads_are_dealt_out_whole() -> None:
    rank = [memory.part_out(part, QKV, Split(tensor=4)) for part in QKV.parts]
    assert rank == [1024, 256, 256]
    beyond = [memory.part_out(part, QKV, Split(tensor=16)) for part in QKV.parts]
    assert beyond == [256, 128, 128]  # KV heads replicate: never less than one


def test_vocabulary_is_padded_to_64() -> None:
    head = Tensor("head", (Part("lm_head", 151_937),), 10, "vocabulary")
    assert memory.part_out(head.parts[0], head, Split()) == 151_936 + 64
    assert memory.part_out(head.parts[0], head, Split(tensor=4)) == (151_936 + 64) // 4


def test_experts_are_split_by_width_or_by_number() -> None:
    by_width, by_number = Split(tensor=8), Split(tensor=8, expert=8)
    assert memory.part_out(EXPERTS.parts[0], EXPERTS, by_width) == 192
    assert memory.rank_copies(EXPERTS, by_width) == 64
    assert memory.part_out(EXPERTS.parts[0], EXPERTS, by_number) == 1536
    assert memory.rank_copies(EXPERTS, by_number) == 8
    assert memory.dense_bytes(EXPERTS, by_width, 2) == memory.dense_bytes(EXPERTS, by_number, 2)


@pytest.mark.parametrize(
    ("layers", "stages", "sizes"),
    [
        (32, 1, (32,)),
        (80, 4, (20, 20, 20, 20)),
        (61, 4, (15, 15, 16, 15)),  # the rest goes to the second-last first
        (62, 4, (15, 16, 16, 15)),
        (63, 4, (16, 16, 16, 15)),
        (5, 2, (3, 2)),
    ],
)
def test_stages(layers: int, stages: int, sizes: tuple[int, ...]) -> None:
    assert memory.stage_sizes(layers, stages) == sizes


@given(st.integers(1, 200), st.integers(1, 16))
def test_stages_hold_every_layer(layers: int, stages: int) -> None:
    sizes = memory.stage_sizes(layers, stages)
    assert sum(sizes) == layers
    assert max(sizes) - min(sizes) <= 1


def test_ropes_count_once_each() -> None:
    rope = Rope(positions=131072, dimensions=128)
    once = memory.rope_bytes([rope], 2)
    assert once == 131072 * 128 * 2
    assert memory.rope_bytes([rope, rope], 2) == once
    assert memory.rope_bytes([rope._replace(copies=4)], 2) == 4 * once
