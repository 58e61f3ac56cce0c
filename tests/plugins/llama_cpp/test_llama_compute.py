"""The compute buffer: public start-up logs, and models of a few layers that builds loaded.

The latter were made for counting: no weights, the widths of the model named, loaded on a processor.
"""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from capcheck_llama_cpp.compute import Duty, Shape, buffer, generation_of, moments

LLAMA_3 = Shape(512, 8192, 512, 4096, 32, 128, 2048, 14336, 128256, 0, 0)
LLAMA_2 = Shape(512, 512, 512, 4096, 32, 128, 8192, 11008, 32000, 0, 0)
QWEN_3 = Shape(512, 8192, 512, 4096, 32, 128, 2048, 12288, 151936, 0, 0)
MIXTURE = Shape(512, 8192, 512, 4096, 64, 128, 1024, 0, 151936, 8, 1536)


def _mib(of: Shape, build: int, *, beside: float = 0.0, **duty: Any) -> float:
    told = {"attends": True, "flash": False, "head": True, "pipelined": False, **duty}
    return buffer(of, Duty(**told, generation=generation_of(build)), beside) / 2**20


def test_attention_scores_of_old_builds() -> None:
    # 32 heads x 8,192 x 512 x 4 bytes are 512 MiB; the mask 16, two rows and two of queries 8 each.
    assert _mib(LLAMA_3, 2824) == 560.0  # log of b2824


def test_pipelined_steps_keep_copies() -> None:
    # Three more masks of 16 MiB and four rows of 8: 640.02 MiB (logs of b2824, 2 to 8 devices).
    assert _mib(LLAMA_3, 2833, pipelined=True) == 640.0
    assert _mib(LLAMA_3, 2833, pipelined=True, head=False) == 640.0


@pytest.mark.parametrize(
    ("hidden", "feed", "logged"),
    [(4096, 11008, 73.69), (5120, 13824, 78.19), (6656, 17920, 100.19), (8192, 22016, 122.19)],
)
def test_before_graphs_were_split(hidden: int, feed: int, logged: float) -> None:
    # Logs of b1691 count 3.19 MiB of the graph's own description with it.
    of = LLAMA_2._replace(hidden=hidden, feed=feed, heads=hidden // 128)
    assert _mib(of, 1691) + 3.19 == pytest.approx(logged, abs=0.005)


def test_logits_beside_the_mask() -> None:
    # Qwen2.5 Coder 7B at 32,768: 297 of logits, 64 of the mask, three rows of 7 (log of b7780).
    of = Shape(512, 32768, 512, 3584, 28, 128, 1024, 18944, 152064, 0, 0)
    assert _mib(of, 7780, flash=True, beside=1.0) == pytest.approx(382.01, abs=0.02)


@pytest.mark.parametrize(
    ("build", "cells", "flash", "outputs", "counted"),
    [
        (11549, 8192, True, 1, 120.02), (11549, 32768, True, 1, 144.02),
        (11549, 2048, True, 1, 114.02), (11549, 8192, False, 1, 580.01),
        (11549, 32768, False, 1, 2164.01), (8929, 8192, False, 512, 572.01),
        (9538, 8192, True, 1, 112.01),
        (11063, 8192, True, 1, 112.01),
        (7079, 8192, False, 512, 564.01), (5671, 8192, False, 512, 560.01),
        (8929, 8192, True, 512, 320.75), (7079, 8192, True, 512, 312.75),
    ],
)  # fmt: skip
def test_generations(build: int, cells: int, flash: bool, outputs: int, counted: float) -> None:
    of = QWEN_3._replace(cells=cells, outputs=outputs)
    assert _mib(of, build, flash=flash) == pytest.approx(counted, abs=0.05)


@pytest.mark.parametrize(
    ("build", "counted"), [(7079, 1090.01), (8352, 1098.01), (9538, 1098.01), (11549, 1114.01)]
)
def test_scores_of_a_mixture(build: int, counted: float) -> None:
    assert _mib(MIXTURE, build) == pytest.approx(counted, abs=0.05)


@pytest.mark.parametrize(
    ("hidden", "heads", "feed", "flash", "counted"),
    [
        (4096, 64, 1536, True, 184.02),
        (4096, 64, 1536, False, 1114.01),
        (4096, 32, 768, True, 148.02),
    ],
)
def test_experts(hidden: int, heads: int, feed: int, flash: bool, counted: float) -> None:
    of = MIXTURE._replace(hidden=hidden, heads=heads, expert_feed=feed, outputs=1)
    assert _mib(of, 11549, flash=flash) == pytest.approx(counted, abs=0.05)


def test_a_device_without_attention_has_no_mask() -> None:
    found = moments(LLAMA_3, Duty(False, False, False, False, 3))
    assert set(found) == {"feed"}


@given(
    st.builds(
        Shape,
        *[st.integers(1, 4096)] * 3, st.integers(64, 8192), st.integers(1, 128),
        st.sampled_from([64, 128]), st.integers(1, 4096), st.integers(0, 30000),
        st.integers(1000, 200000), st.integers(0, 8), st.integers(1, 4096), st.just(0.0),
    ),
    st.integers(1600, 12000),
    st.floats(0, 1),
)  # fmt: skip
def test_more_of_anything_takes_no_less(of: Shape, build: int, beside: float) -> None:
    duty = Duty(True, False, True, False, generation_of(build))
    size = buffer(of, duty, beside)
    assert size >= max(moments(of, duty).values()) > 0
    assert buffer(of._replace(cells=of.cells + 256), duty, beside) >= size
    assert buffer(of._replace(tokens=of.tokens + 1), duty, beside) >= size
    assert buffer(of, duty._replace(pipelined=True), beside) > size
