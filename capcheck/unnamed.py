"""The engine of a deployment whose engine nobody knows: everything of it is unknown."""

from __future__ import annotations

from typing import Any

from capcheck.engine import Engine, KvLayout, Ledger, Plan, Release, Site, blank_plan
from capcheck.terms import Terms
from capcheck.values import Unknown, Value


class UnnamedEngine(Engine):
    """Stands where no engine plugin does, so that every check says why it is skipped."""

    name = "unknown"

    def __init__(self, lost: Value[Any]) -> None:
        self._lost: Value[Any] = Value((), lost.origin)

    @property
    def why(self) -> str:
        """Why the engine is not known."""
        return self._lost.origin.why or "the engine is not known"

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        """One that is not known."""
        return (Release(text or "unknown", (), known=False, why=why or self.why),)

    def plan(self, site: Site) -> Plan:
        """A blank one."""
        return blank_plan(self._lost)

    def ledger(self, case: object, t: Terms) -> Ledger:
        """Raises Unknown."""
        raise Unknown(self._lost, "engine")

    def kv(self, case: object) -> KvLayout:
        """Raises Unknown."""
        raise Unknown(self._lost, "engine")
