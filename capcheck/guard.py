"""Calls into plugins that never take the run down: what they raise is collected and named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, TypeVar

T = TypeVar("T")
U = TypeVar("U")

# A plugin that calls sys.exit must not decide the run's exit code. ^C stays the user's.
RAISED = (Exception, SystemExit)


class PluginError(NamedTuple):
    """A fault of a plugin: reported, the run exits 2."""

    plugin: str
    message: str


def describe(error: BaseException) -> str:
    """One line: what was raised and where, in the innermost frame."""
    trace = error.__traceback__
    where = ""
    while trace is not None:
        code = trace.tb_frame.f_code
        where = f" at {Path(code.co_filename).name}:{trace.tb_lineno} in {code.co_name}"
        trace = trace.tb_next
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text}{where}" if text else f"{type(error).__name__}{where}"


class Guard:
    """Knows whose each thing is, runs what plugins bring, and collects their faults."""

    def __init__(self) -> None:
        self.errors: list[PluginError] = []
        self._owners: dict[int, tuple[str, object]] = {}  # the thing is kept, so its id stays its

    def own(self, thing: object, plugin: str) -> None:
        """Remember which plugin brought a thing."""
        self._owners[id(thing)] = plugin, thing

    def owner(self, thing: object) -> str:
        """The plugin that brought a thing; its own module when nobody told."""
        found = self._owners.get(id(thing))
        return found[0] if found is not None else type(thing).__module__

    def fault(self, plugin: str, message: str) -> None:
        """Report a fault once."""
        error = PluginError(plugin, message)
        if error not in self.errors:
            self.errors.append(error)

    def failed(self, thing: object, what: str, error: BaseException) -> None:
        """Report what a plugin's thing raised."""
        self.fault(self.owner(thing), f"{what}: {describe(error)}")

    def call(self, thing: object, what: str, call: Callable[[], T], otherwise: U) -> T | U:
        """What `call` gives; `otherwise` when it raises, which is reported as the owner's fault."""
        try:
            return call()
        except RAISED as error:
            self.failed(thing, what, error)
            return otherwise
