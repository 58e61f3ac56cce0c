"""What an expression of the read program can turn out to be."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from vllm_reader.sources import Module

Value: TypeAlias = Any  # a Python value, or one of the classes below


@dataclass(frozen=True, eq=False)
class Opaque:
    """Something that only running the program could tell."""

    text: str


@dataclass(frozen=True, eq=False)
class Class:
    """A class that the release itself defines."""

    module: Module
    node: ast.ClassDef


@dataclass(frozen=True, eq=False)
class Function:
    """A function or method of the release."""

    module: Module
    node: ast.FunctionDef | ast.AsyncFunctionDef
    owner: Class | None = None
    bound: bool = False  # a class method, called through its class


@dataclass(frozen=True, eq=False)
class Alias:
    """A type alias, `Literal[...]` and the like, kept as syntax."""

    module: Module
    node: ast.expr


@dataclass(frozen=True, eq=False)
class Member:
    """One member of an enumeration."""

    name: str
    value: Value


@dataclass(frozen=True, eq=False)
class Instance:
    """A configuration object with its own defaults."""

    name: str


@dataclass(frozen=True, eq=False)
class Spec:
    """`field(...)` or pydantic's `Field(...)`."""

    keywords: Mapping[str, Value]


@dataclass(frozen=True, eq=False)
class Lambda:
    """A lambda, kept as syntax with its surroundings."""

    node: ast.Lambda
    scope: Scope


@dataclass(frozen=True, eq=False)
class Wrapped:
    """A converter that also takes the text None, or nothing."""

    inner: Value


@dataclass(frozen=True, eq=False)
class Argument:
    """One call of add_argument."""

    flags: tuple[str, ...]
    keywords: dict[str, Value]
    frontend: bool


class Parser:
    """Records what is added to it; an argument group is the parser itself."""

    def __init__(self) -> None:
        self.arguments: list[Argument] = []
        self.frontend = True

    def add(self, flags: list[Value], keywords: dict[str, Value]) -> None:
        """Records one option; flags that only running would tell are left out."""
        names = tuple(flag for flag in flags if isinstance(flag, str))
        self.arguments.append(Argument(names, keywords, self.frontend))


@dataclass(frozen=True, eq=False)
class Scope:
    """Where a name is looked up: the local names, then the module's."""

    module: Module
    names: dict[str, Value]
    owner: Class | None = None
