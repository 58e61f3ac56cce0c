"""SGLang on AMD's devices: what differs from NVIDIA's."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Case, Platform, Support

NEEDS_NVIDIA = ("fa3", "fa4", "flashinfer", "flashmla", "cutlass_mla", "trtllm_mla", "trtllm_mha")


class OnAmd(Platform):
    """Attention backends are aiter, triton and wave; the rest is shared."""

    engine = "sglang"
    vendor = "amd"

    def supports(self, case: Case) -> Iterator[Support]:
        """Attention backends that only exist for NVIDIA's devices."""
        chosen = case.deployment.text("engine", "args", "attention_backend")
        if chosen is not None and chosen.known:
            yield Support(
                "options/conflict", chosen.get() not in NEEDS_NVIDIA, chosen,
                f"attention_backend {chosen.get()} is for NVIDIA devices only",
                ("attention_backend: aiter", "attention_backend: triton"),
            )  # fmt: skip
