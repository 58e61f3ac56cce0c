"""Weights as an engine holds them: what is shared among devices, held twice or left out."""

from __future__ import annotations

from typing import Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.architecture import Architecture, Layer, Mixer, Part, Rope, Tensor
from capcheck.physics import memory
from capcheck.physics.holding import Weighing
from capcheck.physics.memory import Split
from capcheck.quantization import Scheme
from capcheck_quantization.source import Methods

EXPERTS = Tensor("expert", (Part("w1", 1536), Part("w3", 1536)), 4096, "column", copies=64)
SHARED = Tensor("shared_expert", (Part("down", 4096),), 2048, "row")
TOWER = Tensor("vision", (Part("fc1", 4304),), 1152, "column")
LATENT = Tensor("attention", (Part("self_attn.kv_b_proj", 16 * 256),), 512, "column")
MLA = Layer(Mixer("mla", 16, 192, 128, 1, latent=512, rope=64, nope=128), (LATENT,), None)
FP8 = Scheme("fp8", "fp8_e4m3", 8, 0, block=(128, 128), activation="fp8")


WHOLE = Split()


def weighing(scheme: Scheme | None, split: Split = WHOLE, *, always: bool = True) -> Weighing:
    kind: Literal["always", "packed"] = "always" if always else "packed"
    return Weighing(Methods(), scheme, split, "bf16", lambda own: "", absorbed=kind)


def model(**more: object) -> Architecture:
    head = Tensor("head", (Part("lm_head", 64_000),), 1024, "vocabulary")
    table = Tensor("embedding", (Part("embed", 64_000),), 1024, "vocabulary", linear=False)
    nothing = dict.fromkeys(Architecture._fields)
    told = {
        **nothing, "layers": (MLA,) * 4, "outer": (table, head), "towers": (TOWER,),
        "ropes": (), "tied": False, **more,
    }  # fmt: skip
    return Architecture(**told)  # type: ignore[arg-type]


def test_experts_are_cut_over_all_ranks_of_data_too() -> None:
    # vLLM: TP 4 and DP 2 without expert parallelism cut an expert's matrices eight ways.
    split = Split(tensor=4, experts_over=8)
    assert memory.part_out(EXPERTS.parts[0], EXPERTS, split) == 1536 // 8
    assert memory.part_out(SHARED.parts[0], SHARED, split) == 4096
    assert memory.rank_into(SHARED, split) == 512


def test_spare_copies_of_experts_are_dealt_out_with_them() -> None:
    # 64 experts and 8 copies over 8 devices: nine on each, whole.
    split = Split(tensor=8, expert=8, experts_over=8, spare_experts=8)
    assert memory.rank_copies(EXPERTS, split) == 9
    assert memory.part_out(EXPERTS.parts[0], EXPERTS, split) == 1536


def test_what_every_device_holds_whole() -> None:
    split = Split(tensor=4, shared_over=1, towers_over=1)
    assert memory.rank_into(SHARED, split) == 2048
    assert memory.part_out(TOWER.parts[0], TOWER, split) == 4304
    assert memory.part_out(TOWER.parts[0], TOWER, Split(tensor=4)) == 1076


def test_keys_in_place_of_values_are_held_twice() -> None:
    # Gemma 4 26B, a full layer: two KV heads of 512 once in the checkpoint, twice on the device.
    keys = Part("k_proj", 1024, 2, 2)
    tensor = Tensor("attention", (Part("q_proj", 8192), keys), 2816, "column")
    assert tensor.out == 9216
    assert memory.part_out(keys, tensor, Split()) == 2048
    assert memory.part_out(keys, tensor, Split(tensor=4)) == 1024  # one head of each at least


def test_absorbed_projections_are_seen_in_place_where_they_are_not_packed() -> None:
    stored = 16 * 256 * 512 * 2
    assert weighing(None).layers((MLA,)) == 2 * stored
    assert weighing(None, always=False).layers((MLA,)) == stored
    packed = stored // 2 + 32 * 4 * 4  # fp8, and a scale for each block of 128 x 128
    assert weighing(FP8, always=False).layers((MLA,)) == packed + stored
    kept = FP8._replace(excluded=("kv_b_proj",))
    assert weighing(kept, always=False).layers((MLA,)) == stored


def test_absorbed_projections_are_cut_by_heads() -> None:
    assert memory.absorbed_bytes(MLA, Split(tensor=8), 2.0) == 2 * 256 * 512 * 2
    plain = MLA._replace(mixer=Mixer("full", 16, 128))
    assert memory.absorbed_bytes(plain, Split(), 2.0) == 0


def test_models_that_embed_have_no_head() -> None:
    whole = weighing(None).stage(model(), 0, (4,))
    bare = weighing(None).stage(model(), 0, (4,), head=False)
    assert whole - bare == memory.allocated(64_000 * 1024 * 2)


def test_encoders_are_on_every_stage_and_can_be_left_out() -> None:
    split = Split(pipeline=2)
    tower = memory.allocated(4304 * 1152 * 2)
    for stage in (0, 1):
        with_tower = weighing(None, split).stage(model(), stage, (2, 2))
        assert (
            with_tower - weighing(None, split).stage(model(), stage, (2, 2), towers=False) == tower
        )


def test_rotary_tables_of_a_fixed_dtype_and_of_other_speeds() -> None:
    # DeepSeek V4: two tables of 1,048,576 x 64 in fp32, 256 MiB each.
    slow = Rope(1_048_576, 64, dtype="fp32", base=1e4)
    assert memory.rope_bytes((slow, slow), 2.0) == 2**28
    assert memory.rope_bytes((slow, slow._replace(base=1.6e5)), 2.0) == 2**29


@given(
    st.integers(1, 64), st.integers(1, 8), st.integers(0, 64), st.integers(1, 64), st.integers(0, 9)
)
def test_no_device_holds_more_than_everything(
    tensor: int, pipeline: int, over: int, expert: int, spare: int
) -> None:
    split = Split(tensor, pipeline, expert, over, over, over, over, spare)
    for one in (EXPERTS, SHARED, TOWER):
        whole = memory.dense_bytes(one, Split(spare_experts=0), 2.0)
        assert 0 < memory.dense_bytes(one, split, 2.0) <= whole * (1 + spare / 64)


@pytest.mark.parametrize("expert", [2, 8])
def test_whole_experts_on_all_devices_are_all_experts(expert: int) -> None:
    split = Split(tensor=expert, expert=expert)
    each = memory.dense_bytes(EXPERTS, split, 2.0)
    assert each * expert == memory.dense_bytes(EXPERTS, Split(), 2.0)
