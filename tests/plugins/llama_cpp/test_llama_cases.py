"""Start-ups that public logs tell of: buffers of the device that is worst off, and who starts."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
from llama_kit import LLAMA_3, RTX_3090, case_of, mib, spec

from capcheck.testing import check

LLAMA_2 = "meta-llama/Llama-2-7b-hf"
FORK = "ik_llama.cpp fork"


class Log(NamedTuple):
    """What a log says: MiB of the model's, the cache's and the compute buffer."""

    model: str
    precision: str
    version: str
    args: dict[str, Any]
    weights: float
    cache: float
    compute: float
    on: str = RTX_3090
    devices: int = 1


OLD = {"n_gpu_layers": 10000, "n_ctx": 512}
MAY = {"n_gpu_layers": 10000, "n_ctx": 8192, "n_ubatch": 512, "flash_attn": False}
FAST = {"n_gpu_layers": 99, "flash_attn": True}
QWEN = "Qwen/Qwen3-235B-A22B"
PACKED = {"cache_type_k": "q8_0", "cache_type_v": "q8_0"}
SPREAD = (
    r"blk\.(0|1|2|3|4|5|6|7|8|9|10|11|12|13|14)\.ffn.*=CUDA0,"
    r"blk\.(15|16|17|18|19|20|21|22|23|24|25|26|27|28|29)\.ffn.*=CUDA1,exps=CPU"
)
R1 = r"blk\.3\.ffn.*=CUDA0,blk\.5\.ffn.*=CUDA1,exps=CPU"
LOGS = {
    "one": Log(LLAMA_3, "q4_k_m", "b2824 (4426e298)", MAY, 4403.49, 1024, 560.0),
    "metal": Log(LLAMA_3, "q4_k_m", "b2797 (858f6b73)", MAY, 4403.5, 1024, 560.0,
                 "apple/apple-m1-max"),
    "two": Log(LLAMA_3, "q4_k_m", "b2833 (d46dbc76)", MAY, 2290.21, 480, 640.02, devices=2),
    "four": Log(LLAMA_3, "q4_k_m", "b2833 (d46dbc76)", MAY, 1307.55, 224, 640.02, devices=4),
    "six": Log(LLAMA_3, "q4_k_m", "b2824 (4426e298)", MAY, 940.99, 128, 640.02, devices=6),
    "eight": Log(LLAMA_3, "q4_k_m", "b2824 (4426e298)", MAY, 808.49, 96, 640.02, devices=8),
    "q4_0": Log(LLAMA_2, "q4_0", "b1691 (7082d24)", OLD, 3577.55, 256, 73.69),
    "f16": Log(LLAMA_2, "fp16", "b1691 (7082d24)", OLD, 12603.02, 256, 73.69),
    "65b": Log("huggyllama/llama-65b", "q4_0", "b1685 (28cb35a)", OLD, 34950.11, 1280, 122.19,
               "nvidia/rtx-6000-ada"),
    "q8_0": Log("Qwen/Qwen2.5-Coder-7B-Instruct", "q8_0", "b7780",
                {"n_ctx": 32768, "n_ubatch": 512, "flash_attn": True}, 7165.44, 1792, 382.01,
                "nvidia/rtx-5080"),
    "gemma": Log("google/gemma-3-27b-it", "q4_k_m", FORK, {**FAST, "n_ctx": 32768}, 15773.97,
                 15872, 522.62, "nvidia/rtx-a6000"),
    "fork": Log("Qwen/Qwen3-30B-A3B", "iq4_k", FORK, {**FAST, "n_ctx": 32768}, 17787.83, 3072,
                304.75),
    "overrides": Log(QWEN, "q4_k_m", FORK,
                     {**FAST, **PACKED, "n_ctx": 65536, "n_batch": 4096, "n_ubatch": 4096,
                      "override_tensor": SPREAD}, 23731.17, 3264.02, 2432.02, "nvidia/rtx-5090", 2),
    "unpacked": Log("deepseek-ai/DeepSeek-R1-0528", "iq3_k_r4", FORK,
                    {**FAST, **PACKED, "n_ctx": 61440, "n_batch": 4096, "n_ubatch": 4096, "mla": 3,
                     "override_tensor": R1}, 13995.99, 1111.66, 7272.02, "nvidia/rtx-4090", 2),
    "latent": Log("deepseek-ai/DeepSeek-V3-0324", "iq2_k_r4", FORK,
                  {**FAST, **PACKED, "n_ctx": 2048, "mla": 2, "override_tensor": "exps=CPU"},
                  17744.02, 72.94, 503.0, "nvidia/rtx-a6000"),
}  # fmt: skip


@pytest.mark.parametrize("log", LOGS.values(), ids=LOGS)
def test_buffers(log: Log) -> None:
    case = case_of(
        log.model, log.precision, on=log.on, count=log.devices, version=log.version, **log.args
    )
    exact = 0.01 if "override_tensor" in log.args else 0.001  # the fork's files are not recipes
    assert mib(case, "weights_bytes") == pytest.approx(log.weights, rel=exact)
    assert mib(case, "kv_cache_bytes") == pytest.approx(log.cache, rel=0.001)
    # What latents are unpacked to is only near: the fork's buffers differ by up to a third.
    near = 0.35 if "mla" in log.args else 0.12
    assert mib(case, "activation_bytes") == pytest.approx(log.compute, rel=near)
    band = case.estimate("activation_bytes")
    assert band.low <= log.compute * 2**20 <= band.high
    assert [one for one in _errors(log) if one != "quantization/evidence"] == []


def test_a_hybrid_counts_its_states_apart() -> None:
    # Nemotron 3 Nano, four slots (log of b8999): the file's mixture is the uploader's own.
    case = case_of("nvidia/NVIDIA-Nemotron-3-Nano-30B-A3B-BF16", "q4_k_m", version="b8999",
                   on="nvidia/gb10-dgx-spark", n_ctx=16384, n_parallel=4, n_ubatch=512)  # fmt: skip
    assert mib(case, "weights_bytes") == pytest.approx(22454.03, rel=0.04)
    assert mib(case, "kv_cache_bytes") == 96.0
    assert mib(case, "activation_bytes") == pytest.approx(271.75)
    ledger = case.ledger(case.terms())
    assert ledger.bytes_of("recurrent state") / 2**20 == pytest.approx(190.47, abs=0.05)


@pytest.mark.parametrize(
    ("model", "precision", "on", "count"),
    [
        ("meta-llama/Llama-2-13b-hf", "fp16", RTX_3090, 1),
        ("meta-llama/Llama-2-13b-hf", "fp16", "nvidia/rtx-4080", 1),
        ("meta-llama/Llama-2-70b-hf", "q4_0", RTX_3090, 1),
        ("meta-llama/Llama-2-70b-hf", "fp16", RTX_3090, 3),
        ("huggyllama/llama-30b", "fp16", "nvidia/rtx-6000-ada", 1),
        ("huggyllama/llama-65b", "fp16", "nvidia/h100-pcie-80gb", 1),
    ],
)
def test_weights_that_did_not_fit(model: str, precision: str, on: str, count: int) -> None:
    log = Log(model, precision, "b1691 (7082d24)", {"n_gpu_layers": 10000}, 0, 0, 0, on, count)
    assert "weights/fit" in _errors(log)


def _errors(log: Log) -> list[str]:
    import json

    text = json.dumps(
        spec(
            log.model, log.precision, on=log.on, count=log.devices, version=log.version, **log.args
        )
    )
    return [one.rule for one in check(text) if one.severity == "error" and one.verdict == "fail"]
