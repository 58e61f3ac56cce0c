"""Deployments of vLLM for tests of its KV pages."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Any

from capcheck import Case, KvLayout
from capcheck.testing import Bench

H100 = "nvidia/h100-sxm5-80gb"
B200 = "nvidia/b200-180gb"


@lru_cache(maxsize=1)
def bench() -> Bench:
    """One set of plugins for all tests of a run."""
    return Bench()


def case_of(
    model: str,
    release: str,
    accelerator: str = H100,
    env: dict[str, str] | None = None,
    precision: str | None = None,
    **args: Any,
) -> Case:
    """A deployment on eight devices."""
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "pages",
        "model": {"id": model, **({"weights": {"precision": precision}} if precision else {})},
        "hardware": {"accelerator": accelerator, "count": 8},
        "engine": {"name": "vllm", "version": release, "args": args, "env": env or {}},
    }
    return bench().cases(json.dumps(spec))[0]


def layout_of(
    model: str,
    release: str,
    accelerator: str = H100,
    env: dict[str, str] | None = None,
    precision: str | None = None,
    **args: Any,
) -> KvLayout:
    """Its KV pages."""
    return case_of(model, release, accelerator, env, precision, **args).kv()
