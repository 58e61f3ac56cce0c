"""llama.cpp's defaults by build, and what its options make of them."""

from __future__ import annotations

from typing import Any

import pytest
from llama_kit import LLAMA_3, case_of, cases_of, mib, refused

from capcheck import Plan, Unknown
from capcheck_llama_cpp.releases import releases

LLAMA_31 = "meta-llama/Llama-3.1-8B-Instruct"


def plan_of(version: str, **more: Any) -> Plan:
    return case_of(LLAMA_31, "q4_k_m", version=version, **more).plan


@pytest.mark.parametrize(
    ("version", "tokens"), [("b1691", 512), ("b2824", 512), ("b3400", 131072), ("b5000", 4096)]
)
def test_the_context_where_none_is_given(version: str, tokens: int) -> None:
    assert plan_of(version).max_request_tokens.get() == tokens


def test_a_context_that_is_fitted_is_not_known() -> None:
    length = plan_of("b9000").max_request_tokens
    assert length.unknown and "--fit" in length.origin.why
    assert plan_of("b9000", fit="off").max_request_tokens.get() == 131072
    assert plan_of("b9000", ctx_size=0).max_request_tokens.get() == 131072


def test_slots_share_the_context() -> None:
    assert plan_of("b9000", ctx_size=32768).max_sequences.get() == 4
    assert plan_of("b9000", ctx_size=32768).max_request_tokens.get() == 32768  # one cache for all
    assert plan_of("b9000", ctx_size=32768, parallel=4).max_request_tokens.get() == 8192
    unified = plan_of("b9000", ctx_size=32768, parallel=4, kv_unified=True)
    assert unified.max_request_tokens.get() == 32768
    assert plan_of("b5000", ctx_size=32768, parallel=4).max_request_tokens.get() == 8192
    assert plan_of("b5000", ctx_size=32768).max_sequences.get() == 1


def test_steps() -> None:
    assert plan_of("b9000", ctx_size=8192).max_step_tokens.get() == 512
    assert plan_of("b9000", ctx_size=8192, ubatch_size=4096).max_step_tokens.get() == 2048
    both = plan_of("b9000", ctx_size=8192, ubatch_size=4096, batch_size=4096)
    assert both.max_step_tokens.get() == 4096
    assert plan_of("b9000", ctx_size=256).max_step_tokens.get() == 256
    assert plan_of("b1691", batch_size=128).max_step_tokens.get() == 128


def test_layers_by_build() -> None:
    with pytest.raises(Unknown) as lost:
        case_of(LLAMA_3, "q4_k_m", version="b5000").estimate("weights_bytes")
    assert "on the host" in lost.value.why
    assert mib(case_of(LLAMA_3, "q4_k_m", version="b6800"), "weights_bytes") > 4000
    some = case_of(LLAMA_3, "q4_k_m", version="b5000", n_gpu_layers=16)
    assert some.ledger(some.terms()).lines[0].name == "weights (16 of 33 layers)"
    assert mib(some, "kv_cache_bytes") == 256.0  # half of 4,096 cells


def test_names_of_the_library_and_of_variables() -> None:
    plan = plan_of("b9000", env={"LLAMA_ARG_CTX_SIZE": "16384", "LLAMA_ARG_FLASH_ATTN": "off"})
    assert plan.max_request_tokens.get() == 16384
    assert plan.extra["flash"].get() is False
    given = plan_of("b9000", n_ctx=8192, env={"LLAMA_ARG_CTX_SIZE": "16384"})
    assert given.max_request_tokens.get() == 8192  # arguments win
    assert plan_of("b9000", n_ctx=8192, type_k="q8_0").kv_dtype.get() == "q8_0"


def test_devices_that_take_part() -> None:
    assert plan_of("b9000", count=4).pipeline.get() == 4
    assert plan_of("b9000", count=4, split_mode="none").pipeline.get() == 1
    rows = plan_of("b9000", count=4, split_mode="row")
    assert (rows.tensor.get(), rows.pipeline.get()) == (4, 1)
    seen = plan_of("b9000", count=4, env={"CUDA_VISIBLE_DEVICES": "0,1"})
    assert seen.pipeline.get() == 2


def test_fit_leaves_experts_and_then_layers_to_the_host() -> None:
    mixture = case_of("Qwen/Qwen3-30B-A3B", "q4_k_m", on="nvidia/rtx-4080", ctx_size=32768)
    ledger = mixture.ledger(mixture.terms())
    assert "on the host" in ledger.lines[0].name and ledger.kv == 3 * 2**30
    assert ledger.left - ledger.kv >= 2**30  # fit-target
    dense = case_of("meta-llama/Llama-3.1-70B-Instruct", "q4_k_m", ctx_size=8192)
    assert "of 81 layers" in dense.ledger(dense.terms()).lines[0].name
    asked = case_of("meta-llama/Llama-3.1-70B-Instruct", "q4_k_m", ctx_size=8192, n_gpu_layers=99)
    assert asked.ledger(asked.terms()).left < 0  # what is asked for is not moved


def test_experts_on_the_host() -> None:
    told: dict[str, Any] = {"ctx_size": 8192, "n_gpu_layers": 99}
    whole, none, some = (
        case_of("Qwen/Qwen3-30B-A3B", "q4_k_m", **told, **more)
        for more in ({}, {"cpu_moe": True}, {"n_cpu_moe": 24})
    )
    sizes = [mib(one, "weights_bytes") for one in (whole, some, none)]
    assert sizes[0] > sizes[1] > sizes[2]
    pattern = case_of("Qwen/Qwen3-30B-A3B", "q4_k_m", **told, override_tensor="exps=CPU")
    assert mib(pattern, "weights_bytes") == pytest.approx(sizes[2])


def test_overrides_that_cannot_be_told() -> None:
    case = case_of("Qwen/Qwen3-30B-A3B", "q4_k_m", ctx_size=8192, override_tensor="(a+)+=CPU")
    with pytest.raises(Unknown, match="override-tensor"):
        case.ledger(case.terms())


def test_a_draft_model() -> None:
    case = case_of("meta-llama/Llama-3.1-70B-Instruct", "q4_k_m", count=2, n_ctx=8192,
                   n_gpu_layers=99, model_draft="meta-llama/Llama-3.2-1B-Instruct")  # fmt: skip
    names = {line.name for line in case.ledger(case.terms()).lines}
    assert {"draft model", "draft model's KV cache"} <= names


def test_what_does_not_go_together() -> None:
    off = case_of(LLAMA_3, "q4_k_m", version="b5000", n_gpu_layers=99, cache_type_v="q8_0")
    assert "flash attention" in refused(off, "options/conflict")[0]
    on = case_of(LLAMA_3, "q4_k_m", n_gpu_layers=99, cache_type_v="q8_0")
    assert refused(on, "options/conflict") == []
    assert "q9_0" in refused(case_of(LLAMA_3, cache_type_k="q9_0"), "options/value")[0]
    assert "256" in refused(case_of(LLAMA_3, parallel=300), "options/value")[0]
    heads = case_of("microsoft/phi-2", "q4_k_m", n_ctx=2048, cache_type_k="q8_0")  # heads of 80
    assert "80" in refused(heads, "options/value")[0]


def test_builds() -> None:
    assert releases("b2824 (4426e298)", "")[0].version == (2824,)
    assert releases("server-cuda-b5427", "")[0].version == (5427,)
    assert releases("7780", "")[0].version == (7780,)
    assert releases("0.3.16", "")[0].version == (6160,)  # of llama-cpp-python
    (fork,) = releases("ik_llama.cpp fork", "")
    assert fork.foreign and fork.why
    eras = releases(None, "no image is named")
    assert 1 < len(eras) <= 8 and not any(one.known for one in eras)
    assert releases("latest", "")[0].why == "latest names no build"


def test_an_unknown_build_is_judged_under_each_era() -> None:
    found = cases_of(LLAMA_3, "q4_k_m", version=None, n_gpu_layers=99, n_ctx=8192)
    assert len(found) == len(releases(None, ""))
    assert {mib(one, "kv_cache_bytes") for one in found} == {1024.0}


@pytest.mark.parametrize("name", ["Qwen/Qwen3-8B", "/models/Qwen3-8B.gguf"])
def test_a_name_without_a_file_type_weighs_nothing_known(name: str) -> None:
    with pytest.raises(Unknown, match="no file type is named"):
        case_of(name, n_gpu_layers=99, n_ctx=8192).estimate("weights_bytes")


@pytest.mark.parametrize("word", [None, "f16"])
def test_a_file_of_sixteen_bits_is_twice_its_parameters(word: str | None) -> None:
    name = "Qwen/Qwen3-8B" if word else "/models/Qwen3-8B-F16.gguf"
    weights = mib(case_of(name, word, n_gpu_layers=99, n_ctx=8192), "weights_bytes")
    outside = 151_936 * 4096  # the embedding stays on the host
    assert weights == pytest.approx((8_190_735_360 - outside) * 2 / 2**20, rel=1e-3)
