"""Follows code that registers command line options, on its syntax tree, without running it.

Enough of Python for that purpose: loops over known containers, dict and list methods, calls of
functions that are handed the parser. Whatever else a program does is `Opaque`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from vllm_reader.expressions import BUILTINS, Expressions
from vllm_reader.sources import Module, Tree
from vllm_reader.values import (
    Alias,
    Class,
    Function,
    Instance,
    Opaque,
    Parser,
    Scope,
    Spec,
    Value,
    Wrapped,
)

CONTAINERS = (str, list, dict, set, tuple)
OPTIONAL_CONVERTERS = ("optional_type", "optional_arg", "optional_str")


class _Return(Exception):
    def __init__(self, value: Value) -> None:
        self.value = value


class Evaluator(Expressions):
    """Expressions with calls, and statements. `kwargs_of` stands in for vLLM's get_kwargs."""

    def __init__(self, tree: Tree, kwargs_of: Callable[[Evaluator, Class], Value]) -> None:
        super().__init__(tree)
        self._kwargs_of = kwargs_of

    def _call(self, node: ast.Call, scope: Scope) -> Value:
        words = self._keywords(node.keywords, scope)
        arguments = self.items(node.args, scope)
        if isinstance(node.func, ast.Attribute):
            if ast.unparse(node.func.value) == "super()":
                return self._ancestor(node.func.attr, arguments, words, scope)
            base = self.evaluate(node.func.value, scope)
            if isinstance(base, Parser):
                return self._on_parser(base, node.func.attr, arguments, words)
            if isinstance(base, CONTAINERS):
                return getattr(base, node.func.attr)(*arguments, **words)
        function = self.evaluate(node.func, scope)
        name = ast.unparse(node.func).rpartition(".")[2]
        if name == "FlexibleArgumentParser":
            return Parser()
        if isinstance(function, Class):
            return Instance(function.node.name)
        known = getattr(self, f"_known_{name.lower()}", None)
        if known is not None:
            return known(arguments, words)
        if name in OPTIONAL_CONVERTERS:
            return Wrapped(arguments[0])
        if name in BUILTINS and function is BUILTINS[name]:
            return function(*arguments, **words)
        if isinstance(function, Function) and self._worth_running(name, arguments, words):
            return self.run(function, arguments, words)
        return Opaque(ast.unparse(node))

    @staticmethod
    def _worth_running(name: str, arguments: list[Value], words: dict[str, Value]) -> bool:
        handed = [*arguments, *words.values()]
        return any(isinstance(item, Parser) for item in handed) or "cli_kwargs" in name

    def _known_get_kwargs(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return self._kwargs_of(self, arguments[0])

    def _known_field(self, arguments: list[Value], words: dict[str, Value]) -> Value:
        return Spec({"default": arguments[0], **words} if arguments else words)

    def _known_get_field(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return Spec({"of": arguments[0], "name": arguments[1]})

    def _known_get_args(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return self.literals(arguments[0])

    def _known_parse_type(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return arguments[0]

    def _known_deepcopy(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return dict(arguments[0])

    def _known_cast(self, arguments: list[Value], _words: dict[str, Value]) -> Value:
        return arguments[1]

    def literals(self, alias: Value) -> Value:
        """The values of a Literal alias, nested ones spread. Raises TypeError for another one."""
        match alias:
            case Alias(node=ast.Subscript(value=base, slice=inner)) if (
                ast.unparse(base).rpartition(".")[2] == "Literal"
            ):
                items = inner.elts if isinstance(inner, ast.Tuple) else [inner]
                found: list[Value] = []
                for value in self.items(items, Scope(alias.module, {})):
                    found += self.literals(value) if isinstance(value, Alias) else [value]
                return found
        raise TypeError(f"not a Literal: {alias}")

    def _ancestor(
        self, name: str, arguments: list[Value], words: dict[str, Value], scope: Scope
    ) -> Value:
        if scope.owner:
            for one in list(self.lineage(scope.owner))[1:]:
                target = self.class_attribute(one, name)
                if isinstance(target, Function):
                    return self.run(target, arguments, words)
        return Opaque(f"super().{name}()")

    @staticmethod
    def _on_parser(
        parser: Parser, name: str, arguments: list[Value], words: dict[str, Value]
    ) -> Value:
        if name == "add_argument":
            parser.add(arguments, words)
        if name in ("add_argument_group", "add_mutually_exclusive_group", "add_parser"):
            return parser
        return Opaque(f"parser.{name}()")

    def _keywords(self, nodes: list[ast.keyword], scope: Scope) -> dict[str, Value]:
        words: dict[str, Value] = {}
        for node in nodes:
            value = self.evaluate(node.value, scope)
            if node.arg is not None:
                words[node.arg] = value
            elif isinstance(value, dict):
                words |= value
        return words

    def run(self, function: Function, arguments: list[Value], words: dict[str, Value]) -> Value:
        """Follows a function of the release and gives what it returns."""
        parameters = function.node.args
        names = [parameter.arg for parameter in (*parameters.posonlyargs, *parameters.args)]
        handed = [function.owner, *arguments] if function.bound else arguments
        local: dict[str, Value] = {}
        scope = Scope(function.module, local, function.owner)
        defaults = parameters.defaults
        for name, node in zip(names[len(names) - len(defaults) :], defaults, strict=True):
            local[name] = self.evaluate(node, scope)
        local.update(zip(names, handed, strict=False))
        local.update(words)
        try:
            self.statements(function.node.body, scope)
        except _Return as answer:
            return answer.value
        return None

    def statements(self, body: list[ast.stmt], scope: Scope) -> None:
        """Follows statements in order; the body of an undecidable `if` is taken."""
        for node in body:
            self._statement(node, scope)

    def _statement(self, node: ast.stmt, scope: Scope) -> None:
        match node:
            case ast.Expr(value=value):
                self.evaluate(value, scope)
            case ast.Assign(targets=targets, value=value):
                for target in targets:
                    self.assign(target, self.evaluate(value, scope), scope)
            case ast.AnnAssign(target=target, value=ast.expr() as value):
                self.assign(target, self.evaluate(value, scope), scope)
            case ast.AugAssign(target=target, op=op, value=value):
                both = ast.BinOp(target, op, value)
                self.assign(target, self.evaluate(both, scope), scope)
            case ast.Return(value=value):
                raise _Return(self.evaluate(value, scope))
            case ast.Delete(targets=targets):
                for target in targets:
                    self._delete(target, scope)
            case ast.With(body=inner) | ast.Try(body=inner):
                self.statements(inner, scope)
            case ast.ImportFrom(module=str() as origin, names=names, level=0):
                self._import(origin, names, scope)
            case ast.If() | ast.For():
                self._compound(node, scope)
            case _:
                return

    def _compound(self, node: ast.If | ast.For, scope: Scope) -> None:
        if isinstance(node, ast.If):
            taken = self.evaluate(node.test, scope)
            self.statements(node.body if taken else node.orelse, scope)
            return
        many = self.evaluate(node.iter, scope)
        if isinstance(many, Opaque | Alias | Class):
            return
        for one in many:
            self.assign(node.target, one, scope)
            self.statements(node.body, scope)

    def _import(self, origin: str, names: list[ast.alias], scope: Scope) -> None:
        module = self.tree.module(origin)
        for alias in names:
            found: Value = Opaque(f"{origin}.{alias.name}")
            if isinstance(module, Module):
                found = self.lookup(module, alias.name)
            scope.names[alias.asname or alias.name] = found

    def _delete(self, target: ast.expr, scope: Scope) -> None:
        if isinstance(target, ast.Subscript):
            holder = self.evaluate(target.value, scope)
            if isinstance(holder, dict):
                holder.pop(self.evaluate(target.slice, scope), None)
