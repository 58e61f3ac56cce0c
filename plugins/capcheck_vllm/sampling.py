"""Which kernel filters and draws tokens: it decides how many copies of the logits profiling makes.

Read in the sampler of 0.8.5 to 0.33.0. Until 0.11.0 V1 took FlashInfer where it was installed (the
project's images have it, `pip install vllm` has not); then only on request; from 0.17.0 a Triton
kernel for eight rows and more; from 0.21.0 FlashInfer by default on NVIDIA.
"""

from __future__ import annotations

from capcheck import Case
from capcheck_vllm.runner import second_runner

TORCH, TRITON, FLASHINFER, EITHER = "torch", "triton", "flashinfer", "either"
UNFILTERED = "unfiltered"  # the second model runner's dummy pass
TRITON_ROWS = 8  # fewer are sorted by torch
OLDEST_CAPABILITY = 7.5  # that FlashInfer supports


def sampler(case: Case, v1: bool) -> str:
    """torch, triton, flashinfer, unfiltered; or "either", where the installation decides."""
    version = case.release.version
    if not v1:
        return TORCH
    if second_runner(case, v1):
        return UNFILTERED
    flag = _flag(case)
    able = _flashinfer_runs(case)
    if version < (0, 11, 1):
        if not able or flag == "0":
            return TORCH
        return FLASHINFER if flag == "1" or _from_image(case) else EITHER
    wanted = flag != "0" if version >= (0, 21, 0) else flag == "1"
    if able and wanted:
        return FLASHINFER
    if version < (0, 17, 0) or _rows(case) < TRITON_ROWS:
        return TORCH
    return TRITON


def _flag(case: Case) -> str | None:
    value = case.deployment.text("engine", "env", "VLLM_USE_FLASHINFER_SAMPLER")
    return value.either(None) if value is not None else None


def _flashinfer_runs(case: Case) -> bool:
    part = case.accelerator.either(None)
    if part is None:
        return True
    old = part.capability is not None and part.capability < OLDEST_CAPABILITY
    return part.vendor == "nvidia" and not old


def _from_image(case: Case) -> bool:
    version = case.deployment.text("engine", "version")
    return version is not None and version.known and version.origin.word == "image"


def _rows(case: Case) -> int:
    tokens = case.plan.max_step_tokens.either(TRITON_ROWS)
    return min(case.plan.max_sequences.either(TRITON_ROWS), tokens)
