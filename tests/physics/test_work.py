"""What a device reads and computes, against counts done by hand."""

from __future__ import annotations

import math

import physics_models as models
import pytest
from hypothesis import given
from hypothesis import strategies as st
from physics_constants import H100, SIXTEEN_BIT, work

from capcheck.architecture import Part, Tensor
from capcheck.physics.work import Layout, Machine, rank_share, work_of


def test_llama_reads_all_but_the_embedding() -> None:
    small = work(models.llama_8b())
    embedding = 128256 * 4096
    assert small.weight_bytes == 2.0 * (8_030_261_248 - embedding)
    assert small.head.bytes == 2.0 * embedding
    norms = 65 * 4096  # vectors have no products
    assert small.dense.flops == 2.0 * (8_030_261_248 - 2 * embedding - norms)
    assert small.dense.peak_seconds == pytest.approx(small.dense.flops / 989e12)


def test_llama_cache_is_128_kib_a_token() -> None:
    assert work(models.llama_8b()).cache_bytes(1000.0) == 131_072 * 1000


def test_tied_embedding_is_read_as_the_head() -> None:
    tied = models.dense_model(
        "tied", "llama",
        layers=2, hidden=64, heads=4, kv_heads=2, size=16, inner=128, vocabulary=1000, tied=True,
    )  # fmt: skip
    assert work(tied).head.bytes == 2.0 * 1000 * 64


def test_kv_heads_replicate_beyond_their_number() -> None:
    per_token = [
        work(models.llama_8b(), Layout(tensor=ranks)).cache_bytes(1.0) for ranks in (1, 8, 16)
    ]
    assert per_token == [131_072, 16_384, 16_384]


def test_latent_cache_is_whole_on_every_rank() -> None:
    # DeepSeek-V3: 61 layers x (512 + 64) x 2 bytes, whatever the tensor-parallel size
    for ranks in (1, 8):
        deepseek = work(models.deepseek_v3(), Layout(tensor=ranks))
        assert deepseek.cache_bytes(1.0) == 61 * 576 * 2
        assert deepseek.latent_layers == 61
        assert deepseek.moe_layers == 58


def test_absorbed_latent_attention_works_on_the_latent() -> None:
    (part,) = work(models.deepseek_v3(), Layout(tensor=8)).attention
    assert part.decode_flops == 61 * 2.0 * 16 * (2 * 512 + 64)
    assert part.prefill_flops == 61 * 2.0 * 16 * (128 + 64 + 128)
    assert part.latent


def test_windows_stop_growing() -> None:
    gpt_oss = work(models.gpt_oss_120b())
    a_token = 18 * 2 * 8 * 64 * 2
    assert gpt_oss.cache_bytes(100.0) == 2 * a_token * 100
    assert gpt_oss.cache_bytes(1000.0) == a_token * (1000 + 128)


def test_states_are_read_and_written_whole() -> None:
    hybrid = work(models.qwen3_5_397b(), Layout(tensor=8))
    elements = 45 * (64 * 128 * 128 + 3 * (2 * 16 * 128 + 64 * 128)) / 8
    assert hybrid.state_bytes == 2 * elements * 4
    assert hybrid.cache_bytes(0.0) == hybrid.state_bytes
    assert hybrid.recurrent_layers == 45


def test_experts_spread_over_tensor_and_data_ranks() -> None:
    whole = work(models.deepseek_v3()).experts
    for layout in (Layout(tensor=8), Layout(data=8, expert=8), Layout(tensor=2, data=4, expert=4)):
        part = work(models.deepseek_v3(), layout).experts
        assert part.bytes == pytest.approx(whole.bytes / 8)
        assert part.flops == pytest.approx(whole.flops / 8)
    assert whole.flops == pytest.approx(2 * 653_908_770_816 * 8 / 256)


def test_a_sparse_index_is_read_to_the_end() -> None:
    deepseek = models.deepseek_v3()
    layer = deepseek.layers[-1]
    assert layer.cache is not None
    sparse = layer._replace(
        mixer=layer.mixer._replace(topk=2048), cache=layer.cache._replace(indexer=128)
    )
    made = work(deepseek._replace(layers=(sparse,)))
    assert made.cache_bytes(10_000.0) == 2048 * 576 * 2 + 10_000 * 128


def test_an_index_scores_every_position_with_all_heads() -> None:
    """DeepSeek-V3.2: 64 index heads of 128 against one key: 16,384 FLOP a position and layer."""
    deepseek = models.deepseek_v3()
    layer = deepseek.layers[-1]
    assert layer.cache is not None
    queries = Tensor("indexer", (Part("self_attn.indexer.wq_b", 64 * 128),), 1536, "replicated")
    for shared in (1, 4):
        cache = layer.cache._replace(indexer=128, index_compress=shared)
        sparse = layer._replace(tensors=(*layer.tensors, queries), cache=cache)
        made = work(deepseek._replace(layers=(sparse,)), Layout(tensor=8))
        (index,) = (part for part in made.attention if not part.latent)
        assert index.decode_flops == index.prefill_flops == 16_384 / shared
        assert index.read_bytes == 128 / shared


def test_position_parallel_shares_the_cache() -> None:
    one, four = (work(models.llama_8b(), Layout(context=ranks)) for ranks in (1, 4))
    assert four.cache_bytes(1000.0) == one.cache_bytes(1000.0) / 4
    assert four.weight_bytes == one.weight_bytes


def test_replicated_tensors_are_whole_on_each_rank() -> None:
    router = next(t for t in models.minimax_m2().layers[0].tensors if t.role == "router")
    assert rank_share(router, 8) == 1.0


@pytest.mark.parametrize(
    ("layout", "machine", "message"),
    [
        (Layout(tensor=0), H100, "at least 1"),
        (Layout(), H100._replace(bandwidth=0.0), "positive"),
        (Layout(tensor=2), Machine(1e12, 1e14, 0.0), "link"),
    ],
)
def test_what_cannot_be_raises(layout: Layout, machine: Machine, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        work_of(models.llama_8b(), SIXTEEN_BIT, layout, machine)


@given(st.integers(1, 64), st.sampled_from(["llama_8b", "gpt_oss_120b", "deepseek_v3"]))
def test_more_ranks_never_read_more(ranks: int, name: str) -> None:
    architecture = getattr(models, name)()
    fewer, more = (work(architecture, Layout(tensor=size)) for size in (ranks, ranks + 1))
    assert more.weight_bytes <= fewer.weight_bytes * (1 + 1e-12)
    assert more.cache_bytes(1000.0) <= fewer.cache_bytes(1000.0)


@given(st.floats(0, 1e7))
def test_cache_bytes_are_finite_and_grow(tokens: float) -> None:
    gpt_oss = work(models.gpt_oss_120b())
    assert math.isfinite(gpt_oss.cache_bytes(tokens))
    assert gpt_oss.cache_bytes(tokens + 1) >= gpt_oss.cache_bytes(tokens) >= 0
