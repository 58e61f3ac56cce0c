"""Type hints of configuration fields: what they allow, read off the syntax."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from typing import NamedTuple

from vllm_reader.evaluator import Evaluator
from vllm_reader.sources import Module
from vllm_reader.values import (
    Alias,
    Class,
    Function,
    Instance,
    Lambda,
    Opaque,
    Scope,
    Spec,
    Value,
)

PLAIN = {"bool", "int", "float", "str", "dict", "list", "tuple", "set"}
SPELLINGS = {
    "None": "none",
    "Dict": "dict",
    "Mapping": "dict",
    "List": "list",
    "Sequence": "list",
    "Tuple": "tuple",
    "Set": "set",
}
TRANSPARENT = {"Optional", "Union", "Annotated", "SkipValidation", "Final"}
NOT_A_FIELD = {"ClassVar", "InitVar"}


class Hint(NamedTuple):
    """One possibility of a type hint."""

    kind: str  # bool int float str none dict list tuple set literal dataclass enum other
    item: tuple[Hint, ...] = ()  # of a list, tuple or set
    values: tuple[Value, ...] = ()  # of a literal or an enumeration
    owner: Class | None = None  # of a dataclass
    spec: Spec | None = None  # pydantic's Field inside Annotated


def _last_name(node: ast.AST) -> str:
    return ast.unparse(node).rpartition(".")[2]


def _is_dataclass(owner: Class) -> bool:
    marks = {
        _last_name(mark.func if isinstance(mark, ast.Call) else mark)
        for mark in owner.node.decorator_list
    }
    return bool(marks & {"dataclass", "config", "pydantic_dataclass"})


def _of_class(evaluator: Evaluator, owner: Class) -> Hint:
    if _is_dataclass(owner):
        return Hint("dataclass", owner=owner)
    bases = {_last_name(base) for one in evaluator.lineage(owner) for base in one.node.bases}
    if bases & {"Enum", "IntEnum", "StrEnum"}:
        values = tuple(
            member.value if isinstance(member.value, int) else member.name
            for member in evaluator.members(owner)
        )
        return Hint("enum", values=values)
    if any(base.startswith(("dict[", "dict")) for base in bases):
        return Hint("dict")
    return Hint("other")


def hints(evaluator: Evaluator, node: ast.AST, module: Module) -> Iterator[Hint]:
    """Every possibility of a type hint; unions are spread, aliases followed."""
    match node:
        case ast.Constant(value=None):
            yield Hint("none")
        case ast.Constant(value=str() as text):
            yield from hints(evaluator, ast.parse(text, mode="eval").body, module)
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            yield from hints(evaluator, left, module)
            yield from hints(evaluator, right, module)
        case ast.Subscript(value=base, slice=inner):
            yield from _subscript(evaluator, node, _last_name(base), inner, module)
        case ast.Name() | ast.Attribute():
            yield from _name(evaluator, node, module)
        case _:
            yield Hint("other")


def _name(evaluator: Evaluator, node: ast.expr, module: Module) -> Iterator[Hint]:
    name = _last_name(node)
    name = SPELLINGS.get(name, name)
    value = evaluator.evaluate(node, Scope(module, {}))
    match value:
        case Alias():
            yield from hints(evaluator, value.node, value.module)
        case Class():
            yield _of_class(evaluator, value)
        case _ if name in PLAIN or name == "none":
            yield Hint(name)
        case _:
            yield Hint("other")


def _subscript(
    evaluator: Evaluator, node: ast.Subscript, base: str, inner: ast.expr, module: Module
) -> Iterator[Hint]:
    parts = inner.elts if isinstance(inner, ast.Tuple) else [inner]
    base = SPELLINGS.get(base, base)
    if base == "Literal":
        yield Hint("literal", values=tuple(evaluator.literals(Alias(module, node))))
    elif base == "Annotated":
        spec = next(
            (
                value
                for part in parts[1:]
                if isinstance(value := evaluator.evaluate(part, Scope(module, {})), Spec)
            ),
            None,
        )
        for hint in hints(evaluator, parts[0], module):
            yield hint._replace(spec=spec or hint.spec)
    elif base == "Optional":
        yield from hints(evaluator, inner, module)
        yield Hint("none")
    elif base in TRANSPARENT:
        for part in parts:
            yield from hints(evaluator, part, module)
    elif base in ("list", "tuple", "set"):
        yield Hint(base, item=tuple(hints(evaluator, parts[0], module)))
    elif base == "dict":
        yield Hint("dict")
    else:
        yield Hint("other")


class Field(NamedTuple):
    """One field of a configuration class."""

    name: str
    hints: tuple[Hint, ...]
    default: Value  # a plain value, Instance or Opaque
    bounds: dict[str, float]  # any of ge, gt, le, lt


def _default(evaluator: Evaluator, value: Value) -> Value:
    if not isinstance(value, Spec):
        return value
    words = value.keywords
    if "of" in words:
        fields = {field.name: field for field in fields_of(evaluator, words["of"])}
        return fields[words["name"]].default
    if "default" in words:
        return words["default"]
    factory = words.get("default_factory")
    match factory:
        case Class():
            return Instance(factory.node.name)
        case Lambda():
            return evaluator.evaluate(factory.node.body, factory.scope)
        case type():
            return factory()
        case Function():
            return Opaque(f"{factory.node.name}()")
        case _:
            return Opaque("a factory")


def _bounds(spec: Spec | None) -> dict[str, float]:
    words = spec.keywords if spec else {}
    return {
        key: float(words[key])
        for key in ("ge", "gt", "le", "lt")
        if isinstance(words.get(key), int | float)
    }


def fields_of(evaluator: Evaluator, owner: Class) -> Iterator[Field]:
    """The fields of a configuration class, its ancestors' first, as dataclasses.fields gives."""
    found: dict[str, Field] = {}
    for one in reversed(list(evaluator.lineage(owner))):
        for item in one.node.body:
            match item:
                case ast.AnnAssign(target=ast.Name(id=name), annotation=hint, value=node):
                    outer = hint.value if isinstance(hint, ast.Subscript) else hint
                    if _last_name(outer) in NOT_A_FIELD:
                        continue
                    value = evaluator.evaluate(node, Scope(one.module, {})) if node else None
                    spec = value if isinstance(value, Spec) else None
                    if spec and spec.keywords.get("init") is False:
                        continue
                    kinds = tuple(hints(evaluator, hint, one.module))
                    inner = next((kind.spec for kind in kinds if kind.spec), None)
                    bounds = _bounds(inner) | _bounds(spec)
                    default = _default(evaluator, value)
                    found[name] = Field(name, kinds, default, bounds)
    yield from found.values()
