"""Deployments of Text Generation Inference for tests."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from capcheck import Case
from capcheck.testing import Bench


@cache
def bench() -> Bench:
    """One set of plugins for all tests of a module."""
    return Bench()


def spec(
    model: str = "meta-llama/Llama-3.1-8B-Instruct",
    accelerator: str = "nvidia/l40s",
    count: int = 1,
    version: str | None = "3.3.4",
    args: dict[str, Any] | None = None,
    env: dict[str, str] | None = None,
    **more: Any,
) -> str:
    """A deployment as text."""
    engine: dict[str, Any] = {"name": "tgi", "args": args or {}}
    if version:
        engine["version"] = version
    if env:
        engine["env"] = env
    found = {"apiVersion": "capcheck/v1", "kind": "Deployment", "name": "chat",
             "model": {"id": model}, "engine": engine, **more}  # fmt: skip
    if accelerator:
        found["hardware"] = {"accelerator": accelerator, "count": count}
    return json.dumps(found)


def case_of(*args: Any, **options: Any) -> Case:
    """The first case of such a deployment."""
    return bench().cases(spec(*args, **options))[0]


def verdicts(*args: Any, **options: Any) -> dict[str, set[str]]:
    """Each rule's verdicts on such a deployment."""
    (outcome,) = bench().outcomes(spec(*args, **options))
    return {rule: {one.result.verdict for one in ones} for rule, ones in outcome.judged.items()}
