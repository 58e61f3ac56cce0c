"""How a checkpoint's weights are packed: the type that quantization methods fill."""

from __future__ import annotations

from typing import Literal, NamedTuple

# How the scheme is known. Only the checkpoint's own configuration ("config") is a fact about
# that checkpoint; "recipe" (the uploader's usual one) and "name" are guesses, and "written" is
# what the author of the deployment declared.
Seen = Literal["config", "document", "total", "recipe", "name", "written", "online"]


class Scheme(NamedTuple):
    """One quantization scheme, expanded to what decides bytes, kernels and legality."""

    method: str  # the engine-neutral method: fp8, awq, gptq, compressed-tensors, modelopt, mxfp4 ...
    weight: str  # dtype word: fp8_e4m3 int8 int4 nvfp4 mxfp4 nf4 q4_k_m ...
    bits: float  # of one packed weight, scales not counted
    group: int = 0  # input elements per scale; 0: one scale per output channel; -1: per tensor
    block: tuple[int, int] | None = None  # two-dimensional scale blocks (out, into)
    zero_points: bool = False
    activation: str = ""  # "" weight-only; fp8, int8, nvfp4: activations are quantized too
    activation_static: bool = False  # per-tensor scales fixed at calibration
    kv: str = ""  # KV-cache dtype that the checkpoint asks for: fp8_e4m3; "" none
    excluded: tuple[str, ...] = ()  # name patterns that stay unquantized, as the checkpoint lists them
    experts_only: bool = False  # mxfp4 of gpt-oss: only the experts are packed
    seen: Seen = "config"
    source: str = ""
