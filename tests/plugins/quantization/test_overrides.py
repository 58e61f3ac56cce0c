"""Modules packed otherwise than the rest, and what reordered activations keep on every rank."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.quantization import Scheme
from capcheck_quantization.kernels import kernel_of, padding
from capcheck_quantization.layouts import allocations, by_layer, of_module
from capcheck_quantization.overrides import apply, entries
from capcheck_quantization.schemes import from_config, read

BASE = {"quant_method": "gptq", "bits": 4, "group_size": 128, "sym": True}
ROUND = {"quant_method": "auto-round", "bits": 4, "group_size": 128, "sym": True}


def bits(scheme: Scheme, layer: int, module: str, role: str = "mlp") -> float | None:
    found = of_module(scheme, layer, module, role)
    return found.bits if found is not None else None


def test_rules_of_gptqmodel() -> None:
    dynamic = {
        r"+:.*\.layers\.1[89]\..*gate.*": {"bits": 8, "group_size": 32},
        r".*\.layers\.2\..*": {"bits": 8},
        r"-:.*\.layers\.3\..*": {},
    }
    scheme = read({**BASE, "dynamic": dynamic})
    assert bits(scheme, 18, "mlp.gate_proj") == 8
    assert bits(scheme, 18, "mlp.up_proj") == 4
    assert bits(scheme, 17, "mlp.gate_proj") == 4
    assert bits(scheme, 2, "mlp.up_proj") == 8
    assert bits(scheme, 3, "mlp.up_proj") is None
    wide = of_module(scheme, 19, "mlp.gate_proj", "mlp")
    assert wide is not None
    assert (wide.group, wide.weight, wide.method) == (32, "int8", "gptq")
    assert by_layer(scheme)


def test_mixed_bits_of_auto_round() -> None:
    extra = {
        "model.layers.0.self_attn.q_proj": {"bits": 8, "group_size": 128},
        "model.layers.1.self_attn.q_proj": {"bits": 8, "group_size": 128},
        "model.layers.1.mlp.gate": {"bits": 16, "data_type": "float"},
        "model.layers.2.mlp.up_proj": {"bits": 4, "group_size": 128, "sym": True},
        r".*layers\.3\..*": {"bits": 2},
    }
    scheme = read({**ROUND, "extra_config": extra})
    assert bits(scheme, 0, "self_attn.q_proj", "attention") == 8
    assert bits(scheme, 1, "self_attn.q_proj", "attention") == 8
    assert bits(scheme, 2, "self_attn.q_proj", "attention") == 4
    assert bits(scheme, 2, "mlp.up_proj") == 4
    assert bits(scheme, 3, "mlp.up_proj") == 2
    assert bits(scheme, 1, "mlp.gate", "router") is None
    # Overrides that say what all say make no parts.
    assert not read({**ROUND, "extra_config": {"a": {"bits": 4}}}).parts


def test_a_head_that_is_packed_by_name() -> None:
    scheme = read({**ROUND, "extra_config": {"lm_head": {"bits": 4, "group_size": 128}}})
    assert of_module(scheme, None, "lm_head", "head") is not None
    plain = read({**ROUND, "extra_config": {"lm_head": {"bits": 16}}})
    assert of_module(plain, None, "lm_head", "head") is None


def test_a_width_that_is_none_is_not_read() -> None:
    assert from_config({**ROUND, "extra_config": {"a": {"bits": 0}}}) is None


@given(
    st.dictionaries(
        st.text(max_size=20), st.one_of(st.none(), st.integers(), st.just({})), max_size=5
    )
)
def test_strange_overrides_are_no_overrides(told: dict[str, Any]) -> None:
    scheme = read(BASE)
    found = apply(scheme, entries({"extra_config": told}, "extra_config"))
    assert not found.parts


def test_reordered_activations_keep_every_scale_on_every_rank() -> None:
    # down_proj of Llama-2-70B, 28672 -> 8192 on one of four ranks, groups of 128.
    ordered = Scheme("gptq", "int4", 4, 128, activation_order=True)
    packed, scales, *indices = allocations(
        (8192,), 7168, 1, ordered, 2.0, split="row", whole_into=28_672
    )
    assert packed == 8192 * 7168 / 2
    assert scales == 8192 * (28_672 // 128) * 2
    assert indices == [7168 * 4, 7168 * 4]
    plain = ordered._replace(activation_order=False)
    _, few = allocations((8192,), 7168, 1, plain, 2.0, split="row", whole_into=28_672)
    assert few == scales / 4


@pytest.mark.parametrize(
    ("capability", "release", "sizes"),
    [
        (80, (0, 20, 0), (128, 256)),
        (90, (0, 11, 0), (128, 256)),  # wheels without triton_kernels
        (90, (0, 12, 0), (64, 1)),
        (100, (0, 20, 0), (256, 256)),
        (100, (0, 33, 0), (128, 256)),
        (110, (0, 20, 0), (128, 256)),  # Thor has the weight-only kernel
        (120, (0, 20, 0), (128, 256)),
    ],
)
def test_padding_of_mxfp4_experts(
    capability: int, release: tuple[int, ...], sizes: tuple[int, int]
) -> None:
    scheme = Scheme("mxfp4", "mxfp4", 4, 32, experts_only=True)
    kernel = kernel_of(scheme, "vllm", "nvidia", capability, release)
    assert padding("mxfp4", kernel, expert=True) == sizes
    assert padding("mxfp4", kernel, expert=False) == (1, 1)


@pytest.mark.parametrize(
    ("capability", "release", "kept"),
    [
        (70, (0, 20, 0), True),
        (75, (0, 11, 0), True),
        (75, (0, 20, 0), False),
        (80, (0, 8, 5), False),
    ],
)
def test_old_devices_keep_the_zero_points_of_gptq(
    capability: int, release: tuple[int, ...], kept: bool
) -> None:
    scheme = Scheme("gptq", "int4", 4, 128)
    kernel = kernel_of(scheme, "vllm", "nvidia", capability, release)
    sizes = allocations((4096,), 4096, 1, scheme, 2.0, kernel=kernel)
    zeros = 4096 * 32 / 2
    assert list(sizes[2:]) == ([zeros] if kept else [])
