"""The catalogue: an id or a name to one record, from shelves that plugins and users bring."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from capcheck.device_names import PARTS, DeviceNames, Match
from capcheck.hardware import Accelerator, RecordError, read_accelerator
from capcheck.shelf import CONFIGURATION, SHIPPED, VENDOR, CatalogueError, Found, Shelf, Stacks

__all__ = [
    "CONFIGURATION", "SHIPPED", "VENDOR", "Catalogue", "CatalogueError", "Match", "Shelf",
]  # fmt: skip


class Catalogue:
    """Records by id and by name. No file is read before the first question of its kind."""

    def __init__(self, shelves: Iterable[Shelf]) -> None:
        self._stacks = Stacks(shelves)
        self._names = DeviceNames(self._stacks)
        self._matches: dict[tuple[str, str], Match] = {}

    def _found(self, kind: str, identity: str) -> Found:
        found = self._stacks.winner(kind, identity)
        if found is None:
            raise KeyError(identity)
        return found

    def record(self, kind: str, identity: str) -> Mapping[str, Any]:
        """The record with that id. Raises KeyError; CatalogueError when two claim it."""
        return self._found(kind, identity).record

    def source(self, kind: str, identity: str) -> Shelf:
        """The shelf of the record that counts. Raises KeyError, CatalogueError."""
        return self._found(kind, identity).shelf

    def own(self, kind: str) -> dict[str, Shelf]:
        """The ids of records that override what plugins ship, each with its file."""
        return {
            found.record["id"]: page.shelf
            for page in self._stacks.pages(kind)
            if page.shelf.rank > SHIPPED
            for found in page.all()
            if isinstance(found.record.get("id"), str)
        }

    def holding(self, kind: str, text: str) -> tuple[Mapping[str, Any], ...]:
        """The records of a kind in which `text` is a whole string, overridden ones too."""
        return tuple(one.record for one in self._stacks.holding(kind, text))

    def ids(self, kind: str) -> tuple[str, ...]:
        """The ids of a kind, sorted."""
        have = {one.record.get("id") for one in self._stacks.all(kind)}
        return tuple(sorted(one for one in have if isinstance(one, str)))

    def accelerator(self, identity: str) -> Accelerator:
        """The part of an id, as a match gives it. Raises KeyError, CatalogueError."""
        base, _, size = identity.partition("@")
        found = self._found(PARTS, base)
        try:
            return read_accelerator(found.record, size)
        except RecordError as error:
            raise CatalogueError(f"{found.place}: {base}: {error}") from error

    def accelerators(self, name: str, key: str = "") -> Match:
        """What a name means, written as the value of the label `key`, or anywhere.

        An exact id comes first, then names as they are listed, then names without vendor words,
        without the memory size (which then decides between alternatives), without a remark,
        without a count, without a suffix that says that the device is shared.
        Raises CatalogueError when a record that it needs cannot be read.
        """
        asked = (name, key)
        if asked not in self._matches:
            self._matches[asked] = self._names.resolve(name.strip(), key)
        return self._matches[asked]
