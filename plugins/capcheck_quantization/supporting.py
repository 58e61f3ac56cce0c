"""The legality of a packed checkpoint on one case, as the core asks for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from capcheck import Case, Scheme, Support, Unknown, Value
from capcheck.physics.memory import Split

from . import legality
from .legality import Problem
from .shapes import shape_problems

SUPPORTED, DIVISIBLE = "quantization/supported", "sharding/divisible"


def _support(rule: str, problem: Problem, at: Value[Any], scheme: Scheme | None) -> Support:
    doubt = "" if problem.sure else "it depends on what is not known of the release or the upload"
    if scheme is not None and scheme.is_guess:
        doubt = "the scheme was not read from the checkpoint's own configuration"
    return Support(rule, False, at, problem.words, doubt=doubt)


def _release(case: Case) -> tuple[int, ...] | None:
    return case.release.version if case.release.known else None


def _scheme_supports(case: Case, scheme: Scheme | None) -> Iterator[Support]:
    part = case.accelerator.get("accelerator")
    capability = round(part.capability * 10) if part.capability is not None else None
    engine, release = case.engine.name, _release(case)
    model = case.model.get("model")
    at = case.model if scheme is None or scheme.seen != "written" else model.scheme
    problems: list[Problem] = []
    if scheme is not None:
        problems += legality.capability_problems(scheme, engine, part.vendor, capability, release)
        problems += legality.method_problems(scheme, engine, release)
    yield from (_support(SUPPORTED, one, at, scheme) for one in problems)
    dtype = case.plan.weight_dtype
    forced = case.engine.online_quantization(case.deployment)
    problems = list(
        legality.dtype_problems(
            scheme, dtype.get("dtype"), engine=engine, release=release, vendor=part.vendor,
            capability=capability, model_type=model.architecture.family,
            forced=(forced.either("") if forced is not None else "") or "",
        )
    )  # fmt: skip
    where = dtype if dtype.origin.kind == "written" else at
    yield from (_support(SUPPORTED, one, where, scheme) for one in problems)
    kv = case.plan.kv_dtype
    found = legality.kv_problems(kv.get("kv_cache_dtype"), engine, part.vendor, capability, release)
    yield from (_support(SUPPORTED, one, kv, scheme) for one in found)
    yield Support(SUPPORTED, True, at)


def _experts_over(case: Case) -> int:
    """Devices that cut an expert's matrices: vLLM takes all ranks of data for it too."""
    if case.engine.name != "vllm":
        return 0
    return case.plan.tensor.get("tensor_parallel_size") * max(1, case.plan.data.get())


def _shape_supports(case: Case, scheme: Scheme) -> Iterator[Support]:
    plan = case.plan
    tensor = plan.tensor
    split = Split(
        tensor.get("tensor_parallel_size"),
        plan.pipeline.get(),
        max(1, plan.expert.get()),
        experts_over=_experts_over(case),
    )
    model = case.model.get("model").architecture
    found = shape_problems(
        scheme, model, split, engine=case.engine.name, release=_release(case),
        dtype=plan.weight_dtype.get("dtype"),
    )  # fmt: skip
    for sure in (True, False):
        alike = [one for one in found if one.sure is sure]
        if alike:
            more = f" (and {len(alike) - 1} more)" if len(alike) > 1 else ""
            words = f"{alike[0].what}: {alike[0].words}{more}"
            yield _support(DIVISIBLE, alike[0]._replace(words=words), tensor, scheme)


def supports(case: Case) -> Iterable[Support]:
    """Capability, method, dtypes and divisors; what is not known costs only its own check."""
    found: list[Support] = []
    try:
        scheme = case.model.get("model").scheme.get("quantization")
    except Unknown as lost:
        return (Support(SUPPORTED, None, lost.value, lost.why),)
    try:
        found += _scheme_supports(case, scheme)
    except Unknown as lost:
        found.append(Support(SUPPORTED, None, lost.value, lost.why))
    if scheme is not None:
        try:
            found += _shape_supports(case, scheme)
        except Unknown as lost:
            found.append(Support(DIVISIBLE, None, lost.value, lost.why))
    return found
