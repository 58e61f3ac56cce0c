"""Environment variables of a release: vllm/envs.py, its table and its type declarations."""

from __future__ import annotations

import ast
from pathlib import Path
from typing import Any

from vllm_reader.evaluator import Evaluator
from vllm_reader.registry import Reading
from vllm_reader.sources import Module, Tree
from vllm_reader.values import Opaque, Scope

ENVS, TABLE, PREFIX = "vllm.envs", "environment_variables", "VLLM_"
READERS = ("getenv", "get")
CHOOSERS = ("env_with_choices", "env_list_with_choices", "env_set_with_choices")
ARITHMETIC = Evaluator(Tree(Path()), lambda _evaluator, _owner: None)
NOWHERE = Scope(Module("arithmetic", {}, {}, []), {})
TRUE, FALSE = ("1", "true"), ("0", "false", "")


def variables(tree: Tree) -> list[Reading]:
    """Every VLLM_ variable. Raises LookupError if the release has no table of them."""
    module = tree.module(ENVS)
    table = module.definitions.get(TABLE) if module else None
    if module is None or not isinstance(table, ast.Dict):
        raise LookupError(f"no environment variables under {tree.root}")
    declared = _declared(tree)
    readings = []
    for key, value in zip(table.keys, table.values, strict=True):
        if isinstance(key, ast.Constant) and str(key.value).startswith(PREFIX):
            name = str(key.value)
            readings.append(_reading(name, value, declared.get(name), module))
    return readings


def _declared(tree: Tree) -> dict[str, ast.AnnAssign]:
    """The declarations under `if TYPE_CHECKING:`, which only type checkers read."""
    path = tree.root.joinpath(*ENVS.split(".")).with_suffix(".py")
    found: dict[str, ast.AnnAssign] = {}
    for node in ast.parse(path.read_text("utf-8")).body:
        if isinstance(node, ast.If):
            for line in node.body:
                if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
                    found[line.target.id] = line
    return found


def _reading(name: str, node: ast.expr, declared: ast.AnnAssign | None, module: Module) -> Reading:
    kind = _kind(declared)
    shape: dict[str, Any] = {"type": kind}
    source: ast.AST = node
    if isinstance(node, ast.Name):
        source = module.definitions.get(node.id, node)
    default = _default(name, source, declared, kind)
    for call in ast.walk(source):
        if isinstance(call, ast.Call) and ast.unparse(call.func) in CHOOSERS:
            values = _constant(call.args[2]) if len(call.args) > 2 else None
            if isinstance(values, list):
                folded = any(
                    word.arg == "case_sensitive" and _constant(word.value) is False
                    for word in call.keywords
                )
                shape = {"type": "choice", "choices": [str(one) for one in values]}
                shape |= {"folded": True} if folded else {}
    return Reading(name, "environment", default, shape)


def _kind(declared: ast.AnnAssign | None) -> str:
    text = ast.unparse(declared.annotation) if declared else "str"
    parts = {part.strip() for part in text.removeprefix("Optional[").rstrip("]").split("|")}
    for name, kind in (("bool", "bool"), ("int", "int"), ("float", "float")):
        if name in parts and not parts & {"str"}:
            return kind
    return "text"


def _constant(node: ast.AST) -> Any:
    """The value of an expression of constants; Ellipsis for any other."""
    value = ARITHMETIC.evaluate(node, NOWHERE)
    return ... if isinstance(value, Opaque) else value


def _default(name: str, source: ast.AST, declared: ast.AnnAssign | None, kind: str) -> Any:
    for call in ast.walk(source):
        if not isinstance(call, ast.Call) or not call.args or _constant(call.args[0]) != name:
            continue
        last = ast.unparse(call.func).rpartition(".")[2]
        if last in (*READERS, *CHOOSERS):
            value = _constant(call.args[1]) if len(call.args) > 1 else None
            if value is ...:
                return {"computed": ast.unparse(call.args[1])}
            return _typed(value, kind)
    if declared is not None and declared.value is not None:
        value = _constant(declared.value)
        if value is not ...:
            return value
    return {"computed": ast.unparse(source)[:60]}


def _typed(value: Any, kind: str) -> Any:
    if not isinstance(value, str):
        return value
    text = value.strip().lower()
    if kind == "bool" and text in (*TRUE, *FALSE):
        return text in TRUE
    if kind in ("int", "float"):
        number = _constant(ast.parse(text or "None", mode="eval").body)
        return number if isinstance(number, int | float) else value
    return value
