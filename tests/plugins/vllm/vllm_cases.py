"""Cases of vLLM deployments for tests."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from capcheck import Case
from capcheck.testing import Bench

LLAMA = "meta-llama/Llama-3.1-8B-Instruct"
H100, T4, MI300X = "nvidia/h100-sxm5-80gb", "nvidia/t4", "amd/mi300x-192gb"


def case_of(
    bench: Bench,
    release: str | None,
    args: Mapping[str, Any],
    *,
    accelerator: str = H100,
    model: str = LLAMA,
    env: Mapping[str, str] | None = None,
    hardware: Mapping[str, Any] | None = None,
) -> Case:
    """The first case of a deployment."""
    engine: dict[str, Any] = {"name": "vllm", "args": dict(args), "env": dict(env or {})}
    if release is not None:
        engine["version"] = release
    spec = {
        "apiVersion": "capcheck/v1",
        "kind": "Deployment",
        "name": "one",
        "model": {"id": model},
        "hardware": {"accelerator": accelerator, **(hardware or {})},
        "engine": engine,
    }
    return bench.cases(json.dumps(spec))[0]
