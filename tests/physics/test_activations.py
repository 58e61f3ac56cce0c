"""Profiling peaks against figures that engines logged."""

from __future__ import annotations

import pytest

from capcheck.physics.activations import forward_bytes, sampler_bytes, vision_kept_bytes
from capcheck.quantity import GIB


def test_sampler_of_a_thousand_rows() -> None:
    """Qwen3-4B, vLLM 0.10.2 on an H100: 5.59 GiB logged."""
    peak = sampler_bytes(1024, 151_936, 8192, 2560, bytes_per_logit=38.3)
    assert peak / GIB == pytest.approx(5.59, abs=0.01)


def test_forward_pass_of_a_dense_model() -> None:
    """Qwen3-4B, 8 sequences, 8,192 tokens: 0.59 GiB logged."""
    assert forward_bytes(8192, 2560, 9728) / GIB == pytest.approx(0.59, abs=0.015)


def test_experts_add_what_is_routed() -> None:
    """Qwen3-235B-A22B FP8 on four devices, 8,192 tokens: 0.76 GiB logged."""
    peak = forward_bytes(8192, 4096, 0, experts_per_token=8, expert_intermediate=1536 / 4)
    assert peak / GIB == pytest.approx(0.76, abs=0.06)


def test_deepstack_keeps_more() -> None:
    assert vision_kept_bytes(1000, 2048, 3) == 4 * vision_kept_bytes(1000, 2048, 0)
