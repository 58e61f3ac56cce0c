"""The sizing guides' worked examples, through the product: formulas, `fit`, and verdicts.

Where a guide rounds or truncates, the exact figure is tested and the guide's is told beside it.
"""

from __future__ import annotations

import pytest
from requirements_kit import LLAMA_8B_BATCH, LLAMA_70B, Terminal, checked, spec, verdicts

from capcheck.physics import roofline
from capcheck.testing import run


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(monkeypatch, capsys)


CONSTANT = "{prompt_tokens: 7168, output_tokens: 1024, concurrency: 16}"  # 16 x 8,192 tokens


# 1: weights = parameters x bytes per parameter


def test_a_70b_model_in_16_bit_is_140_gb(terminal: Terminal) -> None:
    figures = terminal.fit("meta-llama/Llama-3.1-70B-Instruct", "--context", "8192")
    assert figures["generic_weights_bytes"] == 2 * LLAMA_70B
    assert figures["generic_weights_bytes"] / 1e9 == pytest.approx(140, rel=0.01)


@pytest.mark.parametrize(
    ("accelerator", "count", "allowed"),
    [
        ("nvidia/rtx-4090", 2, {"fail"}),  # two cards of 24 GB
        ("nvidia/rtx-3090", 2, {"fail"}),
        ("nvidia/h100-sxm5-80gb", 2, {"pass"}),  # two cards of 80 GB
        # Unified memory: three quarters of 192 GB are the GPU's, which is no measured figure.
        ("apple/apple-m2-ultra@192gb", 1, {"pass", "at risk"}),
        ("apple/apple-m2-ultra@128gb", 1, {"fail"}),
    ],
)
def test_what_holds_a_70b_model(accelerator: str, count: int, allowed: set[str]) -> None:
    text = spec("meta-llama/Llama-3.1-70B-Instruct", accelerator, count)
    assert verdicts(text)["weights/fit"] in allowed


# 2: KV bytes = 2 x layers x KV heads x head size x length x bytes x sequences


def test_kv_bytes_of_the_8b_example() -> None:
    assert roofline.kv_bytes(32, 8, 128, 8192, 2, 16) == 17_179_869_184


def test_the_8b_example_through_the_catalogue() -> None:
    deployment, found = checked(
        spec("meta-llama/Llama-3.1-8B-Instruct", "nvidia/rtx-4090", workload=CONSTANT)
    )
    weights = deployment.estimates["generic_weights_bytes"].band.mid
    kv = deployment.estimates["generic_kv_bytes"].band.mid
    assert kv == 17_179_869_184
    assert round(weights / 1e9, 2) == 16.06
    assert round((weights + kv) / 1e9, 1) == 33.2  # a guide truncates to 33.1
    assert found["kv-cache/full-batch"].verdict == "fail"


# 3: the ways out, each verified


def test_the_ways_out_of_the_8b_example() -> None:
    _, found = checked(
        spec("meta-llama/Llama-3.1-8B-Instruct", "nvidia/rtx-4090", workload=CONSTANT)
    )
    help = found["kv-cache/full-batch"].help
    assert "count: 2 passes" in help
    assert [line for line in help if line.startswith("max_model_len: ")]
    assert [line for line in help if line.startswith("max_num_seqs: ")]
    # FP8 alone halves the cache to 8.59 GB and leaves 24.6 GB: more than the card has.
    (fp8,) = [line for line in help if line.startswith("kv_cache_dtype: fp8")]
    assert "with max_num_seqs: " in fp8


def test_fp8_halves_the_kv_cache_of_the_8b_example() -> None:
    text = spec(
        "meta-llama/Llama-3.1-8B-Instruct", "nvidia/rtx-4090", args="kv_cache_dtype: fp8",
        workload=CONSTANT,
    )  # fmt: skip
    deployment, found = checked(text)
    kv = deployment.estimates["generic_kv_bytes"].band.mid
    assert kv == 17_179_869_184 / 2  # 8.59 GB
    weights = deployment.estimates["generic_weights_bytes"].band.mid
    assert round((weights + kv) / 1e9, 2) == 24.65
    assert found["kv-cache/full-batch"].verdict == "fail"


@pytest.mark.parametrize("count", [2, 4])
def test_more_devices_hold_the_8b_example(count: int) -> None:
    text = spec("meta-llama/Llama-3.1-8B-Instruct", "nvidia/rtx-4090", count, workload=CONSTANT)
    assert verdicts(text)["kv-cache/full-batch"] == "pass"


# 4: the estimator's five figures


def test_the_five_figures_of_fit(terminal: Terminal) -> None:
    figures = terminal.fit(*LLAMA_8B_BATCH)
    names = ("weights", "kv", "activation", "total", "recommended")
    assert [figures[f"{name}_gib"] for name in names] == [14.96, 16.00, 3.74, 39.90, 80]


def test_fit_prints_the_five_figures(terminal: Terminal) -> None:
    lines = [line.split() for line in terminal.prints("fit", *LLAMA_8B_BATCH).splitlines()[1:6]]
    shown = [
        (" ".join(line[: line.index("GiB")][:-1]), line[line.index("GiB") - 1]) for line in lines
    ]
    assert shown == [
        ("weights", "14.96"),
        ("KV cache", "16.00"),
        ("activation overhead", "3.74"),
        ("total", "39.90"),
        ("recommended", "80.00"),
    ]


@pytest.mark.parametrize(
    ("margin", "verdict"),
    [(1.15, "fail"), (1.0, "pass")],  # 34.7 GiB before the margin, 39.9 with it
)
def test_the_safety_margin_is_configurable(margin: float, verdict: str) -> None:
    text = spec("meta-llama/Llama-3.1-8B-Instruct", "nvidia/a100-sxm4-40gb", workload=CONSTANT)
    report = run({"spec.yaml": text}, safety_margin=margin)
    (deployment,) = report.deployments
    found = {one.rule: one.verdict for one in deployment.checks}
    assert found["kv-cache/full-batch"] == verdict


@pytest.mark.parametrize(("share", "verdict"), [(0.9, "pass"), (0.96, "pass"), (0.97, "fail")])
def test_memory_is_never_provisioned_to_the_last_percent(share: float, verdict: str) -> None:
    args = f"max_model_len: 8192, max_num_seqs: 64, gpu_memory_utilization: {share}"
    text = spec(
        "meta-llama/Llama-3.1-8B-Instruct", "nvidia/h100-sxm5-80gb", args=args, version="0.11.0"
    )
    assert verdicts(text)["options/utilization"] == verdict


# 20: the guide's sample configuration, with the names that vLLM has

SAMPLE = (
    "tensor_parallel_size: 2, max_model_len: 32768, max_num_seqs: 64, "
    "max_num_batched_tokens: 16384, gpu_memory_utilization: 0.85, quantization: fp8, "
    "speculative_config: {method: draft_model, model: meta-llama/Llama-3.1-8B-Instruct, "
    "num_speculative_tokens: 4, draft_tensor_parallel_size: 2}"
)


def test_what_the_sample_configuration_holds_of_its_64_sequences() -> None:
    text = spec(
        "meta-llama/Llama-3.1-70B-Instruct", "nvidia/h100-sxm5-80gb", 2, args=SAMPLE,
        version="0.31.0", workload="{prompt_tokens: 30720, output_tokens: 2048, concurrency: 64}",
    )  # fmt: skip
    deployment, found = checked(text)
    # 70 B in FP8 and the 8 B draft in 16 bit, each over two devices
    assert "33.9 weights - 7.5 draft model" in found["kv-cache/declared-load"].arithmetic
    # a token: 80 layers of the model and 32 of the draft, 4 of 8 heads of 128 each, 2 bytes
    assert deployment.estimates["kv_bytes_per_token"].band.mid == (80 + 32) * 4 * 128 * 2 * 2
    tokens = deployment.estimates["kv_cache_tokens"].band
    assert 70_000 < tokens.low < tokens.high < 120_000
    assert tokens.high < 64 * 32_768 / 15
    concurrency = deployment.estimates["max_concurrency"].band
    assert concurrency.mid == pytest.approx(tokens.mid / 32_768, rel=0.01)
