"""Launcher options wherever they are given: as arguments, else as environment variables."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from capcheck import ENV, Deployment, Value, default
from capcheck.deployment import FieldPath
from capcheck.option_reader import OptionReader
from capcheck_tgi.table import TABLE

T = TypeVar("T")
Read = Callable[..., Value[T] | None]

# Variables of SageMaker's entry point, and the options that it makes of them.
SAGEMAKER = {
    "model_id": "HF_MODEL_ID", "num_shard": "SM_NUM_GPUS", "quantize": "HF_MODEL_QUANTIZE",
    "revision": "HF_MODEL_REVISION", "trust_remote_code": "HF_MODEL_TRUST_REMOTE_CODE",
}  # fmt: skip


class Options:
    """One deployment's launcher options. An argument wins over the variable of that name."""

    def __init__(self, deployment: Deployment, version: tuple[int, ...] | None) -> None:
        self.deployment = deployment
        self.reader = OptionReader(deployment, TABLE, version)
        self.place = self.reader.place

    def path(self, name: str) -> FieldPath:
        """Where the option is written; where it is not, where it would be."""
        if self.reader.has(name):
            return self.reader.path(name)
        for variable in (SAGEMAKER.get(name, ""), name.upper()):
            if variable and (*ENV, variable) in self.deployment.fields:
                return (*ENV, variable)
        return (*ENV, name.upper()) if self.by_variables else self.reader.path(name)

    @property
    def by_variables(self) -> bool:
        """Whether options are given as variables and none as an argument."""
        given = any(value for value in self.deployment.under("engine", "args"))
        return not given and any(
            name.lower() in TABLE.names for (name, *_) in self.deployment.under(*ENV)
        )

    def has(self, name: str) -> bool:
        """Whether the option is written in either way."""
        return self.path(name) in self.deployment.fields

    def _read(self, name: str, read: Read[T]) -> Value[T] | None:
        value = read(*self.path(name))
        if value is None and self.reader.is_open:
            return Value((), self.reader.settle(None, default(0, self.place, "")).origin)
        return value

    def count(self, name: str) -> Value[int] | None:
        """The option as a whole number; None when it is not given."""
        return self._read(name, self.deployment.count)

    def number(self, name: str) -> Value[float] | None:
        """The option as a number; None when it is not given."""
        return self._read(name, self.deployment.number)

    def text(self, name: str) -> Value[str] | None:
        """The option as text; None when it is not given."""
        return self._read(name, self.deployment.text)

    def flag(self, name: str) -> Value[bool] | None:
        """The option as a switch; None when it is not given."""
        return self._read(name, self.deployment.flag)
