"""The sizing guides' worked examples on parallelism, decode, prefill and floors."""

from __future__ import annotations

import pytest
from requirements_kit import LLAMA_8B, LLAMA_8B_BATCH, LLAMA_70B, Terminal, checked, spec, verdicts

from capcheck.physics import roofline


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


# 5, 6: parallelism, and its links


def test_tensor_parallelism_over_pcie_is_told() -> None:
    args = "tensor_parallel_size: 8, max_model_len: 8192"
    slow = spec("meta-llama/Llama-3.1-70B-Instruct", "nvidia/l40s", 8, args=args, version="0.11.0")
    fast = slow.replace("nvidia/l40s", "nvidia/h100-sxm5-80gb")
    assert verdicts(slow)["sharding/crosses-domain"] == "fail"
    assert verdicts(fast)["sharding/crosses-domain"] == "pass"


def test_tensor_parallelism_across_nodes_is_told() -> None:
    args = "tensor_parallel_size: 16, max_model_len: 8192"
    text = spec(
        "meta-llama/Llama-3.1-405B-Instruct", "nvidia/h100-sxm5-80gb", 8, args=args,
        version="0.11.0",
    ).replace("count: 8", "count: 8, nodes: 2")  # fmt: skip
    _, found = checked(text)
    assert "nodes of 8" in found["sharding/crosses-domain"].message


# 7: decode is bound by bandwidth


@pytest.mark.parametrize(("bandwidth", "rate"), [(800e9, 44.4), (936e9, 52.0)])
def test_decode_of_18_gb(bandwidth: float, rate: float) -> None:
    assert round(roofline.decode_tokens_per_second(bandwidth, 18e9), 1) == rate


CHAT = (
    "{class: interactive, prompt_tokens: {p50: 700, p95: 2500, max: 6000}, "
    "output_tokens: {p50: 250, p95: 800, max: 2000}, concurrency: %d}"
)
CHAT_ARGS = "tensor_parallel_size: 4, max_model_len: 8192, max_num_seqs: 256"


def tpot_of(concurrency: int) -> float:
    text = spec(
        "meta-llama/Llama-3.1-70B-Instruct", "nvidia/h100-sxm5-80gb", 4, args=CHAT_ARGS,
        version="0.11.0", workload=CHAT % concurrency,
    )  # fmt: skip
    return checked(text)[0].estimates["tpot_seconds"].band.mid


def test_concurrency_raises_the_time_per_token() -> None:
    few, more, many = (tpot_of(concurrency) for concurrency in (1, 16, 64))
    floor = 2 * LLAMA_70B / 4 / 3.35e12  # no token is faster than reading the weights
    assert floor < few < more < many


@pytest.mark.parametrize(("limit", "verdict"), [("50ms", "pass"), ("5ms", "fail")])
def test_what_readers_accept_is_met_and_what_no_memory_gives_is_not(
    limit: str, verdict: str
) -> None:
    text = spec(
        "meta-llama/Llama-3.1-70B-Instruct", "nvidia/h100-sxm5-80gb", 4, args=CHAT_ARGS,
        version="0.11.0", workload=CHAT % 8, more=f"objectives: {{tpot: {{p50: {limit}}}}}\n",
    )  # fmt: skip
    assert verdicts(text)["decode/tpot"] == verdict


# 8: prefill is bound by arithmetic, and a mixture counts its active parameters


def test_prefill_of_a_mixture() -> None:
    seconds = roofline.prompt_seconds(13e9, 4096, 756e12, 0.5)
    assert round(seconds, 2) == 0.28
    assert roofline.prompt_seconds(13e9, 4096, 6.5e12, 1.0) > 16


def test_the_mixture_does_not_fit_the_guides_one_card() -> None:
    text = spec(
        "mistralai/Mixtral-8x7B-Instruct-v0.1", "nvidia/h100-pcie-80gb", args="max_model_len: 8192",
        version="0.11.0",
    )  # fmt: skip
    _, found = checked(text)
    assert found["weights/fit"].severity == "error"
    assert "87.0 weights" in found["weights/fit"].arithmetic


def test_a_small_accelerator_is_far_over_an_interactive_target() -> None:
    document = "{prompt_tokens: 4096, output_tokens: 128, concurrency: 1}"
    text = spec(
        "meta-llama/Llama-3.1-8B-Instruct", "nvidia/t4", 2,
        args="tensor_parallel_size: 2, max_model_len: 8192, max_num_seqs: 4", version="0.10.2",
        workload=document, more="objectives: {ttft: {p50: 200ms}}\n",
    )  # fmt: skip
    _, found = checked(text)
    assert found["prefill/ttft"].verdict == "fail"


# 19a: four constraints one after the other, and the floors that targets imply


def test_fit_prints_the_floors_of_targets(terminal: Terminal) -> None:
    targets = ("--tpot", "20ms", "--ttft", "200ms", "--prompt-tokens", "4096")
    figures = terminal.fit(*LLAMA_8B_BATCH[:-1], "1", *targets)
    assert figures["generic_total_bytes"] > figures["generic_weights_bytes"]  # memory
    # bandwidth: all weights once in 20 ms, and a KV cache of at most 8,192 tokens
    assert figures["bandwidth_floor"] == pytest.approx(2 * LLAMA_8B / 0.020, rel=0.08)
    # compute: 2 FLOP for each parameter and token in 200 ms, at a utilization of 0.5 to 0.7
    work = 2 * LLAMA_8B * 4096 / 0.200
    assert work / 0.7 <= figures["compute_floor"] <= work / 0.5
    assert "link_floor" in terminal.fit(
        *LLAMA_8B_BATCH, "--on", "nvidia/l4", "--count", "4", *targets
    )


def test_every_deployment_with_traffic_tells_what_binds() -> None:
    text = spec(
        "meta-llama/Llama-3.1-70B-Instruct", "nvidia/h100-sxm5-80gb", 4, args=CHAT_ARGS,
        version="0.11.0", workload=CHAT % 8,
    )  # fmt: skip
    deployment, _ = checked(text)
    assert deployment.binding == "bandwidth"
    shares = [deployment.estimates[f"{name}_share"].band.mid for name in ("bandwidth", "compute")]
    assert shares[0] > shares[1] > 0


# how far from an objective, and what would meet it


@pytest.mark.parametrize("concurrency", [64, 120])
def test_a_missed_objective_tells_the_load_that_meets_it(concurrency: int) -> None:
    goal = (tpot_of(16) + tpot_of(17)) / 2
    text = spec(
        "meta-llama/Llama-3.1-70B-Instruct", "nvidia/h100-sxm5-80gb", 4, args=CHAT_ARGS,
        version="0.11.0", workload=CHAT % concurrency,
        more=f"objectives: {{tpot: {{p50: {goal * 1000:.4f}ms}}}}\n",
    )  # fmt: skip
    _, found = checked(text)
    assert "up to 16 concurrent requests" in found["decode/tpot"].arithmetic
    assert "weights" in found["decode/tpot"].arithmetic


def test_a_layout_across_nodes_tells_its_cost() -> None:
    args = "tensor_parallel_size: 16, max_model_len: 8192"
    text = spec(
        "meta-llama/Llama-3.1-405B-Instruct", "nvidia/h100-sxm5-80gb", 8, args=args,
        version="0.11.0", workload=CHAT % 8,
    ).replace("count: 8", "count: 8, nodes: 2")  # fmt: skip
    _, found = checked(text)
    assert "of a decode step" in found["sharding/crosses-domain"].arithmetic
