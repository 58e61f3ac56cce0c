"""vLLM's defaults by release and hardware, as read in its sources."""

from __future__ import annotations

from capcheck import GIB, Accelerator

Version = tuple[int, ...]

V1 = (0, 8, 0)


def is_large(accelerator: Accelerator) -> bool:
    """Whether vLLM counts the device among those of 70 GiB and more."""
    return device_bytes(accelerator) >= 70 * GIB and accelerator.capability != 12.1


def device_bytes(accelerator: Accelerator) -> float:
    """Visible bytes, as good as they are known."""
    return accelerator.visible_bytes or accelerator.nominal_bytes * accelerator.visible_factor


def _is_a100(accelerator: Accelerator) -> bool:
    return "a100" in accelerator.name.lower() or "a100" in accelerator.id


def utilization(version: Version) -> float:
    """`gpu_memory_utilization`: 0.92 from 0.20.0."""
    return 0.92 if version >= (0, 20, 0) else 0.9


def max_num_seqs(version: Version, accelerator: Accelerator) -> int:
    """256 in V0; V1 on devices of 70 GiB and more 1024 (A100 excepted from 0.9)."""
    if version < V1:
        return 256
    if version < (0, 8, 5):
        return 1024
    if not is_large(accelerator):
        return 256
    return 256 if version >= (0, 9, 0) and _is_a100(accelerator) else 1024


def max_num_batched_tokens(version: Version, accelerator: Accelerator) -> int:
    """The server's default token budget of one step in V1, by device memory."""
    name = accelerator.name.lower()
    if version < (0, 8, 5):
        return 8192 if "h100" in name or "h200" in name else 2048
    if version >= (0, 28, 0) and device_bytes(accelerator) >= 160 * GIB:
        return 16384
    if not is_large(accelerator):
        return 2048
    return 2048 if version >= (0, 9, 0) and _is_a100(accelerator) else 8192


def v0_batched_tokens(version: Version, chunked: bool, max_model_len: int, multimodal: bool) -> int:
    """The token budget of one step in V0: the whole length when prefill is not chunked."""
    if chunked:
        return 512 if version < (0, 6, 4) else 2048
    floor = 5120 if multimodal else 2048
    return max(max_model_len, floor)


def v0_chunked_prefill(max_model_len: int, multimodal: bool, sliding: bool) -> bool:
    """V0 turned chunking on by itself only above 32,768 tokens."""
    return max_model_len > 32768 and not multimodal and not sliding


def largest_capture(
    version: Version, sequences: int, step_tokens: int, capability: float | None
) -> int:
    """The largest batch that V1 captures a CUDA graph for; `step_tokens` of each sequence."""
    cap = 1024 if version >= (0, 28, 0) and capability in (10.0, 10.3) else 512
    if version < (0, 10, 0):
        return cap
    return min(2 * sequences * (step_tokens if version >= (0, 13, 0) else 1), cap)
