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
Compute = Literal["16", "fp8", "int8", "fp4", "mxfp4"]
LengthsWord = Literal["fixed", "varied"]
StartWord = Literal["steady", "burst"]

_DENSE = {"weight_efficiency": "weight_bits", "dense_utilization": "compute"}
_EXPERT = {"expert_efficiency": "weight_bits", "expert_utilization": "compute"}
_SIXTEEN = ("bf16", "fp16")


class Packing(NamedTuple):
    """How a group of weights is stored, and what its products are computed in."""

    bits: float  # of a stored weight, scales included
    compute: Compute


def step_constants(read: Read, dense: Packing, experts: Packing) -> StepConstants:
    """All constants of a step. `read` is `Terms.read`. Raises TermError when one is missing."""

    def value(name: str) -> float:
        for facts, packing in ((_DENSE, dense), (_EXPERT, experts)):
            if name in facts:
                fact = facts[name]
                known = packing.bits if fact == "weight_bits" else packing.compute
                return read(f"serving.{name}", **{fact: known})
        return read(f"serving.{name}")

    return StepConstants(*(value(name) for name in StepConstants._fields))


def load_constants(read: Read, lengths: LengthsWord, start: StartWord) -> LoadConstants:
    """All constants of a load. Raises TermError when one is missing."""
    return LoadConstants(
        *(read(f"serving.{name}", lengths=lengths, start=start) for name in LoadConstants._fields)
    )


def compute_of(weight: str, activation: str, flops: Mapping[str, float]) -> tuple[Compute, float]:
    """The class of a product's arithmetic, and its peak in FLOP/s.

    `weight` and `activation` are dtype words; "" is an unquantized activation. Products fall
    back to 16 bit where the accelerator lacks the dtype, or the weights alone are packed. mxfp4
    experts run at the fp8 peak on accelerators that have fp4. Raises KeyError when the
    accelerator has no 16-bit peak either.
    """
    sixteen = next((flops[name] for name in _SIXTEEN if name in flops), None)
    if weight == "mxfp4" and "fp4" in flops and "fp8" in flops:
        return "mxfp4", flops["fp8"]
    if activation.startswith("fp8") and "fp8" in flops:
        return "fp8", flops["fp8"]
    if activation == "int8" and "int8" in flops:
        return "int8", flops["int8"]
    if activation in ("nvfp4", "mxfp4", "fp4") and "fp4" in flops:
        return "fp4", flops["fp4"]
    return "16", flops["bf16"] if sixteen is None else sixteen
