"""GGUF: bytes of types, and the types that a file's mixture gives a model's tensors."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from llama_kit import LLAMA_3, case_of, mib

from capcheck import Scheme
from capcheck.ggml_types import TYPES, GgmlType
from capcheck_quantization.gguf import fitting, stored_bytes, stored_types
from capcheck_quantization.gguf_mixtures import for_model, mixtures
from capcheck_quantization.gguf_names import category

WORDS = sorted(stored_types())


@pytest.mark.parametrize("known", TYPES.values(), ids=lambda one: one.name)
def test_types_are_those_of_file_headers(known: GgmlType) -> None:
    own = stored_types().get(known.name.lower())
    assert own is None or (own.block, own.bytes) == (known.block, known.size)


def test_a_row_of_whole_blocks() -> None:
    # Q4_K: 144 bytes for 256 values, so 4.5 bits; the embedding of Llama 3: 281.81 MiB
    # (public start-up log of llama.cpp b2824, host buffer).
    assert stored_bytes("q4_k", 128256, 4096) == 128256 * 16 * 144
    assert stored_bytes("q4_k", 128256, 4096) / 2**20 == pytest.approx(281.81, abs=0.005)
    assert stored_types()["q4_k"].bits == 4.5


def test_rows_that_blocks_do_not_divide_fall_back() -> None:
    # 2688 = 10.5 x 256: Q6_K becomes Q8_0. 131,072 rows: 357.0 MiB (log of b8999, host buffer).
    assert fitting("q6_k", 2688).name == "q8_0"
    assert stored_bytes("q6_k", 131072, 2688) / 2**20 == pytest.approx(357.0, abs=0.005)
    assert fitting("iq4_xs", 96).name == "iq4_nl"
    assert fitting("q4_k", 20).name == "f16"


@given(st.sampled_from(WORDS), st.integers(1, 400), st.integers(1, 2000), st.integers(1, 4))
def test_bytes_are_whole_rows_of_the_type(word: str, out: int, into: int, copies: int) -> None:
    kept = fitting(word, into)
    size = stored_bytes(word, out, into, copies)
    assert into % kept.block == 0
    assert size == pytest.approx(out * copies * into * kept.bits / 8)
    assert size == out * copies * stored_bytes(word, 1, into)


@pytest.mark.parametrize("word", sorted(mixtures()))
def test_every_mixture_packs_every_matrix(word: str) -> None:
    model = case_of(LLAMA_3).model.get().architecture
    bits = stored_types()[mixtures()[word].base].bits
    scheme = for_model(Scheme("gguf", word, bits, guessed=("bits",)), model)
    assert scheme.parts and not scheme.guessed
    assert 1.0 < scheme.bits < 9
    assert for_model(scheme, model) == scheme


def test_what_is_no_mixture_stays() -> None:
    model = case_of(LLAMA_3).model.get().architecture
    fp8, told = Scheme("fp8", "fp8_e4m3", 8), Scheme("gguf", "q4_k_m", 4.9)
    assert for_model(fp8, model) is fp8
    assert for_model(told, model) is told  # its bits were read from a file


def test_q4_k_m_gives_some_layers_more_bits() -> None:
    # Of 32 layers the first and the last eighth, and every third between: 16 have Q6_K values.
    parts = {one.weight: one for one in _scheme(LLAMA_3, "q4_k_m").parts}
    values = next(one for one in parts["q6_k"].targets if "v_proj" in one)
    assert values == "layers.{0-3,6,9,12,15,18,21,24,27-31}.self_attn.v_proj"
    assert set(parts) == {"q4_k", "q6_k"}


def test_more_bits_by_the_heads_that_share_and_by_eight_experts() -> None:
    seventy = _scheme("meta-llama/Meta-Llama-3-70B", "q3_k_s")
    assert {one.weight for one in seventy.parts if any("v_proj" in t for t in one.targets)} == {
        "q5_k"
    }
    mixtral = {
        one.weight: one.targets
        for one in _scheme("mistralai/Mixtral-8x7B-Instruct-v0.1", "q4_k_m").parts
    }
    assert any("k_proj" in name for name in mixtral["q8_0"])
    assert any("v_proj" in name for name in mixtral["q8_0"])
    assert any("o_proj" in name for name in mixtral["q5_k"])


def test_a_tied_embedding_has_the_type_of_the_head() -> None:
    # Gemma 3 27B Q4_K_M: the table is looked up on the host and multiplied on the device.
    case = case_of("google/gemma-3-27b-it", "q4_k_m", n_gpu_layers=99, n_ctx=4096)
    assert mib(case, "weights_bytes") == pytest.approx(15773.97, rel=1e-4)


def test_only_experts_are_mxfp4() -> None:
    parts = {one.weight: one.targets for one in _scheme("openai/gpt-oss-20b", "mxfp4_moe").parts}
    assert set(parts) == {"mxfp4", "q8_0"}
    assert all("experts" in name for name in parts["mxfp4"]) or not parts["mxfp4"]


@pytest.mark.parametrize(
    ("module", "role", "kind"),
    [
        ("self_attn.v_proj", "attention", "attn_v"),
        ("mlp.experts.down_proj", "expert", "ffn_down"),
        ("block_sparse_moe.experts.w3", "expert", "ffn_up"),
        ("attn.c_proj", "attention", "attn_output"),
        ("mlp.c_proj", "mlp", "ffn_down"),
        ("mamba.out_proj", "state", "other"),
        ("linear_attn.in_proj_qkv", "state", "attn_qkv"),
        ("model.embed_tokens", "embedding", "embedding"),
        ("lm_head", "head", "output"),
    ],
)
def test_categories(module: str, role: str, kind: str) -> None:
    assert category(module, role) == kind


def _scheme(model: str, word: str) -> Scheme:
    scheme = case_of(model, word).model.get().scheme.get()
    assert scheme is not None
    return scheme


def test_a_file_of_f32_is_twice_one_of_f16() -> None:
    """Everything but the norms, which are 32 bit in both."""
    options = {"ctx_size": 4096, "n_gpu_layers": 999}
    sizes = {
        word: mib(case_of(LLAMA_3, word, on="nvidia/a100-sxm4-80gb", **options), "weights_bytes")
        for word in ("f16", "f32")
    }
    assert sizes["f32"] == pytest.approx(2 * sizes["f16"], rel=0.001)
