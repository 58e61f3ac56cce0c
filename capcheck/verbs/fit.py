"""`capcheck fit MODEL --on ACCELERATOR`: what a model takes, and the floors of targets."""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from capcheck.case import Case
from capcheck.cli import session_of
from capcheck.config import UsageError
from capcheck.fitting import Fit, fit_of
from capcheck.session import Session


def _spec(given: argparse.Namespace) -> dict[str, Any]:
    """The deployment that the options describe."""
    spec: dict[str, Any] = {"apiVersion": "capcheck/v1", "kind": "Deployment", "name": "fit"}
    spec["model"] = {"id": given.model}
    if Path(given.model).exists():
        spec["model"] = {"config": given.model}
    if given.precision:
        spec["model"]["weights"] = {"precision": given.precision}
    if given.on:
        spec["hardware"] = {"accelerator": given.on}
    if given.count:
        spec.setdefault("hardware", {})["count"] = given.count
    args: dict[str, Any] = {"max_model_len": given.length, "max_num_seqs": given.sequences}
    if given.kv_dtype:
        args["kv_cache_dtype"] = given.kv_dtype
    spec["engine"] = {"args": args}
    if given.engine:
        spec["engine"]["name"] = given.engine
    if given.engine_version:
        spec["engine"]["version"] = given.engine_version
    if given.prompt_tokens:
        spec["workload"] = {"prompt_tokens": given.prompt_tokens}
    objectives = {name: getattr(given, name) for name in ("tpot", "ttft") if getattr(given, name)}
    if objectives:
        spec["objectives"] = {name: {"mean": target} for name, target in objectives.items()}
    return spec


def case_of(session: Session, given: argparse.Namespace) -> Case:
    """The first case of the described deployment. Raises UsageError for what is not known."""
    text = json.dumps(_spec(given))
    drafts = session.intake.read((), stdin=("<command line options>", text))
    resolved = session.resolve(drafts[0])
    for problem in (*session.intake.problems, *resolved.problems):
        raise UsageError(f"{problem.message}{f'; {problem.help}' if problem.help else ''}")
    return resolved.cases[0]


def _text(fit: Fit) -> str:
    width = max(len(name) for name, _, _ in fit.rows)
    lines = [fit.title]
    lines += [f"  {name:{width}}  {value:>10}  {note}".rstrip() for name, value, note in fit.rows]
    return "\n".join(lines)


def run(given: argparse.Namespace) -> int:
    """Print the figures; exit 1 when the model does not fit the accelerator that was named."""
    session = session_of(given, [])
    fit = fit_of(session, case_of(session, given))
    if given.format == "json":
        json.dump(fit.figures, sys.stdout, indent=2, ensure_ascii=False)
        print()
    else:
        print(_text(fit))
    return 0 if fit.fits is not False else 1
