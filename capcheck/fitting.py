"""What `fit` prints: every estimate that can be made, and the verdicts on a named accelerator."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from capcheck.amounts import amount, around
from capcheck.case import Case, Estimate
from capcheck.combining import FOUND
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
# The core's own, beside which the planner's figures stand.
CORE_HEADINGS = {
    "weights_bytes": "weights, each device",
    "activation_bytes": "activation, each device",
    "non_torch_bytes": "other, each device",
    "cuda_graph_bytes": "graphs, each device",
    "kv_cache_bytes": "left for KV, each device",
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

    model: str
    where: str
    rows: tuple[Row, ...]
    figures: dict[str, Any]
    fits: bool | None


def _heading(name: str) -> str:
    plain = name.removesuffix("_seconds").removesuffix(SUFFIX).replace("_", " ")
    return HEADLINES.get(name) or CORE_HEADINGS.get(name) or plain


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


def _model(case: Case) -> str:
    model = case.model.get("model")
    return f"{model.name} ({model.how})"


def _where(case: Case) -> str:
    """The devices and the engine; "" for a plan without either."""
    part = case.accelerator.either(None)
    words = [f"on {case.plan.tensor.either('?')} x {part.name}"] if part is not None else []
    if not case.engine.fallback:
        words.append(f"with {case.engine.name} {case.release.text}")
    return " ".join(words)


def _errors(session: Session, case: Case) -> list[Result]:
    """What is wrong with the plan, or may be: without what only a deployment can have."""
    return [
        one
        for one in session.checker.results(case)
        if one.verdict in FOUND
        and one.rule.of_plans
        and (one.severity or one.rule.severity) == "error"
    ]


def fit_of(session: Session, case: Case) -> Fit:
    """All figures of one alternative. Raises Unknown for a model that is not known."""
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
        return Fit(_model(case), _where(case), tuple(rows), figures, None)
    errors = _errors(session, case)
    rows += [Row(one.rule.id, one.verdict, one.words.message) for one in errors]
    fits = not any(one.verdict == "fail" for one in errors)
    figures |= {"fits": fits, "errors": {one.rule.id: one.verdict for one in errors}}
    return Fit(_model(case), _where(case), tuple(rows), figures, fits)
