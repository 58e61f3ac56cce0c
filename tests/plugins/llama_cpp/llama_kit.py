"""Deployments of llama.cpp and Ollama as cases."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from capcheck import MIB, Case
from capcheck.testing import Bench

LLAMA_3 = "meta-llama/Meta-Llama-3-8B"
RTX_3090 = "nvidia/rtx-3090"


@cache
def _bench() -> Bench:
    return Bench()


def spec(
    model: str,
    precision: str | None = None,
    *,
    on: str = RTX_3090,
    count: int = 1,
    version: str | None = "b9000",
    engine: str = "llama.cpp",
    env: dict[str, str] | None = None,
    **args: Any,
) -> dict[str, Any]:
    """A deployment; underscores of options stay."""
    named: dict[str, Any] = {"id": model}
    if precision is not None:
        named["weights"] = {"precision": precision}
    run: dict[str, Any] = {"name": engine, "args": args, "env": env or {}}
    if version is not None:
        run["version"] = version
    return {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "one",
        "model": named,
        "hardware": {"accelerator": on, "count": count},
        "engine": run,
    }


def cases_of(*words: Any, **more: Any) -> list[Case]:
    """All alternatives of a deployment."""
    return _bench().cases(json.dumps(spec(*words, **more)))


def case_of(*words: Any, **more: Any) -> Case:
    """The only alternative, or the first."""
    return cases_of(*words, **more)[0]


def mib(case: Case, name: str) -> float:
    """An estimate in MiB, at the middle of its band."""
    return case.estimate(name).mid / MIB


def refused(case: Case, rule: str) -> list[str]:
    """What a rule refuses of it."""
    return [one.message for one in case.supports(rule) if one.legal is False]
