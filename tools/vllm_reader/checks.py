"""Limits that a release checks in its configuration classes: `if self.x > 1.0: raise`."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import Any

from vllm_reader.sources import Tree

OWNERS = (
    "ModelConfig",
    "CacheConfig",
    "ParallelConfig",
    "SchedulerConfig",
    "LoRAConfig",
    "PromptAdapterConfig",
)
RENAMED = {"cache_dtype": "kv_cache_dtype", "policy": "scheduling_policy"}
ALLOWED_WHEN_NOT: dict[type[ast.cmpop], str] = {
    ast.Gt: "le",
    ast.GtE: "lt",
    ast.Lt: "ge",
    ast.LtE: "gt",
}


def coded_checks(tree: Tree) -> dict[str, dict[str, Any]]:
    """Bounds and choices by option, where the check is a single comparison with constants."""
    found: dict[str, dict[str, Any]] = {}
    for owner in OWNERS:
        definition = tree.find("vllm.config", owner)
        if definition is None or not isinstance(definition[1], ast.ClassDef):
            continue
        for function in definition[1].body:
            if isinstance(function, ast.FunctionDef):
                for name, limit in _limits(function):
                    found.setdefault(RENAMED.get(name, name), {}).update(limit)
    return found


def _limits(function: ast.FunctionDef) -> Iterator[tuple[str, dict[str, Any]]]:
    local: dict[str, ast.expr] = {}
    for node in function.body:  # not what another condition guards
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                local[name] = value
            case ast.If(
                test=ast.Compare(
                    left=ast.Attribute(value=ast.Name(id="self"), attr=name),
                    ops=[op],
                    comparators=[other],
                ),
                body=[*_, ast.Raise()],
            ):
                limit = local.get(other.id, other) if isinstance(other, ast.Name) else other
                allowed = _allowed(op, limit)
                if allowed:
                    yield name, allowed


def _allowed(op: ast.cmpop, limit: ast.expr) -> dict[str, Any]:
    try:
        value = ast.literal_eval(limit)
    except ValueError:
        return {}
    if isinstance(value, int | float) and type(op) in ALLOWED_WHEN_NOT:
        return {"bounds": {ALLOWED_WHEN_NOT[type(op)]: float(value)}}
    if isinstance(op, ast.NotIn) and isinstance(value, list | tuple | set):
        return {"choices": sorted(str(one) for one in value if one is not None)}
    return {}
