"""The facts of a case that fitted constants are selected by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from capcheck.case import Case
    from capcheck.hardware import Accelerator
    from capcheck.values import Value

PARALLEL = ("tensor", "pipeline", "data", "expert")


def _link(case: Case, part: Accelerator) -> str:
    """The link's kind; pcie where more devices than a bridge joins share each layer."""
    tensor = case.plan.tensor.either(None) or 1
    beyond = part.link.optional and tensor > part.link.domain
    return "pcie" if beyond and part.pcie_bytes_per_second else part.link.kind


def _watts(part: Accelerator) -> float | None:
    """Rated power over the 16-bit peak: what has little of it cannot hold its clock."""
    peak = part.flops.get("bf16") or part.flops.get("fp16")
    return part.tdp_watts / peak * 1e12 if part.tdp_watts and peak else None


def facts_of(case: Case) -> dict[str, Any]:
    """What is known of engine, release, accelerator, layout and model; the engine adds its own.

    engine, release, vendor, memory_class (hbm, gddr, unified), architecture, capability,
    accelerator, link, visible (measured, nominal), watts_per_teraflop (16 bit), tensor, pipeline,
    data, expert, family, moe, recurrent (layers that keep a state, as Mamba and linear attention).
    A fact that is not known is None or absent.
    """
    facts: dict[str, Any] = {"engine": case.engine.name, "release": case.release.version}
    part = case.accelerator.either(None)
    if part is not None:
        facts |= {
            "vendor": part.vendor,
            "memory_class": part.memory_class,
            "architecture": part.architecture,
            "capability": part.capability,
            "accelerator": part.id,
            "link": _link(case, part),
            "visible": "measured" if part.visible_bytes else "nominal",
            "watts_per_teraflop": _watts(part),
        }
    for name in PARALLEL:
        value: Value[int] = getattr(case.plan, name)
        facts[name] = value.either(None)
    model = case.model.either(None)
    if model is not None:
        built = model.architecture
        facts |= {
            "family": built.family,
            "moe": built.experts > 0,
            "recurrent": any(
                one.cache is not None and one.cache.kind == "state" for one in built.layers
            ),
        }
    return {**facts, **case.engine.facts(case)}
