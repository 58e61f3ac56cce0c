"""What each device holds under data, expert and pipeline parallelism; drafts; offloading."""

from __future__ import annotations

import json
from typing import Any

import pytest

from capcheck import Case, Scheme
from capcheck.physics.memory import Split
from capcheck.quantity import GIB
from capcheck.testing import Bench
from capcheck_vllm.offloading import loads_whole
from capcheck_vllm.spreading import keeps_encoders, spread
from capcheck_vllm.weights import draft_bytes, is_mtp

H200 = "nvidia/h200-sxm-141gb"
DEEPSEEK = "deepseek-ai/DeepSeek-V3"
QWEN = "Qwen/Qwen3-30B-A3B"
LLAMA = "meta-llama/Llama-3.1-8B"
VISION = "Qwen/Qwen2.5-VL-7B-Instruct"


@pytest.fixture(scope="module")
def bench() -> Bench:
    return Bench()


def case_of(bench: Bench, model: str, release: str = "0.20.0", **args: Any) -> Case:
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "spread",
        "model": {"id": model},
        "hardware": {"accelerator": H200, "count": 8, "nodes": 2},
        "engine": {"name": "vllm", "version": release, "args": {"max_model_len": 4096, **args}},
    }
    return bench.cases(json.dumps(spec))[0]


def weights(case: Case) -> float:
    ledger = case.ledger(case.terms())
    return sum(line.bytes for line in ledger.lines if line.name == "weights")


def parallel(tensor: int, data: int, **more: Any) -> dict[str, Any]:
    return {"tensor_parallel_size": tensor, "data_parallel_size": data, **more}


EP = {"enable_expert_parallel": True}


def test_experts_are_cut_over_data_parallel_ranks_without_expert_parallelism(bench: Bench) -> None:
    split = spread(case_of(bench, QWEN, **parallel(2, 4)))
    assert (split.tensor, split.expert, split.experts_over) == (2, 1, 8)
    # Attention and the ends are whole on each rank of data, the experts an eighth.
    cut, whole = (weights(case_of(bench, QWEN, **parallel(1, data))) for data in (8, 1))
    experts = 48 * 128 * 3 * 768 * 2048 * 2
    assert whole - cut == pytest.approx(experts * 7 / 8, rel=1e-3)


def test_expert_parallelism_deals_experts_out_over_tensor_and_data(bench: Bench) -> None:
    split = spread(case_of(bench, QWEN, **parallel(2, 4, **EP)))
    assert (split.expert, split.tensor) == (8, 2)
    by_number = weights(case_of(bench, QWEN, **parallel(2, 4, **EP)))
    by_width = weights(case_of(bench, QWEN, **parallel(2, 4)))
    assert by_number == pytest.approx(by_width, rel=1e-3)


def test_dense_models_are_whole_on_each_rank_of_data(bench: Bench) -> None:
    one, eight = (weights(case_of(bench, LLAMA, **parallel(1, data))) for data in (1, 8))
    assert one == eight


def test_spare_experts_count_only_where_load_is_balanced(bench: Bench) -> None:
    told: dict[str, Any] = {"eplb_config": {"num_redundant_experts": 32}}
    assert spread(case_of(bench, QWEN, **parallel(8, 1, **EP, **told))).spare_experts == 0
    told["enable_eplb"] = True
    plain = weights(case_of(bench, QWEN, **parallel(8, 1, **EP)))
    spare = weights(case_of(bench, QWEN, **parallel(8, 1, **EP, **told)))
    assert spare - plain == pytest.approx(48 * 4 * 3 * 768 * 2048 * 2, rel=1e-3)


@pytest.mark.parametrize(
    ("release", "args", "over"),
    [
        ("0.11.0", parallel(2, 8, **EP), 1),  # tokens are spread first: each holds them whole
        ("0.11.0", parallel(2, 8), 0),
        ("0.11.0", parallel(8, 1, **EP), 0),
        ("0.20.0", parallel(2, 8, **EP, all2all_backend="pplx"), 0),
        ("0.10.0", parallel(2, 8, **EP), 0),
    ],
)
def test_shared_experts(bench: Bench, release: str, args: dict[str, Any], over: int) -> None:
    assert spread(case_of(bench, DEEPSEEK, release, **args)).shared_over == over


def test_encoders_cut_or_whole(bench: Bench) -> None:
    assert spread(case_of(bench, VISION, tensor_parallel_size=4)).towers_over == 0
    whole: dict[str, Any] = {"mm_encoder_tp_mode": "data"}
    assert spread(case_of(bench, VISION, tensor_parallel_size=4, **whole)).towers_over == 1
    # Gemma 4's encoders are not written for tensor parallelism.
    assert spread(case_of(bench, "google/gemma-4-26B-A4B", tensor_parallel_size=4)).towers_over == 1


def test_encoders_of_sound(bench: Bench) -> None:
    half, three = "Qwen/Qwen2.5-Omni-7B", "Qwen/Qwen3-Omni-30B-A3B-Instruct"
    found = spread(case_of(bench, half, tensor_parallel_size=2))
    assert (found.audio_over, found.towers_over) == (1, 0)
    assert spread(case_of(bench, three, "0.11.0", tensor_parallel_size=2)).audio_over == 1
    assert spread(case_of(bench, three, "0.20.0", tensor_parallel_size=2)).audio_over == 0


def test_encoders_of_what_is_never_let_in(bench: Bench) -> None:
    none: dict[str, Any] = {"limit_mm_per_prompt": {"image": 0, "video": 0}}
    assert keeps_encoders(case_of(bench, VISION))
    assert keeps_encoders(case_of(bench, VISION, limit_mm_per_prompt={"image": 1, "video": 0}))
    assert not keeps_encoders(case_of(bench, VISION, **none))
    assert not keeps_encoders(case_of(bench, VISION, language_model_only=True))
    tower = weights(case_of(bench, VISION)) - weights(case_of(bench, VISION, **none))
    assert tower / GIB == pytest.approx(676_550_144 * 2 / GIB, rel=0.01)


def test_models_that_embed_hold_no_head(bench: Bench) -> None:
    embeds = weights(case_of(bench, "Qwen/Qwen3-8B", runner="pooling"))
    writes = weights(case_of(bench, "Qwen/Qwen3-8B"))
    assert writes - embeds == pytest.approx(151_936 * 4096 * 2, rel=1e-3)


def drafts(
    bench: Bench, model: str, release: str, speculative: dict[str, Any], **args: Any
) -> float:
    told = {"speculative_config": {"num_speculative_tokens": 1, **speculative}, **args}
    case = case_of(bench, model, release, **told)
    return draft_bytes(case, spread(case), case.plan.weight_dtype.get())


def test_a_checkpoints_own_prediction_is_not_the_model_again(bench: Bench) -> None:
    wide = parallel(8, 1)
    alone = drafts(bench, DEEPSEEK, "0.20.0", {"method": "mtp"}, **wide)
    named = drafts(bench, DEEPSEEK, "0.20.0", {"method": "deepseek_mtp", "model": DEEPSEEK}, **wide)
    assert alone == named
    assert alone / GIB == pytest.approx(1.6, rel=0.1)  # an eighth of one sparse layer


def test_prediction_shares_embedding_and_head(bench: Bench) -> None:
    new = drafts(bench, DEEPSEEK, "0.20.0", {"method": "mtp"}, **parallel(8, 1))
    old = drafts(bench, DEEPSEEK, "0.11.0", {"method": "mtp"}, **parallel(8, 1))
    assert old - new == pytest.approx(129_280 * 7168 * 2 / 8, rel=0.01)  # the head, until 0.15
    staged = {"tensor_parallel_size": 8, "pipeline_parallel_size": 2}
    apart = drafts(bench, DEEPSEEK, "0.20.0", {"method": "mtp"}, **staged)
    assert apart - new == pytest.approx(129_280 * 7168 * 2 / 8, rel=0.01)  # the embedding


def test_logged_prediction_layer(bench: Bench) -> None:
    # A public log: Qwen3.5-9B with one prediction layer loads as 18.12 GiB, without as 17.66.
    found = drafts(bench, "Qwen/Qwen3.5-9B", "0.20.0", {"method": "mtp"})
    assert found / GIB == pytest.approx(18.12 - 17.66, abs=0.011)


def test_drafts_without_weights_and_with_their_own_split(bench: Bench) -> None:
    assert drafts(bench, LLAMA, "0.20.0", {"method": "ngram"}) == 0
    assert drafts(bench, LLAMA, "0.20.0", {"method": "suffix"}) == 0
    small = {"model": "meta-llama/Llama-3.2-1B"}
    whole = drafts(
        bench, LLAMA, "0.8.5", {**small, "draft_tensor_parallel_size": 1}, **parallel(8, 1)
    )
    cut = drafts(bench, LLAMA, "0.8.5", small, **parallel(8, 1))
    assert whole / GIB == pytest.approx(2.33, abs=0.02)
    assert cut < whole / 6
    assert is_mtp("step3p5_mtp")
    assert not is_mtp("eagle3")


def test_only_layers_go_to_host_memory(bench: Bench) -> None:
    here = weights(case_of(bench, LLAMA))
    assert here - weights(case_of(bench, LLAMA, cpu_offload_gb=5)) == pytest.approx(5 * GIB)
    most = weights(case_of(bench, LLAMA, cpu_offload_gb=100))
    ends = 2 * 128_256 * 4096 * 2
    assert most == pytest.approx(ends, rel=0.05)  # and the rotary table


def test_layers_fetched_ahead_share_the_memory_of_a_few(bench: Bench) -> None:
    here = weights(case_of(bench, LLAMA))
    layer = 218_112_000 * 2
    told: dict[str, Any] = {"offload_group_size": 8, "offload_num_in_group": 2}
    moved = here - weights(case_of(bench, LLAMA, **told))
    assert moved == pytest.approx((4 * 2 - 1) * layer, rel=0.01)
    deeper = here - weights(case_of(bench, LLAMA, **told, offload_prefetch_step=3))
    assert deeper == pytest.approx((4 * 2 - 3) * layer, rel=0.01)


def test_online_quantization_loads_layer_by_layer_from_0_16_on() -> None:
    fp8 = Scheme("fp8", "fp8_e4m3", 8, -1, activation="fp8", seen="online")
    assert loads_whole(fp8, (0, 14, 1))
    assert not loads_whole(fp8, (0, 16, 0))
    assert not loads_whole(fp8._replace(method="bitsandbytes", weight="nf4"), (0, 8, 5))


def test_sparse_attention_keeps_its_choices_from_loading_on(bench: Bench) -> None:
    few, many = (
        weights(
            case_of(
                bench, "deepseek-ai/DeepSeek-V3.2", max_num_batched_tokens=tokens, **parallel(8, 1)
            )
        )
        for tokens in (4096, 8192)
    )
    assert many - few == pytest.approx(4096 * 2048 * 4)  # 2,048 choices a token, four bytes each


def test_prefill_context_counts_for_experts_only(bench: Bench) -> None:
    split = spread(case_of(bench, QWEN, tensor_parallel_size=4, prefill_context_parallel_size=2))
    assert split == Split(tensor=4, experts_over=8)
    decode = spread(case_of(bench, QWEN, tensor_parallel_size=4, decode_context_parallel_size=2))
    assert decode == Split(tensor=4, experts_over=4)
