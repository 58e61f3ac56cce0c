"""The header of a GGUF file: its metadata and what tensors it holds. The weights are not read.

    header = read_gguf(Path("model-Q4_K_M.gguf"))
    header.metadata["general.architecture"]       # "llama"
    header.own("block_count")                     # metadata["llama.block_count"]
    header.parameters, header.bytes               # over all tensors
    for one in header.tensors: one.name, one.shape, one.type, one.bytes

Everything that a file claims is checked against its size first. What is no sound GGUF file of
version 2 or 3, little-endian, raises GgufError, and nothing else does but OSError.
"""

from __future__ import annotations

import math
import re
import struct
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple, TypeAlias

from capcheck.ggml_types import TYPES as TYPES
from capcheck.ggml_types import GgmlType

MAGIC: Final = b"GGUF"
VERSIONS: Final = (2, 3)
MOST_KEPT: Final = 4096  # items of an array that are kept: per-layer lists, not vocabularies
_MOST_HEADER: Final = 48 * 2**20  # bytes: the largest vocabularies take about 20 MiB
_MOST_NAME: Final = 64 * 2**10  # bytes of a key or of a tensor's name
_MOST_DIMENSIONS: Final = 4
_MOST_PARTS: Final = 10_000
_ALIGNMENT: Final = 32
_STRING, _ARRAY = 8, 9
_SCALARS: Final[Mapping[int, str]] = {
    0: "<B", 1: "<b", 2: "<H", 3: "<h", 4: "<I", 5: "<i", 6: "<f", 7: "<?", 10: "<Q", 11: "<q",
    12: "<d",
}  # fmt: skip
_PART = re.compile(r"(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf")


class GgufError(ValueError):
    """The file is no sound GGUF file that this reads; the message says why."""


class GgufArray(NamedTuple):
    """A list in the metadata. `values` is empty when there are more than MOST_KEPT items."""

    length: int
    values: tuple[object, ...]


GgufValue: TypeAlias = int | float | bool | str | GgufArray


class GgufTensor(NamedTuple):
    """One tensor. `shape` is in the file's order: the length of a row comes first."""

    name: str
    shape: tuple[int, ...]
    type: str  # ggml's name, "Q4_K"; "type 99" for one that is not known
    bytes: int  # as stored, without the padding behind it

    @property
    def parameters(self) -> int:
        """How many values it holds."""
        return math.prod(self.shape)


class GgufHeader(NamedTuple):
    """What a file says before its weights."""

    version: int
    metadata: Mapping[str, GgufValue]
    tensors: tuple[GgufTensor, ...]

    @property
    def architecture(self) -> str:
        """The word that begins the keys of the model's own sizes; "" when it is not told."""
        word = self.metadata.get("general.architecture")
        return word if isinstance(word, str) else ""

    def own(self, key: str) -> GgufValue | None:
        """The value under the architecture's own key: `own("block_count")`."""
        return self.metadata.get(f"{self.architecture}.{key}")

    @property
    def parameters(self) -> int:
        """The values of all tensors."""
        return sum(one.parameters for one in self.tensors)

    @property
    def bytes(self) -> int:
        """The bytes of all tensors."""
        return sum(one.bytes for one in self.tensors)

    def bytes_by_type(self) -> dict[str, int]:
        """The stored bytes by ggml type, the largest first."""
        found: dict[str, int] = {}
        for one in self.tensors:
            found[one.type] = found.get(one.type, 0) + one.bytes
        return dict(sorted(found.items(), key=lambda item: (-item[1], item[0])))


class _Reader:
    """Takes values off the front of a file and never reads behind its end."""

    def __init__(self, stream: BinaryIO, size: int) -> None:
        self._stream = stream
        self._end = min(size, _MOST_HEADER)
        self._whole = size <= _MOST_HEADER
        self.at = 0

    def take(self, count: int, what: str) -> bytes:
        """The next bytes."""
        self._must_have(count, what)
        data = self._stream.read(count)
        if len(data) != count:
            raise GgufError(f"the file ends within {what}")
        self.at += count
        return data

    def skip(self, count: int, what: str) -> None:
        """Passes over bytes."""
        self._must_have(count, what)
        self._stream.seek(count, 1)
        self.at += count

    def _must_have(self, count: int, what: str) -> None:
        if count > self._end - self.at:
            end = "the file ends within" if self._whole else "the header is too long: it ends in"
            raise GgufError(f"{end} {what}")

    def number(self, form: str, what: str) -> int | float | bool:
        """One number of `struct`'s form."""
        found: int | float | bool = struct.unpack(form, self.take(struct.calcsize(form), what))[0]
        return found

    def count(self, what: str) -> int:
        """An unsigned number of eight bytes."""
        return int(self.number("<Q", what))

    def small(self, what: str) -> int:
        """An unsigned number of four bytes."""
        return int(self.number("<I", what))

    def text(self, what: str, most: int = _MOST_HEADER) -> str:
        """A string with its length before it."""
        length = self.count(what)
        if length > most:
            raise GgufError(f"{what} is {length:,} bytes long")
        return self.take(length, what).decode("utf-8", "replace")

    def value(self, kind: int, what: str) -> GgufValue:
        """One value of the metadata."""
        if kind == _STRING:
            return self.text(what)
        if kind == _ARRAY:
            return self._array(what)
        return self.number(_form(kind, what), what)

    def _array(self, what: str) -> GgufArray:
        kind, count = self.small(what), self.count(what)
        if kind == _ARRAY:
            raise GgufError(f"{what} is a list of lists")
        if kind == _STRING:
            if count <= MOST_KEPT:
                return GgufArray(count, tuple(self.text(what) for _ in range(count)))
            for _ in range(count):
                self.skip(self.count(what), what)
            return GgufArray(count, ())
        form = _form(kind, what)
        width = struct.calcsize(form)
        if count > MOST_KEPT:
            self.skip(count * width, what)
            return GgufArray(count, ())
        data = self.take(count * width, what)
        return GgufArray(count, tuple(one[0] for one in struct.iter_unpack(form, data)))


def _form(kind: int, what: str) -> str:
    if kind not in _SCALARS:
        raise GgufError(f"{what} has the unknown type {kind}")
    return _SCALARS[kind]


class _Info(NamedTuple):
    """A tensor as its entry tells."""

    name: str
    shape: tuple[int, ...]
    type: int
    offset: int


def parse_gguf(stream: BinaryIO, size: int) -> GgufHeader:
    """The header at the front of a stream of `size` bytes. Raises GgufError."""
    reader = _Reader(stream, size)
    if reader.take(4, "its first word") != MAGIC:
        raise GgufError("not a GGUF file: it does not begin with GGUF")
    version = reader.small("the version")
    if version not in VERSIONS:
        big_endian = version >> 16 in (v << 8 for v in VERSIONS)
        what = "it is big-endian" if big_endian else f"version {version} is not read"
        raise GgufError(f"{what}: only little-endian files of version 2 or 3 are")
    tensors, entries = reader.count("the number of tensors"), reader.count("the number of keys")
    metadata: dict[str, GgufValue] = {}
    for _ in range(entries):
        key = reader.text("a key", _MOST_NAME)
        if key in metadata:
            raise GgufError(f"the key {key} is there twice")
        metadata[key] = reader.value(reader.small(key), key)
    infos = [_info(reader) for _ in range(tensors)]
    return GgufHeader(version, metadata, _tensors(infos, _data_start(reader.at, metadata), size))


def _info(reader: _Reader) -> _Info:
    name = reader.text("a tensor's name", _MOST_NAME)
    dimensions = reader.small(name)
    if dimensions > _MOST_DIMENSIONS:
        raise GgufError(f"the tensor {name} has {dimensions:,} dimensions")
    shape = tuple(reader.count(name) for _ in range(dimensions))
    return _Info(name, shape, reader.small(name), reader.count(name))


def _data_start(end: int, metadata: Mapping[str, GgufValue]) -> int:
    """Where the weights begin: behind the header, aligned."""
    step = metadata.get("general.alignment", _ALIGNMENT)
    if not isinstance(step, int) or isinstance(step, bool) or step <= 0:
        raise GgufError(f"general.alignment is {step!r}")
    return -(-end // step) * step


def _tensors(infos: list[_Info], start: int, size: int) -> tuple[GgufTensor, ...]:
    """Every tensor with its bytes, which must lie within the file."""
    if len({one.name for one in infos}) < len(infos):
        raise GgufError("two tensors have one name")
    ends = sorted({one.offset for one in infos} | {max(size - start, 0)})
    behind = dict(pairwise(ends))
    found = []
    for one in infos:
        known = TYPES.get(one.type)
        stored = _stored(one, known) if known else behind.get(one.offset, 0) - one.offset
        if stored < 0 or start + one.offset + stored > size:
            raise GgufError(f"the tensor {one.name} does not lie within the file: it is cut short")
        name = known.name if known else f"type {one.type}"
        found.append(GgufTensor(one.name, one.shape, name, stored))
    return tuple(found)


def _stored(one: _Info, type: GgmlType) -> int:
    row = one.shape[0] if one.shape else 1
    if row % type.block:
        why = f"rows of {row:,} values are no whole blocks of {type.block}"
        raise GgufError(f"the tensor {one.name}: {why} ({type.name})")
    return math.prod(one.shape) // type.block * type.size


def read_gguf(file: Path) -> GgufHeader:
    """The header of one file. Raises GgufError, OSError."""
    with file.open("rb") as stream:
        return parse_gguf(stream, file.stat().st_size)


def parts_of(file: Path) -> tuple[Path, ...]:
    """All files of a model that is split by name: `m-00001-of-00003.gguf` names three."""
    named = _PART.fullmatch(file.name)
    count = int(named["count"]) if named else 0
    if not named or not 0 < count <= _MOST_PARTS:
        return (file,)
    names = (f"{named['stem']}-{n:05d}-of-{count:05d}.gguf" for n in range(1, count + 1))
    return tuple(file.with_name(name) for name in names)


def read_whole(file: Path) -> GgufHeader:
    """The header of a model of one or of several files: the first's metadata, all tensors.

    Raises GgufError, also when a part is missing, and OSError.
    """
    headers = []
    for part in parts_of(file):
        if not part.is_file():
            raise GgufError(f"its part {part.name} is not there")
        headers.append(read_gguf(part))
    tensors = tuple(one for header in headers for one in header.tensors)
    return headers[0]._replace(tensors=tensors)
