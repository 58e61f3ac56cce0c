"""What tests of `capcheck models add` share: running it, its records, and checks with them."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from capcheck.schemas_home import read_schema

OWN = "capcheck-models.yaml"
SPEC = """\
apiVersion: capcheck/v1
kind: Deployment
name: acme
model: {id: %s}
hardware: {accelerator: nvidia/l4, count: 1}
engine: {name: vllm, version: "0.11.0", args: {max_model_len: 4096}}
"""
ROPE = 4096 * 64 * 2  # what vLLM keeps beside the weights: sines and cosines of each position
Run = Callable[..., subprocess.CompletedProcess[str]]


def records(root: Path, name: str = OWN) -> list[dict[str, Any]]:
    found = yaml.safe_load((root / name).read_text(encoding="utf-8"))
    for one in found:
        jsonschema.validate(one, read_schema("model"))
    return list(found)


def checked(run: Run, root: Path, model: str) -> dict[str, Any]:
    """The report on a spec that names a model."""
    (root / "spec.yaml").write_text(SPEC % model, encoding="utf-8")
    done = run("check", "spec.yaml", "--format", "json", code=None)
    (deployment,) = json.loads(done.stdout)["deployments"]
    return dict(deployment)
