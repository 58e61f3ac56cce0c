"""From what people write for a device to the parts that it may be."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from capcheck.naming import readings, without_count
from capcheck.shelf import SHIPPED, CatalogueError, Found, Record, Stacks, fold
from capcheck.values import MOST_ALTERNATIVES

PARTS, NAMES = "accelerator", "accelerator-name"
SIZE_TOLERANCE = 0.07  # people write 15 GB for a card of 16, 192 for one sold as 180
MOST_SUGGESTIONS = 3


class Match:
    """What a name means. No id: unknown; one: known; two to eight: alternatives.

    An id is that of a record; where a part is sold with several memory sizes, `id@64gb`.
    Not a NamedTuple, whose `count` is a method.
    """

    __slots__ = ("count", "fraction", "how", "ids", "near", "notes", "shared")

    def __init__(
        self,
        ids: tuple[str, ...],
        how: str,
        count: int | None = None,
        fraction: float | None = None,
        near: tuple[str, ...] = (),
        notes: tuple[str, ...] = (),
        shared: bool = False,
    ) -> None:
        self.ids = ids
        self.how = (
            how  # "exact id", "instance type p5.48xlarge: 8 devices", "name of several parts"
        )
        self.count = count  # devices, where the name says so: an instance type, `8x H100`
        self.fraction = fraction  # share of one device's memory, where the name tells it
        self.near = near  # what may have been meant, when unknown
        self.notes = notes
        self.shared = shared  # not a whole device; without a fraction nobody knows the share

    def __repr__(self) -> str:
        fields = ", ".join(f"{field}={getattr(self, field)!r}" for field in self.__slots__)
        return f"Match({fields})"

    def but(self, **changes: Any) -> Match:
        """A copy with some fields changed."""
        fields = {field: getattr(self, field) for field in self.__slots__}
        return Match(**{**fields, **changes})


class _Hit(NamedTuple):
    """The parts of one spelling, before the memory size is taken into account."""

    ids: tuple[str, ...]
    how: str = ""  # "" for the plain name of a part
    devices: int | None = None
    fraction: float | None = None
    notes: tuple[str, ...] = ()


class DeviceNames:
    """Resolves names over the shelves of parts and of label values and instance types."""

    def __init__(self, stacks: Stacks) -> None:
        self._stacks = stacks
        self._words: tuple[tuple[str, str], ...] | None = None

    def resolve(self, name: str, key: str) -> Match:
        """What a name means under a label key. Raises CatalogueError for a broken record."""
        refused: list[str] = []  # right name, wrong memory size
        match = (
            self._whole(name, key, refused)
            or self._counted(name, key, refused)
            or self._shared(name, key, refused)
        )
        if match is None:
            near = tuple(dict.fromkeys(refused)) or self._near(name)
            return Match((), "unknown", near=near[:MOST_SUGGESTIONS])
        if len(match.ids) > MOST_ALTERNATIVES:
            how = f"name of {len(match.ids)} parts: say which"
            return Match((), how, near=match.ids[:MOST_SUGGESTIONS])
        return match

    def _whole(self, name: str, key: str, refused: list[str]) -> Match | None:
        return self._exact(name) or self._read(name, key, refused)

    def _exact(self, name: str) -> Match | None:
        """An id as the catalogue spells it."""
        base, at, size = name.partition("@")
        found = self._stacks.winner(PARTS, base) if "/" in base else None
        if found is None:
            return None
        ids = _sized_ids(found.record, None, exact=True)
        if at:
            ids = tuple(one for one in ids if one.partition("@")[2] == size.lower())
        how = "exact id" if len(ids) == 1 else f"exact id, sold with {len(ids)} memory sizes"
        return Match(ids, how) if ids else None

    def _counted(self, name: str, key: str, refused: list[str]) -> Match | None:
        """A name with the number of devices before or after it."""
        text, count = without_count(name)
        match = self._whole(text, key, refused) if count is not None else None
        if match is None or match.count is None:
            return match and match.but(count=count)
        return match.but(count=None, notes=(*match.notes, f"written with a count: {count}"))

    def _shared(self, text: str, key: str, refused: list[str]) -> Match | None:
        """A name with a suffix that says that the device is cut up, or shared in time."""
        for found in self._stacks.holding(NAMES, "suffix_pattern"):
            try:
                cut = re.search(found.record["suffix_pattern"], text, re.IGNORECASE)
            except re.error as error:
                raise CatalogueError(f"{found.place}: suffix_pattern: {error}") from error
            rest = text[: cut.start()] if cut else ""
            match = rest and (self._whole(rest, key, refused) or self._shared(rest, key, refused))
            if not cut or not match:
                continue
            memory_gb = cut.groupdict().get("memory_gb")
            fraction = self._share(match.ids, float(memory_gb)) if memory_gb else None
            note = f"{cut[0].strip(' -_')}: {found.record['notes']}"
            return match.but(fraction=fraction, notes=(*match.notes, note), shared=True)
        return None

    def _share(self, ids: tuple[str, ...], memory_gb: float) -> float | None:
        """A slice's part of the memory, where all alternatives have the same memory."""
        total = _agreed(self._record(one).get("memory_gb") for one in ids)
        return min(1.0, memory_gb / total) if total else None

    def _record(self, identity: str) -> Record:
        found = self._stacks.winner(PARTS, identity.partition("@")[0])
        if found is None:
            raise CatalogueError(f"a name stands for {identity!r}, which no record has as its id")
        return found.record

    def _read(self, text: str, key: str, refused: list[str]) -> Match | None:
        """The first reading of the text that names parts of a size that fits."""
        for reading in readings(text):
            for vendor, rest in self._stripped(reading.text):
                hit = self._named(rest, key, vendor)
                if hit is None:
                    continue
                ids = self._fitting(hit.ids, reading.size_gb)
                if ids or not hit.ids:
                    return _match(hit, ids)
                refused.extend(self._fitting(hit.ids, None))
        return None

    def _fitting(self, ids: tuple[str, ...], size_gb: float | None) -> tuple[str, ...]:
        """The ids of that size: an exact size before a near one."""
        records = [self._record(one) for one in ids]
        for exact in (True, False):
            fit = [one for record in records for one in _sized_ids(record, size_gb, exact=exact)]
            if fit:
                return tuple(fit)
        return ()

    def _stripped(self, text: str) -> Iterator[tuple[str, str]]:
        """The text, and the text without each vendor's words before it, with that vendor."""
        yield "", text
        folded = fold(text)
        for vendor, word in self._vendor_words():
            if folded.startswith(word) and len(folded) > len(word):
                yield vendor, folded[len(word) :].lstrip("/")

    def _vendor_words(self) -> tuple[tuple[str, str], ...]:
        """(vendor, folded words that may stand before a part's name), longest first."""
        if self._words is None:
            words = {
                (str(one.record["vendor"]), fold(word))
                for one in self._stacks.holding(NAMES, "prefixes")
                for word in one.record["prefixes"]
            }
            self._words = tuple(sorted(words, key=lambda one: (-len(one[1]), one)))
        return self._words

    def _named(self, text: str, key: str, vendor: str) -> _Hit | None:
        """What one spelling names: a value of that label, an instance type, a part, a label.

        Label values are machine words that differ by label (`A100` is one form on one cloud,
        another elsewhere): without their label they come last, and must be spelled exactly so.
        """
        spelling = fold(text)
        if not any(letter.isalnum() for letter in spelling):
            return None
        listed = self._known_by(NAMES, spelling)
        keyed = [one for one in listed if key in one.record.get("keys", ())]
        types = [one for one in listed if not one.record.get("label") and not vendor]
        if keyed or types:
            return _listed_hit(_highest(keyed or types))
        parts = [
            one
            for one in self._known_by(PARTS, spelling)
            if not vendor or str(one.record["id"]).startswith(f"{vendor}/")
        ]
        ids = tuple(dict.fromkeys(str(one.record["id"]) for one in _highest(parts)))
        if ids:
            return _Hit(ids)
        labels = [one for one in listed if not vendor and text in one.record["names"]]
        return _listed_hit(_highest(labels)) if labels else None

    def _known_by(self, kind: str, spelling: str) -> list[Found]:
        return [
            one
            for one in self._stacks.folded(kind, spelling)
            if any(fold(name) == spelling for name in _names_of(one.record))
        ]

    def _near(self, name: str) -> tuple[str, ...]:
        """Listed names that look like this one."""
        from difflib import get_close_matches

        shown = {
            fold(spelled): spelled
            for kind in (NAMES, PARTS)
            for one in self._stacks.all(kind)
            for spelled in _names_of(one.record)
        }
        close = get_close_matches(fold(name), shown, n=MOST_SUGGESTIONS, cutoff=0.75)
        return tuple(shown[one] for one in close)


def _names_of(record: Record) -> Iterator[str]:
    """Every spelling that a record is known by."""
    identity = record.get("id")
    if isinstance(identity, str):
        yield identity
        yield identity.rpartition("/")[2]
    if isinstance(record.get("name"), str):
        yield record["name"]
    for field in ("names", "aliases", "shared_names"):
        yield from record.get(field, ())


def _sized_ids(record: Record, size_gb: float | None, *, exact: bool) -> tuple[str, ...]:
    """The ids of one part that fit a memory size: one for each size that it is sold with."""
    base, options = str(record["id"]), record.get("memory_options")
    if not options and size_gb is None:
        return (base,)
    sizes = [one.get("memory_gb") for one in options or (record,)]
    reach = 0.0 if exact else SIZE_TOLERANCE
    fitting = [
        one
        for one in sizes
        if isinstance(one, (int, float)) and (size_gb is None or abs(one - size_gb) <= reach * one)
    ]
    return tuple(f"{base}@{one:g}gb" if options else base for one in fitting)


def _agreed(values: Iterable[Any]) -> Any:
    """The value that all share, else None."""
    distinct = list(dict.fromkeys(values))
    return distinct[0] if len(distinct) == 1 else None


def _highest(founds: list[Found]) -> list[Found]:
    """Those of the highest rank."""
    rank = max((one.shelf.rank for one in founds), default=SHIPPED)
    return [one for one in founds if one.shelf.rank == rank]


def _match(hit: _Hit, ids: tuple[str, ...]) -> Match:
    how, bases = hit.how, {one.partition("@")[0] for one in ids}
    if not how:
        how = f"name of {min(bases)}" if len(bases) == 1 else "name of several parts"
    if len(ids) > len(bases) == 1:
        how = f"{how}, sold with {len(ids)} memory sizes"
    return Match(ids, how, hit.devices, hit.fraction, (), hit.notes, hit.fraction is not None)


def _listed_hit(founds: list[Found]) -> _Hit:
    """What label values or instance types say together."""
    records = [one.record for one in founds]
    ids = tuple(dict.fromkeys(one for record in records for one in record.get("ids", ())))
    first = records[0]
    name = first["names"][0]
    how = f"instance type {name}"
    if first.get("label"):
        how = f"label {next(iter(first.get('keys', ())), '')}={name}"
    count = _agreed(record.get("count") for record in records)
    if count is not None:
        how = f"{how}: {count} device{'s' if count != 1 else ''}"
    remarks = [
        one for record in records for one in (record.get("notes"), *record.get("doubts", ()))
    ]
    told = tuple(dict.fromkeys(str(one) for one in remarks if one))
    return _Hit(ids, how, count, _agreed(one.get("fraction") for one in records), told)
