"""Deployments of SGLang as text."""

from __future__ import annotations

import json
from typing import Any


def spec(
    model: str,
    accelerator: str,
    devices: int = 1,
    release: str | None = None,
    env: dict[str, str] | None = None,
    **args: Any,
) -> str:
    engine: dict[str, Any] = {"name": "sglang", "args": args}
    if release:
        engine["version"] = release
    if env:
        engine["env"] = env
    return json.dumps(
        {
            "apiVersion": "capcheck/v1",
            "kind": "Deployment",
            "name": "case",
            "model": {"id": model},
            "hardware": {"accelerator": accelerator, "count": devices},
            "engine": engine,
        }
    )
