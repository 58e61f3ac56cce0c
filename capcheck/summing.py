"""Sums up: what a deployment was read as, its estimates, and the closing figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from statistics import median_low
from typing import Any

from capcheck.case import Case, Estimate
from capcheck.engine import Plan
from capcheck.findings import Finding
from capcheck.guard import RAISED, Guard
from capcheck.quantity import Band
from capcheck.report import Checked, DeploymentReport, Estimated, Summary
from capcheck.resolve import Resolved
from capcheck.selection import PLUGIN_ERROR
from capcheck.values import Unknown, Value

PLANNED = {
    "tensor_parallel_size": "tensor",
    "pipeline_parallel_size": "pipeline",
    "data_parallel_size": "data",
    "max_model_len": "max_request_tokens",
    "max_num_seqs": "max_sequences",
    "max_num_batched_tokens": "max_step_tokens",
    "kv_cache_dtype": "kv_dtype",
}
MOST_REASONS = 4  # that the closing line names
CONSTRAINTS = ("memory", "bandwidth", "compute", "interconnect")


def _planned(plans: Sequence[Plan], field: str) -> tuple[Any, str]:
    """The value that all alternatives share, else None and why."""
    values: list[Value[Any]] = [getattr(plan, field) for plan in plans]
    if not all(value.known for value in values):
        lost = next(value for value in values if not value.known)
        return None, lost.origin.why or "not known"
    options = list(dict.fromkeys(value.get() for value in values))
    if len(options) == 1:
        return options[0], ""
    return None, "one of " + ", ".join(str(option) for option in options)


def _resolved(resolved: Resolved) -> tuple[dict[str, Any], dict[str, str]]:
    lost = dict(resolved.unknown)
    found: dict[str, Any] = {}
    cases = resolved.cases
    first = cases[0]
    named = resolved.named
    model = first.model.either(None)
    found["model"] = model.name if model else (named.either(None) if named else None)
    found["architecture"] = model.architecture.id if model else None
    part = first.accelerator.either(None)
    same = len({case.accelerator.either(None) and case.accelerator.get().id for case in cases}) == 1
    found["accelerator"] = part.id if part and same else None
    devices, why = _devices(resolved)
    found["devices"] = devices
    if why:
        lost["devices"] = why
    found["engine"] = None if "engine" in lost else first.engine.name
    known = len(cases) >= 1 and all(case.release.known for case in cases)
    found["engine_version"] = first.release.text if known else None
    for name, field in PLANNED.items():
        found[name], why = _planned([case.plan for case in cases], field)
        if why:
            lost[name] = why
    return found, lost


def _devices(resolved: Resolved) -> tuple[int | None, str]:
    """Devices of one replica: what the hardware says, else what the engine will take."""
    count = resolved.deployment.count("hardware", "count")
    nodes = resolved.deployment.count("hardware", "nodes")
    if count is not None:
        if not count.known:
            return None, count.origin.why or "the count is not known"
        if nodes is not None and not nodes.known:
            return None, nodes.origin.why or "the number of nodes is not known"
        return count.get() * (nodes.get() if nodes is not None else 1), ""
    try:
        return resolved.cases[0].plan.devices, ""
    except Unknown as unknown:
        return None, unknown.reason


def estimate_of(case: Case, made: Estimate, guard: Guard) -> Band | None:
    """One estimate on one case; None when it cannot be made."""
    try:
        return case.estimate(made.name)
    except Unknown:
        return None
    except RAISED as error:
        guard.failed(made, f"the estimate {made.name!r}", error)
        return None


def _estimates(cases: Sequence[Case], guard: Guard) -> dict[str, Estimated]:
    """Every estimate that can be made; over alternatives the widest band around the median."""
    found: dict[str, Estimated] = {}
    for name, made in cases[0].workshop.estimates.items():
        bands = [estimate_of(case, made, guard) for case in cases]
        known = [band for band in bands if band is not None]
        if known and len(known) == len(bands):
            low, high = min(band.low for band in known), max(band.high for band in known)
            middle = median_low(band.mid for band in known)
            found[name] = Estimated(Band(low, middle, high), made.unit, made.basis)
    return found


def deployment_report(
    resolved: Resolved, checks: tuple[Checked, ...], guard: Guard
) -> DeploymentReport:
    """One deployment as the report carries it."""
    found, lost = _resolved(resolved)
    deployment = resolved.deployment
    estimates = _estimates(resolved.cases, guard)
    return DeploymentReport(
        deployment.name, deployment.place, deployment.format, found, lost,
        estimates, checks, binding_of({name: one.band for name, one in estimates.items()}),
    )  # fmt: skip


def binding_of(bands: Mapping[str, Band]) -> str:
    """The constraint that is closest to its limit.

    By the estimates named `<it>_share`, of the load; without a load by `<it>_floor_share`, of what
    the objectives ask for.
    """
    for ending in ("share", "floor_share"):
        names = {name: f"{name}_{ending}" for name in CONSTRAINTS}
        shares = {name: bands[made].mid for name, made in names.items() if made in bands}
        if shares:
            return max(shares, key=lambda name: shares[name])
    return ""


def summary(
    deployments: Sequence[DeploymentReport],
    findings: Sequence[Finding],
    suppressed: Sequence[Finding],
    *,
    files: int,
    assumed: int,
    unclaimed: int,
    lacks: Iterable[str] = (),
) -> Summary:
    """The closing line's figures. `lacks` has why each skipped check was skipped."""
    checks = [check for one in deployments for check in one.checks]
    skips = [check for check in checks if check.verdict == "skip"]
    reasons = Counter(lacks)
    return Summary(
        files=files,
        deployments=len(deployments),
        checks=len(checks),
        passed=sum(1 for check in checks if check.verdict == "pass"),
        errors=sum(1 for one in findings if one.severity == "error"),
        warnings=sum(1 for one in findings if one.severity == "warning"),
        skipped=len(skips),
        suppressed=len(suppressed),
        assumed=assumed,
        unclaimed=unclaimed,
        skip_reasons=tuple(reasons.most_common(MOST_REASONS)),
        plugin_errors=sum(1 for one in findings if one.rule == PLUGIN_ERROR),
    )
