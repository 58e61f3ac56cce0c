"""Expressions that need no call: constants, names, containers, comprehensions."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable, Iterator
from typing import Any

from vllm_reader.sources import Module, Tree
from vllm_reader.values import (
    Alias,
    Class,
    Function,
    Lambda,
    Member,
    Opaque,
    Scope,
    Spec,
    Value,
)

OPERATORS: dict[type[ast.AST], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
    ast.BitOr: operator.or_,
    ast.LShift: operator.lshift,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda one, many: one in many,
    ast.NotIn: lambda one, many: one not in many,
}
BUILTINS: dict[str, Callable[..., Any]] = {
    function.__name__: function
    for function in (list, dict, set, tuple, sorted, str, int, float, bool, len, max, min)
}


def _opaque(*values: Value) -> bool:
    return any(isinstance(value, Opaque) for value in values)


class Expressions:
    """Values of expressions for one release. Subclasses add calls."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self._known: dict[tuple[str, str], Value] = {}

    def lookup(self, module: Module, name: str) -> Value:
        """What a module-level name stands for at run time."""
        key = (module.name, name)
        if key not in self._known:
            self._known[key] = Opaque(name)  # ends a circle
            self._known[key] = self._lookup(module, name)
        return self._known[key]

    def _lookup(self, module: Module, name: str) -> Value:
        found = self.tree.find(module.name, name)
        if found is None:
            source = module.imports.get(name)
            if source is None:
                return BUILTINS.get(name, Opaque(name))
            full = f"{source.module}.{source.name}".strip(".")
            return self.tree.module(full) or Opaque(full)
        home, node = found
        match node:
            case ast.ClassDef():
                return Class(home, node)
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                return Function(home, node)
            case ast.expr():
                value = self.evaluate(node, Scope(home, {}))
                return Alias(home, node) if isinstance(value, Opaque) else value
        return Opaque(name)

    def evaluate(self, node: ast.AST | None, scope: Scope) -> Value:
        """The value of an expression; Opaque where only running would tell."""
        if node is None:
            return Opaque("")
        method = getattr(self, f"_{type(node).__name__.lower()}", None)
        if method is None:
            return Opaque(ast.unparse(node))
        try:
            return method(node, scope)
        except (TypeError, KeyError, IndexError, ValueError, AttributeError):
            return Opaque(ast.unparse(node))

    def _constant(self, node: ast.Constant, _scope: Scope) -> Value:
        return node.value

    def _name(self, node: ast.Name, scope: Scope) -> Value:
        if node.id in scope.names:
            return scope.names[node.id]
        return self.lookup(scope.module, node.id)

    def _attribute(self, node: ast.Attribute, scope: Scope) -> Value:
        base = self.evaluate(node.value, scope)
        match base:
            case Class():
                return self.class_attribute(base, node.attr)
            case Module():
                return self.lookup(base, node.attr)
            case Member():
                return base.value if node.attr == "value" else base.name
        return Opaque(ast.unparse(node))

    def lineage(self, owner: Class) -> Iterator[Class]:
        """The class and those of its ancestors that the release defines, nearest first."""
        yield owner
        for base in owner.node.bases:
            value = self.evaluate(base, Scope(owner.module, {}))
            if isinstance(value, Class):
                yield from self.lineage(value)

    def members(self, owner: Class) -> list[Member]:
        """The members of an enumeration."""
        scope = Scope(owner.module, {}, owner)
        return [
            Member(target.id, self.evaluate(item.value, scope))
            for item in owner.node.body
            if isinstance(item, ast.Assign)
            for target in item.targets
            if isinstance(target, ast.Name) and not target.id.startswith("_")
        ]

    def class_attribute(self, owner: Class, name: str) -> Value:
        """A method, a field's default or an enumeration's member, looked up through the bases."""
        if name == "__name__":
            return owner.node.name
        for one in self.lineage(owner):
            for item in one.node.body:
                match item:
                    case ast.FunctionDef(name=found) if found == name:
                        marks = {ast.unparse(mark) for mark in item.decorator_list}
                        return Function(one.module, item, owner, "classmethod" in marks)
                    case ast.AnnAssign(target=ast.Name(id=found), value=value) if found == name:
                        plain = self.evaluate(value, Scope(one.module, {}))
                        return plain.keywords["default"] if isinstance(plain, Spec) else plain
        member = next((m for m in self.members(owner) if m.name == name), None)
        return member or Opaque(f"{owner.node.name}.{name}")

    def items(self, nodes: list[ast.expr], scope: Scope) -> list[Value]:
        """The values of several expressions; starred ones are spread."""
        values: list[Value] = []
        for node in nodes:
            if isinstance(node, ast.Starred):
                value = self.evaluate(node.value, scope)
                values += [value] if isinstance(value, Opaque) else list(value)
            else:
                values.append(self.evaluate(node, scope))
        return values

    def _list(self, node: ast.List, scope: Scope) -> Value:
        return self.items(node.elts, scope)

    def _tuple(self, node: ast.Tuple, scope: Scope) -> Value:
        return tuple(self.items(node.elts, scope))

    def _set(self, node: ast.Set, scope: Scope) -> Value:
        return set(self.items(node.elts, scope))

    def _dict(self, node: ast.Dict, scope: Scope) -> Value:
        result: dict[Value, Value] = {}
        for key, value in zip(node.keys, node.values, strict=True):
            if key is None:
                result |= self.evaluate(value, scope)
            else:
                result[self.evaluate(key, scope)] = self.evaluate(value, scope)
        return result

    def _joinedstr(self, node: ast.JoinedStr, scope: Scope) -> Value:
        parts: list[str] = []
        for part in node.values:
            inner = part.value if isinstance(part, ast.FormattedValue) else part
            value = self.evaluate(inner, scope)
            if _opaque(value):
                return Opaque(ast.unparse(node))
            parts.append(str(value))
        return "".join(parts)

    def _subscript(self, node: ast.Subscript, scope: Scope) -> Value:
        base = self.evaluate(node.value, scope)
        if isinstance(base, type) or not isinstance(base, list | dict | tuple | str):
            return Opaque(ast.unparse(node))
        return base[self.evaluate(node.slice, scope)]

    def _unaryop(self, node: ast.UnaryOp, scope: Scope) -> Value:
        value = self.evaluate(node.operand, scope)
        if _opaque(value):
            return Opaque(ast.unparse(node))
        return not value if isinstance(node.op, ast.Not) else -value

    def _binop(self, node: ast.BinOp, scope: Scope) -> Value:
        left, right = self.evaluate(node.left, scope), self.evaluate(node.right, scope)
        if _opaque(left, right) or isinstance(left, type):
            return Opaque(ast.unparse(node))
        return OPERATORS[type(node.op)](left, right)

    def _boolop(self, node: ast.BoolOp, scope: Scope) -> Value:
        values = [self.evaluate(value, scope) for value in node.values]
        if _opaque(*values):
            return Opaque(ast.unparse(node))
        return all(values) if isinstance(node.op, ast.And) else next(filter(bool, values), False)

    def _compare(self, node: ast.Compare, scope: Scope) -> Value:
        left = self.evaluate(node.left, scope)
        right = self.evaluate(node.comparators[0], scope)
        if _opaque(left, right) or len(node.ops) > 1:
            return Opaque(ast.unparse(node))
        return OPERATORS[type(node.ops[0])](left, right)

    def _ifexp(self, node: ast.IfExp, scope: Scope) -> Value:
        test = self.evaluate(node.test, scope)
        if _opaque(test):
            return Opaque(ast.unparse(node))
        return self.evaluate(node.body if test else node.orelse, scope)

    def _lambda(self, node: ast.Lambda, scope: Scope) -> Value:
        return Lambda(node, scope)

    def _listcomp(self, node: ast.ListComp | ast.GeneratorExp, scope: Scope) -> Value:
        loop = node.generators[0]
        many = self.evaluate(loop.iter, scope)
        if isinstance(many, Class):
            many = self.members(many)
        inner = Scope(scope.module, dict(scope.names), scope.owner)
        values: list[Value] = []
        for one in many:
            self.assign(loop.target, one, inner)
            if all(self.evaluate(test, inner) is True for test in loop.ifs):
                values.append(self.evaluate(node.elt, inner))
        return values

    def _generatorexp(self, node: ast.GeneratorExp, scope: Scope) -> Value:
        return self._listcomp(node, scope)

    def assign(self, target: ast.expr, value: Value, scope: Scope) -> None:
        """Binds a value to a name, an item or several names."""
        match target:
            case ast.Name(id=name):
                scope.names[name] = value
            case ast.Tuple(elts=parts) if isinstance(value, tuple | list):
                for part, item in zip(parts, value, strict=True):
                    self.assign(part, item, scope)
            case ast.Subscript(value=base, slice=key):
                holder = self.evaluate(base, scope)
                if isinstance(holder, dict):
                    holder[self.evaluate(key, scope)] = value
