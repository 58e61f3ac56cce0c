"""llama.cpp's options from arguments and, where those are silent, from LLAMA_ARG_* variables."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import TypeVar

from capcheck import ENV, Deployment, Origin, Value
from capcheck.deployment import FieldPath
from capcheck.option_reader import OptionReader
from capcheck.options import Version
from capcheck_llama_cpp.table import HERE, TABLE

T = TypeVar("T")
ON, OFF = ("on", "true", "1", "enabled", "yes"), ("off", "false", "0", "disabled", "no")


@lru_cache(maxsize=1)
def variables() -> Mapping[str, tuple[str, ...]]:
    """The environment variables of each option."""
    found: dict[str, list[str]] = {}
    for line in (HERE / "environment.jsonl").read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        found.setdefault(row["option"], []).append(row["name"])
    return {option: tuple(names) for option, names in found.items()}


class Reading:
    """Options by canonical name. None: nobody says anything."""

    def __init__(self, deployment: Deployment, version: Version | None) -> None:
        self.deployment = deployment
        self.options = OptionReader(deployment, TABLE, version)
        self.place = self.options.place

    def has(self, name: str) -> bool:
        """Whether an argument or a variable gives the option."""
        return self.options.has(name) or self._variable(name) is not None

    def _variable(self, name: str) -> FieldPath | None:
        for variable in variables().get(name, ()):
            path = (*ENV, variable)
            if path in self.deployment.fields:
                return path
        return None

    def path(self, name: str) -> FieldPath:
        """Where the option is or would be written."""
        variable = None if self.options.has(name) else self._variable(name)
        return variable or self.options.path(name)

    def _of(self, name: str, read: Callable[..., Value[T] | None]) -> Value[T] | None:
        value = read(*self.path(name))
        if value is None and self.is_open:
            lost: Value[T] = self.options.settle(None, Value((), Origin("default", self.place)))
            return lost
        return value

    @property
    def is_open(self) -> bool:
        """Whether more arguments are given than could be read."""
        return self.options.is_open

    def text(self, name: str) -> Value[str] | None:
        """The option as text."""
        return self._of(name, self.deployment.text)

    def count(self, name: str) -> Value[int] | None:
        """The option as a whole number."""
        return self._of(name, self.deployment.count)

    def switch(self, name: str) -> Value[bool] | None:
        """A switch, or a word of those that stand for one."""
        found = self.text(name)
        if found is None:
            return None
        word = found.either("").strip().lower()
        if word in ON or (found.known and not word):
            return found.map(lambda _: True)
        return found.map(lambda _: False) if word in OFF else Value((), found.origin)
