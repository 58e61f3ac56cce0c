"""What vLLM logged at start, from the KV memory that it logged: tokens and concurrency.

One start-up for each mechanism, as published with its log. The memory is rounded to 0.01 GiB in
the log, the concurrency to 0.01.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from pages_kit import case_of

from capcheck.quantity import GIB


class Start(NamedTuple):
    why: str
    model: str
    release: str
    accelerator: str
    args: dict[str, Any]
    available: float  # GiB
    tokens: int | None
    concurrency: float | None


QWEN35 = "Qwen/Qwen3.5-9B"
STARTS = (
    Start("V0 counts blocks", "Qwen/Qwen2.5-1.5B-Instruct", "0.6.6.post1", "nvidia/l40s",
          {"max_model_len": 4096}, 35.55, None, 325.03),
    Start("V1 before the hybrid manager", "deepseek-ai/DeepSeek-R1-0528-Qwen3-8B", "0.8.5",
          "nvidia/t4", {"tensor_parallel_size": 4, "max_model_len": 65536}, 14.49, None, 6.44),
    Start("halves of a window model", "openai/gpt-oss-120b", "0.10.1.1", "nvidia/a100-sxm4-80gb",
          {"tensor_parallel_size": 4, "max_model_len": 16384}, 45.32, 2_640_144, 284.25),
    Start("groups of ten, one padded", "google/gemma-3-27b-it", "0.11.0", "amd/mi300x-192gb",
          {"max_model_len": 4096, "max_num_batched_tokens": 8192}, 109.86, 205_696, 50.05),
    Start("a gated delta net", "Qwen/Qwen3-Next-80B-A3B-Instruct", "0.11.2",
          "amd/r9700", {"tensor_parallel_size": 2, "max_model_len": 16384}, 7.09, 154_496, 33.47),
    Start("Mamba-2 states in the model's dtype before 0.13",
          "nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "0.12.0", "nvidia/h100-sxm5-80gb",
          {"max_model_len": 262144, "max_num_batched_tokens": 16384}, 7.37, 257_280, 4.82),
    Start("Mamba-2 states in fp32, an fp8 cache",
          "nvidia/NVIDIA-Nemotron-3-Super-120B-A12B-BF16", "0.14.1", "nvidia/h100-sxm5-80gb",
          {"tensor_parallel_size": 4, "max_model_len": 262144, "kv_cache_dtype": "fp8"},
          7.94, 690_560, 14.49),
    Start("blocks of 784 tokens", "Qwen/Qwen3.5-27B", "0.19.0", "nvidia/rtx-3090",
          {"tensor_parallel_size": 4, "max_model_len": 50000}, 7.56, 123_088, 9.42),
    Start("a short length against blocks of 528", QWEN35, "0.20.0", "nvidia/rtx-5090",
          {"max_model_len": 4096}, 6.56, 53_328, 36.91),
    Start("the smaller block counts: 16 of 16 and 32", "google/gemma-4-26B-A4B-it", "0.20.0",
          "nvidia/gb10-dgx-spark",
          {"max_model_len": 8192, "max_num_batched_tokens": 4096}, 40.61, 177_440, 35.75),
    Start("concurrency x length", "google/gemma-4-26B-A4B-it", "0.25.1", "nvidia/gb10-dgx-spark",
          {"max_model_len": 262144, "max_num_batched_tokens": 2496}, 84.68, 3_912_140, 14.92),
    Start("prefixes of states are kept by default", "Qwen/Qwen3.8-27B", "0.26.0",
          "amd/strix-halo", {"max_model_len": 262144}, 19.54, 313_650, 1.20),
    Start("the index keys of sparse attention", "zai-org/GLM-5.1-FP8", "0.19.1",
          "nvidia/h200-sxm-141gb", {"tensor_parallel_size": 8, "max_model_len": 202752},
          32.06, 343_744, 1.70),
    Start("DeepSeek-V4: five block tables", "deepseek-ai/DeepSeek-V4-Flash", "0.31.0",
          "nvidia/h100-sxm5-80gb",
          {"tensor_parallel_size": 8, "max_model_len": 262144, "max_num_batched_tokens": 8192,
           "kv_cache_dtype": "fp8_ds_mla"}, 47.43, 1_728_531, None),
)  # fmt: skip


@pytest.mark.parametrize("start", STARTS, ids=[start.why for start in STARTS])
def test_a_logged_start(start: Start) -> None:
    case = case_of(start.model, start.release, start.accelerator, **start.args)
    layout = case.kv()
    blocks = layout.blocks(start.available * GIB)
    if start.tokens is not None:
        # Half of the last digit of the memory, and the smallest step of what is counted.
        rounding = 0.005 / start.available + 1 / blocks
        assert layout.logged_tokens(blocks) == pytest.approx(start.tokens, rel=rounding)
    if start.concurrency is not None:
        held = blocks / layout.request_blocks(start.args["max_model_len"])
        slack = 0.006 + held * (0.005 / start.available + 1 / blocks)
        assert held == pytest.approx(start.concurrency, abs=slack)


def test_the_steps_of_the_log_are_finer_than_what_is_tested() -> None:
    """Were a block twice as large or a request a tenth longer, a start-up would tell."""
    for start in STARTS:
        layout = case_of(start.model, start.release, start.accelerator, **start.args).kv()
        assert layout.blocks(start.available * GIB) > 50
