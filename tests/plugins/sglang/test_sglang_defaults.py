"""Defaults by release and device, worked by hand from the rules in the released sources."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck_sglang import defaults
from capcheck_sglang.defaults import Layout


def layout(mib: float, tensor: int = 1, **more: object) -> Layout:
    version = (0, 5, 4)
    plain = {
        "mib": mib, "tensor": tensor, "pipeline": 1, "attention_ranks": 1,
        "chunk": defaults.chunked_prefill(version, mib), "prefill_tokens": 16384,
        "graph_batch": defaults.graph_batch(version, mib, tensor), "speculation": "",
        "prefill_graphs": 0, "latent": False, "vision": None,
    }  # fmt: skip
    return Layout(**{**plain, **more})  # type: ignore[arg-type]


# H100 of 81,559 MiB, one device: 512 + 8192 x 1.5 + 256 x 2 + 128 = 13,440 MiB are kept free.
SHARES = [
    ((0, 5, 4), layout(81559), (81559 - 13440) / 81559),
    ((0, 5, 4), layout(81559, 8), (81559 - 512 - 12288 - 1024 - 1024) / 81559),
    ((0, 5, 4), layout(143771, 8), 0.897),
    ((0, 5, 4), layout(23034), 0.837),
    ((0, 5, 4), layout(40960), 0.833),
    ((0, 5, 4), layout(81559, speculation="EAGLE"), (81559 - 13440 - 2048) / 81559),
    ((0, 5, 12), layout(81559, speculation="EAGLE"), (81559 - 13440 - 4096) / 81559),
    ((0, 5, 16), layout(81559, speculation="EAGLE"), (81559 - 13440) / 81559),
    ((0, 5, 4), layout(81559, 8, attention_ranks=8, chunk=8192),
     (81559 - 512 - 12288 - 1024 - 512 * 8 * 4.5 - 1024) / 81559),
    ((0, 4, 6, 5), layout(81559), 0.88),
    ((0, 4, 6, 5), layout(81559, 8), 0.81),
    ((0, 4, 6, 5), layout(143771, 8), (143771 - 18 * 1024) / 143771),
    ((0, 3, 0), layout(81559, 8), 0.83),
    ((0, 3, 6), layout(81559, 8), 0.82),
    ((0, 4, 9), layout(81559, 4), (81559 - 11.5 * 1024) / 81559),
    ((0, 4, 9), layout(24564, 2), (24564 - 3 * 1024) / 24564),
]  # fmt: skip


@pytest.mark.parametrize(("version", "what", "share"), SHARES)
def test_the_default_static_share(version: tuple[int, ...], what: Layout, share: float) -> None:
    assert defaults.static_fraction(version, what) == pytest.approx(share, abs=0.0006)


def test_a_vision_tower_lowers_the_share_by_its_size() -> None:
    plain = defaults.static_fraction((0, 5, 4), layout(81559))
    same = defaults.static_fraction((0, 5, 4), layout(81559, vision=(24, 1024)))
    big = defaults.static_fraction((0, 5, 4), layout(81559, vision=(48, 2048)))
    assert same == pytest.approx(plain * 0.95)
    assert big == pytest.approx(plain * 0.95 * 0.8)


@pytest.mark.parametrize(
    ("version", "mib", "tensor", "chunk", "batch"),
    [
        ((0, 4, 0), 23034, 1, 2048, 8),
        ((0, 4, 6, 5), 81559, 1, 8192, 160),
        ((0, 5, 4), 24564, 1, 2048, 16),
        ((0, 5, 5), 24564, 1, 2048, 24),
        ((0, 5, 23), 24564, 1, 4096, 48),
        ((0, 5, 23), 24564, 4, 4096, 160),
        ((0, 5, 4), 40960, 1, 4096, 32),
        ((0, 5, 4), 183359, 1, 16384, 512),
    ],
)
def test_chunk_and_graph_batch(
    version: tuple[int, ...], mib: float, tensor: int, chunk: int, batch: int
) -> None:
    assert defaults.chunked_prefill(version, mib) == chunk
    assert defaults.graph_batch(version, mib, tensor) == batch


def test_batch_sizes_up_to_32() -> None:
    assert defaults.captured((0, 5, 4), 32, speculative=False) == 8  # 1 2 4 8 12 16 24 32
    assert defaults.captured((0, 5, 4), 8, speculative=True) == 8


VERSIONS = st.sampled_from(
    [(0, 3, 0), (0, 4, 5), (0, 4, 6), (0, 4, 7), (0, 4, 10), (0, 5, 3), (0, 5, 12), (0, 5, 23)]
)


@given(
    VERSIONS,
    st.floats(15_000, 300_000),
    st.sampled_from([1, 2, 4, 8, 16]),
    st.sampled_from(["", "EAGLE", "STANDALONE", "NGRAM"]),
)
def test_the_share_is_one_and_speculation_never_raises_it(
    version: tuple[int, ...], mib: float, tensor: int, speculation: str
) -> None:
    chunk = defaults.chunked_prefill(version, mib)
    what = layout(mib, tensor, chunk=chunk)
    plain = defaults.static_fraction(version, what)
    asked = defaults.static_fraction(version, what._replace(speculation=speculation))
    assert 0 < plain < 1
    assert asked <= plain
