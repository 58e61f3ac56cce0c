"""Prompts over pipeline stages, and caches that query heads read one by one."""

from __future__ import annotations

import math

import physics_models as models
import pytest
from hypothesis import given
from hypothesis import strategies as st
from physics_constants import H100, SIXTEEN_BIT, server, traffic

from capcheck.physics.load import closed_loop
from capcheck.physics.prompt import pipelined_share
from capcheck.physics.server import Limits
from capcheck.physics.work import Layout, work_of

LLAMA = models.llama_8b()


def test_the_first_chunk_has_to_pass_all_stages() -> None:
    # GPipe's bubble: 4 chunks over 4 stages take 7 of the 16 parts of a prompt
    assert pipelined_share(4, 4) == pytest.approx(7 / 16)
    assert pipelined_share(1, 4) == pipelined_share(9, 1) == 1.0
    assert pipelined_share(0, 0) == 1.0


@given(st.floats(1, 1e4), st.floats(1, 64))
def test_stages_share_at_most_evenly(chunks: float, stages: float) -> None:
    share = pipelined_share(chunks, stages)
    assert 1.0 / stages - 1e-12 <= share <= 1.0 + 1e-12


def idle(tokens: float, at_once: float) -> float:
    limits = Limits(chunk_tokens=512.0, chunks_at_once=at_once)
    replica = server(LLAMA, limits, Layout(pipeline=4))
    return closed_loop(replica, traffic(tokens), 1.0).prefill_seconds


def test_a_prompt_of_one_chunk_gains_nothing_from_stages() -> None:
    assert idle(512, 4) == idle(512, 1)
    assert idle(4096, 4) == pytest.approx(idle(4096, 1) * 7 / 16)


@pytest.mark.parametrize("tensor", [1, 2, 16])
def test_without_grouped_reads_every_query_head_reads_the_cache(tensor: int) -> None:
    # 32 query heads share 8 key heads
    layout = Layout(tensor=tensor)
    grouped = work_of(LLAMA, SIXTEEN_BIT, layout, H100)
    each = work_of(LLAMA, SIXTEEN_BIT._replace(group_reads=1.0), layout, H100)
    more = math.ceil(32 / tensor) / math.ceil(8 / tensor)
    assert each.cache_bytes(100.0) == pytest.approx(more * grouped.cache_bytes(100.0))
    assert each.weight_bytes == grouped.weight_bytes
