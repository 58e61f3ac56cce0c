"""The textbook formulas against the figures that sizing guides print."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck.physics import roofline
from capcheck.quantity import GIB

GUIDE = roofline.Margins(activation_share=0.25, safety=1.15, device_bytes=80 * GIB)
LLAMA_8B = 8_030_261_248


@pytest.mark.parametrize(
    ("bandwidth", "rate"),
    [(800e9, 44.4), (936e9, 52.0)],  # a Mac Studio and an RTX 3090 reading 18 GB for each token
)
def test_decode_is_bandwidth_over_bytes(bandwidth: float, rate: float) -> None:
    assert roofline.decode_tokens_per_second(bandwidth, 18e9) == pytest.approx(rate, abs=0.05)


def test_prefill_counts_active_parameters() -> None:
    # Mixtral 8x7B: 13 B active, 4,096 tokens, H100 PCIe 756 TFLOP/s at a half
    assert roofline.prompt_seconds(13e9, 4096, 756e12, 0.5) == pytest.approx(0.28, abs=0.005)


def test_prefill_on_a_small_accelerator_takes_long() -> None:
    assert 16.0 < roofline.prompt_seconds(13e9, 4096, 6.5e12, 1.0) < 17.0


def test_kv_of_sixteen_long_sequences() -> None:
    assert roofline.kv_bytes(32, 8, 128, 8192, 2, 16) == 17_179_869_184


def test_generic_memory_in_whole_devices() -> None:
    kv = roofline.kv_bytes(32, 8, 128, 8192, 2, 16)
    memory = roofline.generic_memory(LLAMA_8B * 2.0, kv, GUIDE)
    assert [round(part / GIB, 2) for part in memory] == [14.96, 16.00, 3.74, 39.90, 80.0]


def test_floors_invert_the_formulas() -> None:
    assert roofline.bandwidth_floor(18e9, 1 / 44.4444) == pytest.approx(800e9, rel=1e-4)
    assert roofline.flops_floor(13e9, 4096, 0.28170, 0.5) == pytest.approx(756e12, rel=1e-3)


def test_ridge_of_an_h100_in_16_bit() -> None:
    # 989 TFLOP/s x 2 bytes / (2 x 3.35 TB/s): the usual "about 300 requests"
    assert roofline.ridge_batch(989e12, 3.35e12, 2.0) == pytest.approx(295.2, abs=0.1)


@pytest.mark.parametrize(
    "call",
    [
        lambda: roofline.decode_tokens_per_second(0.0, 1.0),
        lambda: roofline.prompt_seconds(1.0, 1.0, 1.0, 0.0),
        lambda: roofline.generic_memory(1.0, 1.0, GUIDE._replace(device_bytes=0.0)),
        lambda: roofline.bandwidth_floor(1.0, 0.0),
        lambda: roofline.flops_floor(1.0, 1.0, 0.0, 0.5),
        lambda: roofline.ridge_batch(1.0, 0.0, 2.0),
    ],
)
def test_what_cannot_be_raises(call: Callable[[], object]) -> None:
    with pytest.raises(ValueError, match="positive"):
        call()


@given(st.floats(1e6, 1e13), st.floats(0, 1e13))
def test_recommended_devices_hold_the_total(weights: float, kv: float) -> None:
    memory = roofline.generic_memory(weights, kv, GUIDE)
    assert memory.recommended >= memory.total > weights + kv
    assert memory.recommended - memory.total < GUIDE.device_bytes
