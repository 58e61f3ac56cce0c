"""Block scales over fused projections: what vLLM refused until 0.13 and loads since 0.14."""

from __future__ import annotations

from test_shapes import model, problems

from capcheck.physics.memory import Split
from capcheck.quantization import Scheme
from capcheck_quantization.shapes import shape_problems

MIMO = ("XiaomiMiMo/MiMo-V2-Flash", "XiaomiMiMo/MiMo-V2-Flash", 4)


def test_a_fused_projection_with_an_odd_part_is_refused_until_0_13() -> None:
    assert ("block", "self_attn.q_proj", 192, 128, True) in problems(*MIMO, (0, 13, 0))


def test_a_fused_projection_with_an_odd_part_loads_since_0_14() -> None:
    assert problems(*MIMO, (0, 14, 0)) == []
    assert problems(*MIMO, (0, 27, 0)) == []


def test_an_unknown_release_leaves_the_fused_projection_in_doubt() -> None:
    assert {sure for *_, sure in problems(*MIMO, None)} == {False}


def test_experts_and_split_inputs_are_still_refused() -> None:
    wide = problems("deepseek-ai/DeepSeek-R1", "deepseek-ai/DeepSeek-R1", 32, (0, 20, 0))
    assert ("block", "mlp.down_proj", 576, 128, True) in wide
    assert ("block", "mlp.experts.gate_proj", 64, 128, True) in wide
    assert not any("gate_proj" in name and "experts" not in name for _, name, *_ in wide)


def test_other_methods_still_check_fused_projections() -> None:
    scheme = Scheme("compressed-tensors", "fp8_e4m3", 8, 0, (128, 128), activation="fp8")
    built = model("XiaomiMiMo/MiMo-V2-Flash")
    found = shape_problems(scheme, built, Split(tensor=4), engine="vllm", release=(0, 20, 0))
    assert any(one.have == 192 for one in found)
