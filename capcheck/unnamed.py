"""The engine of a deployment whose engine nobody knows: everything of it is unknown."""

from __future__ import annotations

from typing import Any

from capcheck.engine import Engine, KvLayout, Ledger, Plan, Release, Site
from capcheck.terms import Terms
from capcheck.values import Unknown, Value


class UnnamedEngine(Engine):
    """Stands where no engine plugin does, so that every check says why it is skipped."""

    name = "unknown"

    def __init__(self, lost: Value[Any]) -> None:
        self._lost: Value[Any] = Value((), lost.origin)

    @property
    def why(self) -> str:
        return self._lost.origin.why or "the engine is not known"

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        return (Release(text or "unknown", (), known=False, why=why or self.why),)

    def plan(self, site: Site) -> Plan:
        lost = self._lost
        return Plan(
            tensor=lost, pipeline=lost, data=lost, expert=lost, context=lost,
            max_request_tokens=lost, max_sequences=lost, max_step_tokens=lost,
            weight_dtype=lost, kv_dtype=lost, memory=lost, graphs=lost, chunked_prefill=lost,
            prefix_caching=lost, draft=None, draft_tokens=None, extra={},
        )  # fmt: skip

    def ledger(self, case: object, t: Terms) -> Ledger:
        raise Unknown(self._lost)

    def kv(self, case: object) -> KvLayout:
        raise Unknown(self._lost)
