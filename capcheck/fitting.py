"""What `fit` prints: every estimate that can be made, and the verdicts on a named accelerator."""

from __future__ import annotations

from typing import Any, NamedTuple

from capcheck.case import Case
from capcheck.quantity import GIB
from capcheck.session import Session
from capcheck.terms import TermError
from capcheck.values import Unknown

HEADLINES = {
    "generic_weights_bytes": "weights",
    "generic_kv_bytes": "KV cache",
    "generic_activation_bytes": "activation overhead",
    "generic_total_bytes": "total",
    "generic_recommended_bytes": "recommended",
}


class Fit(NamedTuple):
    """Rows for people, figures for programs. `fits` is None when no accelerator was named."""

    title: str
    rows: tuple[tuple[str, str, str], ...]
    figures: dict[str, Any]
    fits: bool | None


def _shown(value: float, unit: str) -> str:
    if unit == "B":
        return f"{value / GIB:.2f} GiB"
    if unit == "B/s":
        return f"{value / 1e9:,.0f} GB/s"
    if unit == "FLOP/s":
        return f"{value / 1e12:,.1f} TFLOP/s"
    if unit == "s":
        return f"{value * 1e3:,.1f} ms"
    return f"{value:,.2f}" if unit in ("1", "share") else f"{value:,.1f} {unit}"


def _estimates(case: Case) -> list[tuple[str, str, float, str, str]]:
    """(name, heading, value, unit, basis); the generic five first."""
    found = []
    ordered = [*HEADLINES, *(n for n in case.workshop.estimates if n not in HEADLINES)]
    for name in ordered:
        made = case.workshop.estimates.get(name)
        if made is None:
            continue
        try:
            value = case.estimate(name).mid
        except (Unknown, TermError):
            continue
        found.append((name, HEADLINES.get(name, name), value, made.unit, made.basis))
    return found


def fit_of(session: Session, case: Case) -> Fit:
    """All figures of one case."""
    model = case.model.get("model")
    part = case.accelerator.either(None)
    title = f"{model.name} ({model.how})"
    if part is not None:
        title += f" on {case.plan.tensor.either('?')} x {part.name}"
    rows: list[tuple[str, str, str]] = []
    figures: dict[str, Any] = {}
    for name, heading, value, unit, basis in _estimates(case):
        rows.append((heading, _shown(value, unit), basis))
        key = name.removeprefix("generic_")
        figures[name] = value
        if name in HEADLINES:
            figures[key.removesuffix("_bytes") + "_gib"] = round(value / GIB, 2)
    fits: bool | None = None
    if part is not None:
        verdicts = session.verdicts(case)
        for rule, verdict in sorted(verdicts.items()):
            if verdict in ("fail", "at risk"):
                rows.append((rule, verdict, ""))
        fits = "fail" not in verdicts.values()
        figures["verdicts"] = verdicts
    return Fit(title, tuple(rows), figures, fits)
