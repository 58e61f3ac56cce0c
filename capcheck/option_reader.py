"""Reads an engine's options from a deployment, whatever spelling they were written in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from capcheck.deployment import ARGS, Deployment, FieldPath
from capcheck.launch import OPEN_ARGS
from capcheck.source import to_plain
from capcheck.values import Value, default

if TYPE_CHECKING:
    from capcheck.options import OptionTable, Version

T = TypeVar("T")


class OptionReader:
    """Options by canonical name. An absent option is its default, unless arguments are open."""

    def __init__(
        self, deployment: Deployment, table: OptionTable | None, version: Version | None
    ) -> None:
        self.deployment = deployment
        self._names: dict[str, str] = {}
        self._negated: set[str] = set()  # written as --no-x, or as the name that says the opposite
        self.place = deployment.place_for(*ARGS)
        self._open = deployment.fields.get(OPEN_ARGS)
        self._table = table
        self._version = version
        for key in filter(None, deployment.under(*ARGS)):  # () is `args` that is no mapping
            written = key[0]
            name = written
            if table is not None:
                standing = table.resolve(written, version)
                name = standing.option.name if standing.option is not None else written
                if standing.negated:
                    self._negated.add(name)
            self._names[name] = written

    def path(self, name: str, *more: str) -> FieldPath:
        """Where the option is or would be written."""
        return (*ARGS, self._names.get(name, name), *more)

    def has(self, name: str) -> bool:
        """Whether the option is written."""
        return name in self._names

    @property
    def is_open(self) -> bool:
        """Whether more arguments are given than could be read: an absent option may be there."""
        return self._open is not None

    def _refused(self, name: str) -> str:
        """What the engine expects in place of a value that it refuses; "" when it takes it."""
        value = self.deployment.fields.get(self.path(name))
        if self._table is None or value is None or not value.known:
            return ""
        plain = to_plain(value.options[0])
        return self._table.check_value(name, plain, self._version) or ""

    def _or_default(self, name: str, value: Value[T] | None, otherwise: T, why: str) -> Value[T]:
        if value is not None:
            refused = self._refused(name) if value.known else ""
            return (
                Value((), value.origin._replace(why=f"{name} is not {refused}"))
                if refused
                else value
            )
        if self._open is not None:
            return Value((), self._open.origin)
        return default(otherwise, self.place, why)

    def text(self, name: str, otherwise: str, why: str = "default") -> Value[str]:
        """The option as text."""
        return self._or_default(name, self.deployment.text(*self.path(name)), otherwise, why)

    def count(self, name: str, otherwise: int, why: str = "default") -> Value[int]:
        """The option as a whole number; `32k` is understood."""
        return self._or_default(name, self.deployment.count(*self.path(name)), otherwise, why)

    def number(self, name: str, otherwise: float, why: str = "default") -> Value[float]:
        """The option as a number."""
        return self._or_default(name, self.deployment.number(*self.path(name)), otherwise, why)

    def flag(self, name: str, otherwise: bool, why: str = "default") -> Value[bool]:
        """The option as a switch."""
        value = self._or_default(name, self.deployment.flag(*self.path(name)), otherwise, why)
        return value.map(lambda on: not on) if name in self._negated else value

    def written_text(self, name: str, *more: str) -> Value[str] | None:
        """The option as written; None when it is absent and nothing else can hold it."""
        value = self.deployment.text(*self.path(name, *more))
        return Value((), self._open.origin) if value is None and self._open else value

    def written_count(self, name: str, *more: str) -> Value[int] | None:
        """As `written_text`, a whole number."""
        value = self.deployment.count(*self.path(name, *more))
        return Value((), self._open.origin) if value is None and self._open else value

    def env(self, name: str) -> str | None:
        """An environment variable's text; None when it is absent or not known."""
        value = self.deployment.text("engine", "env", name)
        return value.either(None) if value is not None else None

    def settle(self, value: Value[T] | None, otherwise: Value[Any]) -> Value[Any]:
        """`value` when there is one, else `otherwise`; unknown when arguments are open."""
        if value is not None:
            return value
        return Value((), self._open.origin) if self._open is not None else otherwise
