"""`capcheck fit MODEL --on ACCELERATOR`: what a model takes, and the floors of targets."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from capcheck.case import Case
from capcheck.cli import FAULT, FINDINGS, OK, session_of, tell
from capcheck.config import UsageError
from capcheck.engine import Change
from capcheck.files import shown
from capcheck.fitting import Fit, Row, fit_of
from capcheck.session import Session
from capcheck.values import Unknown
from capcheck.verbs.reading import say

SPEC = "<command line options>"


def _model_path(given: argparse.Namespace) -> Path | None:
    """The file or folder that MODEL names; None for a model's name."""
    path = Path(given.model)
    try:
        return path if path.exists() else None
    except (OSError, ValueError):
        return None


def _spec(given: argparse.Namespace, model: dict[str, Any]) -> dict[str, Any]:
    """The deployment that the options describe."""
    spec: dict[str, Any] = {"apiVersion": "capcheck/v1", "kind": "Deployment", "name": "fit"}
    if given.precision:
        model = {**model, "weights": {"precision": given.precision}}
    hardware = {"accelerator": given.on, "count": given.count}
    engine = {"name": given.engine, "version": given.engine_version}
    args = {
        "max_model_len": given.length,
        "max_num_seqs": given.sequences,
        "kv_cache_dtype": given.kv_dtype,
    }
    targets = {name: getattr(given, name) for name in ("tpot", "ttft")}
    workload = {"prompt_tokens": given.prompt_tokens}
    objectives = {name: {"p50": target} for name, target in targets.items() if target}
    parts = {
        "model": model,
        "hardware": _given(hardware),
        "engine": {**_given(engine), "args": _given(args)},
        "workload": _given(workload),
        "objectives": objectives,
    }
    return {**spec, **{name: part for name, part in parts.items() if part}}


def _given(options: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def cases_of(session: Session, given: argparse.Namespace) -> tuple[Case, ...]:
    """The alternatives of the described deployment. Raises UsageError for what is not known."""
    path = _model_path(given)
    model = {"id": given.model} if path is None else {"config": shown(path, session.root)}
    drafts = session.intake.read((), stdin=(SPEC, json.dumps(_spec(given, model))))
    if not drafts:
        raise UsageError("no plugin reads capcheck/v1 deployments")
    resolved = session.resolve(drafts[0])
    for problem in (*session.intake.problems, *resolved.problems):
        raise UsageError(f"{problem.message}{f'; {problem.help}' if problem.help else ''}")
    return tuple(_spread(case) for case in resolved.cases)


def _spread(case: Case) -> Case:
    """The case over all of the devices: engines that are not told use one."""
    count = case.deployment.count("hardware", "count")
    devices = count.either(1) if count is not None else 1
    if devices <= 1 or case.plan.tensor.either(devices) != 1:
        return case
    return case.what_if(Change("tensor", devices)) or case


def _text(fits: Sequence[Fit]) -> Iterator[str]:
    """What all alternatives share first, then each with what only it has."""
    width = max((len(row.name) for fit in fits for row in fit.rows), default=0)
    shared = [row for row in fits[0].rows if all(row in fit.rows for fit in fits[1:])]
    alone = fits[0].where if len(fits) == 1 else ""
    yield from _block(f"{fits[0].model} {alone}", shared, width)
    for fit in fits if len(fits) > 1 else ():
        yield from _block(fit.where, [row for row in fit.rows if row not in shared], width)


def _block(title: str, rows: Sequence[Row], width: int) -> Iterator[str]:
    yield title
    for row in rows:
        yield f"  {row.name:{width}}  {row.value:>14}  {row.note}"


def _json(fits: Sequence[Fit], cases: Sequence[Case]) -> dict[str, Any]:
    """The figures; of several alternatives each with what it is."""
    if len(fits) == 1:
        return fits[0].figures
    pairs = zip(fits, cases, strict=True)
    return {"alternatives": [{"label": case.label, **fit.figures} for fit, case in pairs]}


def run(given: argparse.Namespace) -> int:
    """Print the figures; exit 1 when the model fits none of what was named."""
    session = session_of(given, _model_path(given))
    cases = cases_of(session, given)
    try:
        fits = [fit_of(session, case) for case in cases]
    except Unknown as lost:
        raise UsageError(lost.reason) from lost
    if given.format == "json":
        json.dump(_json(fits, cases), sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        for line in _text(fits):
            say(line)
    for fault in session.guard.errors:
        tell(f"plugin {fault.plugin}: {fault.message}")
    if session.guard.errors:
        return FAULT
    return FINDINGS if all(fit.fits is False for fit in fits) else OK
