"""What `fit` prints: every estimate that can be made, and the verdicts on a named accelerator."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from capcheck.amounts import amount, around
from capcheck.case import Case, Estimate
from capcheck.findings import Result
from capcheck.quantity import GIB, Band
from capcheck.session import Session
from capcheck.shared import CORE_ESTIMATES
from capcheck.summing import binding_of, estimate_of

HEADLINES = {
    "generic_weights_bytes": "weights",
    "generic_kv_bytes": "KV cache",
    "generic_activation_bytes": "activation overhead",
    "generic_total_bytes": "total",
    "generic_recommended_bytes": "recommended",
}
PREFIX, SUFFIX = "generic_", "_bytes"
# Without an engine the core's memory estimates only repeat the headlines, divided by devices.
REPEATED = frozenset(one.name for one in CORE_ESTIMATES if one.name != "kv_bytes_per_token")


class Row(NamedTuple):
    """One line for people."""

    name: str
    value: str
    note: str = ""


class Fit(NamedTuple):
    """One alternative: rows for people, figures for programs.

    `fits` is None when no accelerator is named, False when a rule whose failing is an error
    fails for sure.
    """

    title: str
    rows: tuple[Row, ...]
    figures: dict[str, Any]
    fits: bool | None


def _heading(name: str) -> str:
    return HEADLINES.get(name, name.removesuffix("_seconds").removesuffix(SUFFIX).replace("_", " "))


def _shown(case: Case) -> Iterator[Estimate]:
    """The estimates worth a line: the planner's five first."""
    made = case.workshop.estimates
    yield from (made[name] for name in HEADLINES if name in made)
    for name, one in made.items():
        if name not in HEADLINES and not (case.engine.fallback and name in REPEATED):
            yield one


def _row(made: Estimate, band: Band) -> Row:
    if made.name in HEADLINES:
        return Row(_heading(made.name), f"{band.mid / GIB:.2f} GiB", made.basis)
    ends = around(band, made.unit)
    note = f"{made.basis} ({ends})" if ends else made.basis
    return Row(_heading(made.name), amount(band.mid, made.unit), note)


def _title(case: Case) -> str:
    model, part = case.model.get("model"), case.accelerator.either(None)
    title = f"{model.name} ({model.how})"
    if part is not None:
        title += f" on {case.plan.tensor.either('?')} x {part.name}"
    return title + (f", {case.engine.name} {case.release.text}" * (not case.engine.fallback))


def _judged(results: Sequence[Result]) -> Iterator[Row]:
    for result in results:
        if result.rule.severity == "error" and result.verdict in ("fail", "at risk"):
            yield Row(result.rule.id, result.verdict, result.words.message)


def fit_of(session: Session, case: Case) -> Fit:
    """All figures of one alternative. Raises Unknown for a model that is not known."""
    title = _title(case)
    rows: list[Row] = []
    figures: dict[str, Any] = {}
    bands = {}
    for made in _shown(case):
        band = estimate_of(case, made, session.guard)
        if band is None:
            continue
        bands[made.name] = band
        figures[made.name] = band.mid
        if made.name in HEADLINES:
            name = made.name.removeprefix(PREFIX).removesuffix(SUFFIX)
            figures[f"{name}_gib"] = round(band.mid / GIB, 2)
        if band.mid or not band.is_exact:
            rows.append(_row(made, band))
    binding = binding_of(bands)
    if binding:
        rows.append(Row("binding", binding, "the constraint that is closest to its limit"))
        figures["binding"] = binding
    if case.accelerator.unknown:
        return Fit(title, tuple(rows), figures, None)
    results = session.checker.results(case)
    rows += _judged(results)
    fits = not any(one.rule.severity == "error" and one.verdict == "fail" for one in results)
    figures |= {"fits": fits, "verdicts": {one.rule.id: one.verdict for one in results}}
    return Fit(title, tuple(rows), figures, fits)
