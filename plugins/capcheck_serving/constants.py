"""From terms to the constants of the physics: which facts each of them is selected by.

A term `serving.NAME` belongs to the field NAME of `StepConstants` or `LoadConstants`. Beside the
facts of a case (engine, release, vendor, architecture, memory class, link, family, moe) the
reader adds `weight_bits` and `compute` for the group of weights that a constant is about, and
`lengths` and `start` for the load.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Literal, NamedTuple

from capcheck.physics.server import LoadConstants
from capcheck.physics.step import StepConstants

Read = Callable[..., float]
Compute = Literal["16", "fp8", "fp8_block", "int8", "fp4", "mxfp4"]
LengthsWord = Literal["fixed", "varied"]
StartWord = Literal["steady", "burst"]

_DENSE = ("weight_efficiency", "dense_utilization", "quantized_layer_factor")
_EXPERT = ("expert_efficiency", "expert_utilization")
_SIXTEEN = ("bf16", "fp16")


class Packing(NamedTuple):
    """How a group of weights is stored, and what its products are computed in."""

    bits: float  # of a stored weight, scales included
    compute: Compute


def step_constants(
    read: Read, dense: Packing, experts: Packing, kv_bits: float = 16.0
) -> StepConstants:
    """All constants of a step. `read` is `Terms.read`. Raises TermError when one is missing.

    `kv_bits` are of one cached key or value element.
    """

    def value(name: str) -> float:
        for names, packing in ((_DENSE, dense), (_EXPERT, experts)):
            if name in names:
                facts = {"weight_bits": packing.bits, "compute": packing.compute}
                return read(f"serving.{name}", **facts)
        if name == "cache_efficiency":
            return read(f"serving.{name}", kv_bits=kv_bits)
        return read(f"serving.{name}")

    return StepConstants(*(value(name) for name in StepConstants._fields))


def load_constants(read: Read, lengths: LengthsWord, start: StartWord) -> LoadConstants:
    """All constants of a load. Raises TermError when one is missing."""
    return LoadConstants(
        *(read(f"serving.{name}", lengths=lengths, start=start) for name in LoadConstants._fields)
    )


def compute_of(
    weight: str, activation: str, flops: Mapping[str, float], half_sums: bool = False
) -> tuple[Compute, float]:
    """The class of a product's arithmetic, and its peak in FLOP/s.

    `weight` and `activation` are dtype words; "" is an unquantized activation. Products fall
    back to 16 bit where the accelerator lacks the dtype, or the weights alone are packed. mxfp4
    experts run at the fp8 peak on accelerators that have fp4. With `half_sums` the engine adds up
    products in 16 bit: half the int8 peak, where adding in 32 bit is slower (GeForce). Raises
    KeyError when the accelerator has no 16-bit peak either.
    """
    if weight == "mxfp4" and "fp4" in flops and "fp8" in flops:
        return "mxfp4", flops["fp8"]
    if activation.startswith("fp8") and "fp8" in flops:
        return "fp8", flops["fp8"]
    if activation == "int8" and "int8" in flops:
        return "int8", flops["int8"]
    if activation in ("nvfp4", "mxfp4", "fp4") and "fp4" in flops:
        return "fp4", flops["fp4"]
    peak = sixteen_bit(flops)
    return "16", max(peak, flops.get("int8", 0.0) / 2.0) if half_sums else peak


def sixteen_bit(flops: Mapping[str, float]) -> float:
    """FLOP/s for 16-bit operands. Where those are slower than 32-bit ones, engines use the latter.

    Pascal's P40 does 0.18 TFLOP/s in fp16 and 11.8 in fp32. Raises KeyError when neither bf16 nor
    fp16 is known.
    """
    stated = next((flops[name] for name in _SIXTEEN if name in flops), None)
    if stated is None:
        raise KeyError("bf16")
    return max(stated, flops.get("fp32", 0.0))
