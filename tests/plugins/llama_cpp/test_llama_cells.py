"""Cells of the KV cache and their bytes: worked examples from public start-up logs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_kit import LLAMA_3, case_of, mib

from capcheck.architecture import Cache, Mixer
from capcheck_llama_cpp.cells import Cells, cells, element_bytes, layer_bytes, padded, state_bytes

FULL = Cache("full", heads=8, key=128, value=128)
LATENT = Cache("latent", heads=1, key=576)
MLA = Mixer("mla", heads=128, latent=512, rope=64, nope=128, value_size=128)


def _cells(context: int, sequences: int = 1, build: int = 9000, **more: bool) -> Cells:
    told = {"unified": False, "flash": True, "whole_windows": False, **more}
    return cells(context, sequences, ubatch=512, build=build, **told)


def test_plain_attention() -> None:
    # 32 layers x 8,192 cells x 8 heads x 128 x 2 x 2 bytes = 1,024 MiB (log of b2824).
    each = layer_bytes(FULL, Mixer("full"), _cells(8192), 2.0, 2.0, "latent", slides=True)
    assert 32 * each / 2**20 == 1024.0


def test_packed_values() -> None:
    # 94 layers x 65,536 cells x 4 heads x 128 x 2 at 34/32 bytes = 6,392 MiB (public log).
    cache = FULL._replace(heads=4)
    each = layer_bytes(cache, Mixer("full"), _cells(65536), 34 / 32, 34 / 32, "latent", slides=True)
    assert 94 * each / 2**20 == pytest.approx(6392.0)


def test_latent_attention() -> None:
    # 61 layers x 163,840 cells x 576 x 2 bytes = 10,980 MiB (public log, the latent alone).
    whole = _cells(163840)
    each = layer_bytes(LATENT, MLA, whole, 2.0, 2.0, "latent", slides=True)
    assert 61 * each / 2**20 == pytest.approx(10980.0)
    assert element_bytes(LATENT, MLA, 2.0, 2.0, "latent and values") == (576 + 512) * 2
    assert element_bytes(LATENT, MLA, 2.0, 2.0, "heads") == 128 * (192 + 128) * 2


def test_sliding_layers_keep_their_window() -> None:
    # A window of 1,024 and a step of 512 are 1,536 cells; builds before had the whole context.
    assert _cells(32768).windowed(1024) == 1536
    assert _cells(32768, build=5100).windowed(1024) == 32768
    assert _cells(32768, whole_windows=True).windowed(1024) == 32768
    assert _cells(1024).windowed(4096) == 1024
    assert _cells(32768, 4, unified=True).windowed(1024) == 4608  # the window of each sequence
    assert _cells(32768, 4).windowed(1024) == 4 * 1536


def test_slots_have_streams_of_their_own_unless_they_are_unified() -> None:
    split, whole = _cells(10000, 3), _cells(10000, 3, unified=True)
    assert (split.each, split.streams) == (3584, 3)  # a third, in steps of 256
    assert (whole.each, whole.streams) == (10240, 1)
    assert _cells(10000, 3, build=5500).streams == 1  # from before there were any


def test_padding_by_build() -> None:
    assert _cells(1000, build=1691).total == 1000
    assert _cells(1000, build=2824).total == 1024
    assert _cells(1000, build=5300, flash=False).total == 1024
    assert _cells(1010, build=5300, flash=False).total == 1024  # in steps of 32
    assert _cells(1030, build=5300, flash=False).total == 1056
    assert _cells(1030, build=5300).total == 1280


def test_recurrent_states_are_wide() -> None:
    # 23 Mamba-2 layers, 4 sequences: 190.47 MiB (log of b8999).
    cache = Cache("state", conv=3 * (4096 + 2 * 8 * 128), ssm=128 * 4096)
    assert 23 * state_bytes(cache, 4) / 2**20 == pytest.approx(190.47, abs=0.01)


@given(
    st.integers(1, 200_000), st.integers(1, 16), st.integers(1600, 12000), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_cells_hold_the_context(
    context: int, sequences: int, build: int, unified: bool, flash: bool
) -> None:
    at = cells(context, sequences, ubatch=512, unified=unified, flash=flash, build=build)
    assert at.each % at.pad == 0 and at.total <= padded(context, at.pad) + sequences * (at.pad + 1)
    if at.streams == 1:
        assert at.total >= context
    assert 0 < at.windowed(1024) <= max(at.total, 256 * at.streams)
    assert at.ubatch <= 512


def test_families_whose_window_does_not_bound_the_cache() -> None:
    # Mistral 7B v0.1 names a window of 4,096; llama.cpp keeps all cells.
    case = case_of("mistralai/Mistral-7B-v0.1", "q4_k_m", n_ctx=16384, n_gpu_layers=99)
    assert mib(case, "kv_cache_bytes") == 2048.0


def test_pages_are_cells() -> None:
    case = case_of(LLAMA_3, "q4_k_m", n_ctx=8192, n_gpu_layers=99, n_parallel=2)
    assert case.estimate("kv_cache_tokens").mid == 8192
    assert case.estimate("max_concurrency").mid == 2  # slots of 4,096
    assert case.kv().bytes_per_token == 128 * 1024
