"""Deployments of TensorRT-LLM for tests."""

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
    accelerator: str = "nvidia/h100-sxm5-80gb",
    count: int = 1,
    version: str | None = "1.0.0",
    args: dict[str, Any] | None = None,
    **more: Any,
) -> str:
    """A deployment as text."""
    engine: dict[str, Any] = {"name": "tensorrt-llm", "args": args or {}}
    if version:
        engine["version"] = version
    return json.dumps(
        {"apiVersion": "capcheck/v1", "kind": "Deployment", "name": "chat", "model": {"id": model},
         "hardware": {"accelerator": accelerator, "count": count}, "engine": engine, **more}
    )  # fmt: skip


def case_of(*args: Any, **options: Any) -> Case:
    """The case of such a deployment."""
    (case,) = bench().cases(spec(*args, **options))
    return case


def verdicts(*args: Any, **options: Any) -> dict[str, set[str]]:
    """Each rule's verdicts on such a deployment."""
    (outcome,) = bench().outcomes(spec(*args, **options))
    return {rule: {one.result.verdict for one in ones} for rule, ones in outcome.judged.items()}
