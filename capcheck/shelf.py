"""Shelves of records: files that are searched as text, so that a look-up parses one line."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from importlib.resources.abc import Traversable

SHIPPED, VENDOR, CONFIGURATION = 0, 1, 2

Record = Mapping[str, Any]

_DROPPED = b" -_,()\t\r"
_LARGEST_OWN = 20_000_000  # bytes of a file that came with the checked tree
_DEEPEST = 40


class CatalogueError(Exception):
    """A record cannot be read, or two owners claim one id: the message names them."""


class Shelf(NamedTuple):
    """A file of records of one kind: JSON lines, a JSON list, or YAML.

    Of records with one id the one with the highest rank counts. Plugins leave `rank` alone
    unless they mean to replace what others ship.
    """

    kind: str  # "accelerator", "accelerator-name", "model", or a plugin's own word
    file: Path | Traversable
    owner: str  # who ships it, for messages: a package or a configuration file
    rank: int = SHIPPED


class Found(NamedTuple):
    """A record and where it lies; `line` is 1-based in the shelf's JSON lines."""

    record: Record
    shelf: Shelf
    line: int

    @property
    def place(self) -> str:
        """Owner, file and line, for messages."""
        return f"{self.shelf.owner} ({self.shelf.file.name}:{self.line})"


def fold(text: str) -> str:
    """A name as it is compared: without case, blanks, dashes, brackets, commas, trade marks."""
    return _fold_bytes(text.encode()).decode(errors="replace")


def _fold_bytes(data: bytes) -> bytes:
    plain = data.lower().replace(b"(r)", b"").replace(b"(tm)", b"")
    return plain.translate(None, _DROPPED)


def _records_of(data: bytes, shelf: Shelf) -> Iterable[Record]:
    """The records of a file that is not JSON lines."""
    if shelf.file.name.endswith(".json"):
        tree = json.loads(data)
    else:
        import yaml

        _must_be_plain(data)
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        documents = [one for one in yaml.load_all(data, loader) if one is not None]
        tree = documents[0] if len(documents) == 1 else documents
    if isinstance(tree, dict):
        tree = [tree]
    if not isinstance(tree, list) or not all(isinstance(one, dict) for one in tree):
        raise CatalogueError(f"{shelf.owner}: {shelf.file.name}: not a list of records")
    return tree


def _must_be_plain(data: bytes) -> None:
    """Records are flat and written out: what is deep, or grows when aliases are, is none."""
    import yaml

    depth = 0
    for event in yaml.parse(data, getattr(yaml, "CSafeLoader", yaml.SafeLoader)):
        if isinstance(event, yaml.AliasEvent):
            raise ValueError("records have no aliases")
        if isinstance(event, yaml.CollectionStartEvent):
            depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            depth -= 1
        if depth > _DEEPEST:
            raise ValueError("deeper than any record")


def _bytes_of(shelf: Shelf) -> bytes:
    is_own = shelf.rank >= CONFIGURATION and isinstance(shelf.file, Path)
    if is_own and Path(str(shelf.file)).stat().st_size > _LARGEST_OWN:
        raise ValueError("larger than any catalogue")
    return shelf.file.read_bytes()


class Page:
    """One shelf's text, and the same text folded; line n of one is line n of the other."""

    def __init__(self, shelf: Shelf) -> None:
        self.shelf = shelf
        try:
            data = _bytes_of(shelf)
            if not shelf.file.name.endswith(".jsonl"):
                lines = (json.dumps(one, default=str) for one in _records_of(data, shelf))
                data = "\n".join(lines).encode()
        except CatalogueError:
            raise
        except Exception as error:  # a YAML error has no base class that is importable cheaply
            raise CatalogueError(f"{shelf.owner}: {shelf.file.name}: {error}") from error
        self.data = data
        self._folded: bytes | None = None

    @property
    def folded(self) -> bytes:
        """The text as names are compared."""
        if self._folded is None:
            self._folded = _fold_bytes(self.data)
        return self._folded

    def parse(self, line: bytes, number: int) -> Found:
        """One line as a record. Raises CatalogueError when it is none."""
        try:
            record = json.loads(line)
        except ValueError as error:
            where = f"{self.shelf.file.name}:{number}"
            raise CatalogueError(f"{self.shelf.owner}: {where}: {error}") from error
        if not isinstance(record, dict):
            where = f"{self.shelf.file.name}:{number}"
            raise CatalogueError(f"{self.shelf.owner}: {where}: not a record")
        return Found(record, self.shelf, number)

    def all(self) -> Iterator[Found]:
        """Every record."""
        for number, line in enumerate(self.data.split(b"\n"), 1):
            if line.strip():
                yield self.parse(line, number)

    def lines_with(self, *needles: bytes, folded: bool = False) -> Iterator[Found]:
        """The records whose line holds one of the needles."""
        text = self.folded if folded else self.data
        numbers: set[int] = set()
        for needle in needles:
            at = text.find(needle)
            while at >= 0:
                numbers.add(text.count(b"\n", 0, at))
                end = text.find(b"\n", at)
                at = text.find(needle, end) if end >= 0 else -1
        if numbers:
            lines = self.data.split(b"\n")
            for number in sorted(numbers):
                yield self.parse(lines[number], number + 1)


class Stacks:
    """All shelves, by kind. Files are read when their kind is first asked for."""

    def __init__(self, shelves: Iterable[Shelf]) -> None:
        self.shelves = tuple(shelves)
        self._pages: dict[str, tuple[Page, ...]] = {}

    def pages(self, kind: str) -> tuple[Page, ...]:
        """The shelves of a kind. Raises CatalogueError for a file that cannot be read."""
        if kind not in self._pages:
            self._pages[kind] = tuple(Page(one) for one in self.shelves if one.kind == kind)
        return self._pages[kind]

    def all(self, kind: str) -> Iterator[Found]:
        """Every record of a kind, overridden ones too."""
        for page in self.pages(kind):
            yield from page.all()

    def holding(self, kind: str, text: str) -> Iterator[Found]:
        """The records in which `text` is a whole string or key, spelled exactly so."""
        needles = {
            json.dumps(text, ensure_ascii=ascii_only).encode() for ascii_only in (False, True)
        }
        for page in self.pages(kind):
            yield from page.lines_with(*needles)

    def folded(self, kind: str, key: str) -> Iterator[Found]:
        """The records in which the folded `key` is a whole string, or ends one after a slash."""
        needle = key.encode() + b'"'
        for page in self.pages(kind):
            yield from page.lines_with(b'"' + needle, b"/" + needle, folded=True)

    def winner(self, kind: str, identity: str) -> Found | None:
        """The record with that id that counts; None when there is none.

        Raises CatalogueError when two of the highest rank claim it.
        """
        claims = [one for one in self.holding(kind, identity) if one.record.get("id") == identity]
        if not claims:
            return None
        rank = max(one.shelf.rank for one in claims)
        best = [one for one in claims if one.shelf.rank == rank]
        if len(best) > 1:
            both = " and ".join(one.place for one in best)
            raise CatalogueError(f"two records claim the {kind} {identity!r}: {both}")
        return best[0]
