from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.quantization import Scheme
from capcheck_quantization.kernels import kernel_of, padding
from capcheck_quantization.layouts import allocations, by_layer, excluded, of_module, refused
from capcheck_quantization.schemes import from_words

W4 = Scheme("compressed-tensors", "int4", 4, 128)
FP8 = Scheme("fp8", "fp8_e4m3", 8, -1, activation="fp8")


@pytest.mark.parametrize(
    ("scheme", "expected"),
    [
        (Scheme("awq", "int4", 4, 128, zero_points=True),
         (4096 * 1024 / 2, 8 * 4096 * 2, 8 * 4096 / 2)),
        (W4, (4096 * 1024 / 2, 8 * 4096 * 2)),
        (W4._replace(group=0), (4096 * 1024 / 2, 4096 * 2)),
        (Scheme("gptq", "int8", 8, 128, activation_order=True),
         (4096 * 1024, 8 * 4096 * 2, 1024 * 4, 1024 * 4)),
        (Scheme("compressed-tensors", "int8", 8, 0, activation="int8"), (4096 * 1024, 4096 * 4)),
        (Scheme("hqq", "int4", 4, 64, zero_points=True),
         (4096 * 1024 / 2, 16 * 4096 * 2, 16 * 4096 * 2)),
        (FP8, (4096 * 1024, 4)),
        (FP8._replace(activation_static=True), (4096 * 1024, 4, 4)),
        (FP8._replace(group=0), (4096 * 1024, 4096 * 4)),
        (FP8._replace(group=0, block=(128, 128)), (4096 * 1024, 32 * 8 * 4)),
        (Scheme("modelopt", "nvfp4", 4, 16), (4096 * 1024 / 2, 4096 * 64, 8, 8)),
        (Scheme("mxfp4", "mxfp4", 4, 32), (4096 * 1024 / 2, 4096 * 32)),
        (Scheme("modelopt", "mxfp8", 8, 32), (4096 * 1024, 4096 * 32)),
        (Scheme("bitsandbytes", "nf4", 4, 64), (4096 * 1024 / 2, 4096 * 16 * 4)),
        (Scheme("bitsandbytes", "int8", 8, 0, activation="int8"), (4096 * 1024, 4096 * 4)),
        (Scheme("gguf", "q4_k_m", 4.8944), (4096 * 1024 * 4.8944 / 8,)),
        (Scheme("exl2", "exl2", 4.25), (4096 * 1024 * 4.25 / 8,)),
    ],
)  # fmt: skip
def test_allocations_of_one_matrix(scheme: Scheme, expected: tuple[float, ...]) -> None:
    assert allocations((2048, 2048), 1024, 1, scheme, 2.0) == expected


def test_weight_only_kernels_keep_scales_of_every_channel() -> None:
    assert allocations((4096,), 1024, 1, FP8, 2.0, kernel="marlin") == (4096 * 1024, 4096 * 2)
    blocks = FP8._replace(group=0, block=(128, 128))
    assert allocations((4096,), 1024, 1, blocks, 2.0, kernel="marlin") == (
        4096 * 1024,
        4096 * 8 * 2,
    )
    nvfp4 = Scheme("modelopt", "nvfp4", 4, 16)
    assert allocations((100,), 1024, 1, nvfp4, 2.0)[1] == 128 * 64
    assert allocations((100,), 1024, 1, nvfp4, 2.0, kernel="marlin")[1] == 100 * 64


def test_experts_of_gptq_keep_room_for_zero_points() -> None:
    gptq = Scheme("gptq", "int4", 4, 128)
    assert allocations((1536,), 2048, 8, gptq, 2.0)[2] == 8 * 1536 * 16 / 8 * 2
    assert len(allocations((1536,), 2048, 1, gptq, 2.0)) == 2


def test_padding_follows_the_side_that_is_sharded() -> None:
    mxfp4 = Scheme("mxfp4", "mxfp4", 4, 32)
    up = allocations((720, 720), 2880, 32, mxfp4, 2.0, kernel="marlin")
    down = allocations((2880,), 720, 32, mxfp4, 2.0, kernel="marlin", split="row")
    assert up[0] == 32 * 2 * 768 * 3072 / 2
    assert down[0] == 32 * 3072 * 768 / 2
    assert padding("mxfp4", "marlin", expert=False) == (1, 1)


def test_a_share_mixes_packed_and_dense() -> None:
    half = allocations((4096,), 1024, 1, W4._replace(share=0.5), 2.0)
    assert half == (4096 * 1024 / 4, 8 * 4096, 4096 * 1024)


def test_a_mixed_scheme_has_no_layout_of_its_own() -> None:
    with pytest.raises(ValueError, match="of_module"):
        allocations((1,), 1, 1, W4._replace(parts=(W4,)), 2.0)


SCHEMES = [scheme for scheme in map(from_words, ("fp8", "fp8-block", "int8", "int4", "awq-int4",
           "gptq-int8", "nvfp4", "mxfp8", "bnb-nf4", "q4_k_m", "hqq-int4")) if scheme]  # fmt: skip


@given(st.sampled_from(SCHEMES), st.integers(1, 64), st.integers(1, 64), st.integers(1, 8))
def test_packing_never_takes_more_than_its_bits_and_a_half(
    scheme: Scheme, out: int, into: int, copies: int
) -> None:
    sizes = allocations((out * 128,), into * 128, copies, scheme, 2.0)
    elements = out * into * 128 * 128 * copies
    assert elements * scheme.bits / 8 <= sum(sizes) < elements * (scheme.bits / 8 + 0.5) + 64
    assert all(size > 0 for size in sizes)


@pytest.mark.parametrize(
    ("scheme", "role", "packed"),
    [
        (W4, "attention", True), (W4, "mlp", True), (W4, "expert", True), (W4, "state", True),
        (W4, "router", False), (W4, "head", False), (W4, "embedding", False), (W4, "draft", False),
        (W4, "vision", True), (W4._replace(guessed=("excluded",)), "vision", False),
        (Scheme("awq", "int4", 4, 128), "vision", False),
        (Scheme("modelopt", "nvfp4", 4, 16), "vision", False),
        (Scheme("mxfp4", "mxfp4", 4, 32, experts_only=True), "expert", True),
        (Scheme("mxfp4", "mxfp4", 4, 32, experts_only=True), "attention", False),
        (Scheme("gguf", "q4_k_m", 4.9), "embedding", True),
        (Scheme("gguf", "q4_k_m", 4.9), "head", True),
        (Scheme("gguf", "q4_k_m", 4.9), "router", False),
        (W4._replace(roles=("expert", "head")), "head", True),
        (W4._replace(roles=("expert", "head")), "mlp", False),
    ],
)  # fmt: skip
def test_roles_that_are_packed(scheme: Scheme, role: str, packed: bool) -> None:
    assert excluded(scheme, 3, "some.module", role) is not packed


def test_draft_layers_follow_their_own_rule() -> None:
    told = W4._replace(roles=("mlp",))
    assert of_module(told, 61, "mlp.up_proj", "mlp", draft=True) is None
    assert of_module(told._replace(roles=("mlp", "draft")), 61, "mlp.up_proj", "mlp", draft=True)
    assert of_module(W4, 61, "mlp.up_proj", "mlp", draft=True) is W4
    assert of_module(W4._replace(excluded=("mtp*",)), 61, "mlp.up_proj", "mlp", draft=True) is None


def test_the_first_part_that_packs_a_module_decides() -> None:
    special = FP8._replace(targets=("layers.{56-63}.mlp", "lm_head"))
    mixed = W4._replace(parts=(special, W4), excluded=("re:.*conv1d",))
    assert of_module(mixed, 60, "mlp.up_proj", "mlp") is special
    assert of_module(mixed, 3, "mlp.up_proj", "mlp") is W4
    assert of_module(mixed, None, "lm_head", "head") is special
    assert of_module(mixed, 3, "linear_attn.conv1d", "state") is None
    assert by_layer(mixed)
    assert not by_layer(W4._replace(excluded=("lm_head",)))


def test_refused_patterns_are_told() -> None:
    part = W4._replace(targets=("re:(a+)+",))
    assert refused(W4._replace(parts=(part,), excluded=("re:(b+)+",))) == ("re:(b+)+", "re:(a+)+")


@pytest.mark.parametrize(
    ("weight", "vendor", "capability", "release", "kernel"),
    [
        ("mxfp4", "nvidia", 80, (0, 11, 0), "marlin"),
        ("mxfp4", "nvidia", 90, (0, 11, 0), "marlin"),
        ("mxfp4", "nvidia", 120, (0, 11, 0), "marlin"),
        ("mxfp4", "amd", None, None, "triton-amd"),
        ("mxfp4", "nvidia", None, None, ""),
        ("fp8_e4m3", "nvidia", 86, None, "marlin"),
        ("fp8_e4m3", "nvidia", 89, None, ""),
        ("nvfp4", "nvidia", 90, (0, 11, 0), "marlin"),
        ("nvfp4", "nvidia", 90, (0, 8, 5), ""),
        ("nvfp4", "nvidia", 90, None, ""),
        ("nvfp4", "nvidia", 100, (0, 11, 0), ""),
        ("int4", "nvidia", 90, (0, 11, 0), ""),
    ],
)
def test_kernels(
    weight: str, vendor: str, capability: int | None, release: tuple[int, ...] | None, kernel: str
) -> None:
    scheme = Scheme("any", weight, 4)
    assert kernel_of(scheme, "vllm", vendor, capability, release) == kernel
    assert kernel_of(scheme, "sglang", vendor, capability, release) == ""
