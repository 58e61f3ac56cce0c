"""The headers of safetensors files: what tensors they hold. The weights are not read.

A file begins with eight bytes, the length of the JSON behind them. What is no sound file raises
SafetensorsError, and nothing else does but OSError.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NamedTuple, TypeGuard

INDEXES: Final = ("model.safetensors.index.json", "consolidated.safetensors.index.json")
WHOLE: Final = ("model.safetensors", "consolidated.safetensors")
_MOST_HEADER: Final = 100_000_000  # bytes: the format's own limit
_MOST_INDEX: Final = 100_000_000
_LENGTH: Final = 8  # bytes that hold the header's length
_LFS: Final = b"version "  # begins what Git LFS keeps in a file's place
_BITS: Final[Mapping[str, int]] = {
    "BOOL": 8, "U8": 8, "I8": 8, "F8_E5M2": 8, "F8_E4M3": 8, "F8_E8M0": 8, "F4": 4,
    "F6_E2M3": 6, "F6_E3M2": 6, "I16": 16, "U16": 16, "F16": 16, "BF16": 16, "I32": 32,
    "U32": 32, "F32": 32, "F64": 64, "I64": 64, "U64": 64, "C64": 64,
}  # fmt: skip


class SafetensorsError(ValueError):
    """The file or folder holds no sound safetensors header; the message says why."""


class LfsPointer(SafetensorsError):
    """Git LFS keeps the file elsewhere, and only its pointer is there."""


class StoredTensor(NamedTuple):
    """One tensor as it is stored. `dtype` is the format's word: BF16, F8_E4M3, I32."""

    name: str
    dtype: str
    shape: tuple[int, ...]

    @property
    def elements(self) -> int:
        """How many stored values it holds: packed formats keep several weights in one."""
        return math.prod(self.shape)

    @property
    def bytes(self) -> int:
        """Its stored bytes."""
        return self.elements * _BITS[self.dtype] // 8


def parse_safetensors(stream: BinaryIO, size: int) -> tuple[StoredTensor, ...]:
    """The tensors of a stream of `size` bytes, in the header's order. Raises SafetensorsError."""
    first = stream.read(_LENGTH)
    if first == _LFS:
        raise LfsPointer("only the pointer of Git LFS is there, not the file itself")
    if len(first) < _LENGTH:
        raise SafetensorsError("the file ends within the length of its header")
    length = int.from_bytes(first, "little")
    if length > min(_MOST_HEADER, size - _LENGTH):
        raise SafetensorsError(f"no safetensors file: {length:,} bytes of header do not fit it")
    text = stream.read(length)
    if len(text) < length:
        raise SafetensorsError("the file ends within its header")
    found, ends = [], [(0, 0)]
    for name, told in _json(text, "the header").items():
        if name == "__metadata__":
            continue
        tensor, place = _tensor(name, told)
        found.append(tensor)
        ends.append(place)
    _must_fill(sorted(ends), size - _LENGTH - length)
    return tuple(found)


def _json(text: bytes, what: str) -> dict[str, Any]:
    try:
        found = json.loads(text.decode("utf-8"), object_pairs_hook=_once)
    except (ValueError, RecursionError) as wrong:
        raise SafetensorsError(f"{what} is not JSON: {wrong}") from wrong
    if not isinstance(found, dict):
        raise SafetensorsError(f"{what} is not a JSON object")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        raise ValueError("a name is there twice")
    return found


def _tensor(name: str, told: object) -> tuple[StoredTensor, tuple[int, int]]:
    """A tensor and where it lies behind the header."""
    entry = told if isinstance(told, dict) else {}
    tensor = stored_tensor(name, entry.get("dtype"), entry.get("shape"))
    place = entry.get("data_offsets")
    if not _are_sizes(place) or len(place) != 2:
        raise SafetensorsError(f"the tensor {name} does not say where it lies")
    start, end = place
    if end - start != tensor.bytes:
        raise SafetensorsError(
            f"the tensor {name} takes {end - start:,} bytes, not {tensor.bytes:,}"
        )
    return tensor, (start, end)


def stored_tensor(name: str, dtype: object, shape: object) -> StoredTensor:
    """A tensor as a header tells of it. Raises SafetensorsError."""
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise SafetensorsError(f"the tensor {name} has the unknown dtype {dtype!r}")
    if not _are_sizes(shape):
        raise SafetensorsError(f"the tensor {name} has no shape")
    return StoredTensor(name, dtype, tuple(shape))


def _are_sizes(told: object) -> TypeGuard[Sequence[int]]:
    return isinstance(told, (list, tuple)) and all(
        isinstance(one, int) and not isinstance(one, bool) and one >= 0 for one in told
    )


def _must_fill(places: list[tuple[int, int]], size: int) -> None:
    """Tensors lie behind each other without holes, up to the file's end. Raises."""
    at = 0
    for start, end in places:
        if start != at:
            raise SafetensorsError("its tensors overlap or leave holes")
        at = end
    if at != size:
        raise SafetensorsError(f"its tensors take {at:,} bytes, but the file has {size:,} for them")


def read_safetensors(file: Path) -> tuple[StoredTensor, ...]:
    """The tensors of one file. Raises SafetensorsError, OSError."""
    with file.open("rb") as stream:
        return parse_safetensors(stream, file.stat().st_size)


def shards_of(folder: Path) -> tuple[Path, ...]:
    """The files of a folder's checkpoint: as its index says, or the one file; () for none.

    Raises SafetensorsError, OSError.
    """
    for name in INDEXES:
        if (folder / name).is_file():
            names = dict.fromkeys(_weight_map(folder / name).values())
            return tuple(folder / one for one in names)
    for name in WHOLE:
        if (folder / name).is_file():
            return (folder / name,)
    return tuple(sorted(folder.glob("*.safetensors")))


def _weight_map(index: Path) -> dict[str, str]:
    """Which file holds which tensor. Raises SafetensorsError."""
    if index.stat().st_size > _MOST_INDEX:
        raise SafetensorsError(f"{index.name}: larger than any index")
    told = _json(index.read_bytes(), index.name).get("weight_map")
    if not isinstance(told, dict) or not told:
        raise SafetensorsError(f"{index.name}: weight_map is missing")
    for file in told.values():
        sound = isinstance(file, str) and file not in ("", ".", "..")
        if not sound or any(one in file for one in "/\\\0"):
            raise SafetensorsError(f"{index.name}: {file!r} is no file of this folder")
    return told


def read_shards(folder: Path) -> tuple[StoredTensor, ...]:
    """Every tensor of a folder's checkpoint; () when it holds no safetensors.

    Raises SafetensorsError, also for a file that is missing, and OSError.
    """
    found: dict[str, StoredTensor] = {}
    for file in shards_of(folder):
        if not file.is_file():
            raise SafetensorsError(f"{file.name}, which the index names, is not there")
        try:
            tensors = read_safetensors(file)
        except SafetensorsError as wrong:
            raise type(wrong)(f"{file.name}: {wrong}") from wrong
        for one in tensors:
            if one.name in found:
                raise SafetensorsError(f"{file.name}: {one.name} is in another file too")
            found[one.name] = one
    index = next((folder / name for name in INDEXES if (folder / name).is_file()), None)
    lost = [name for name in _weight_map(index) if name not in found] if index is not None else ()
    if lost:
        raise SafetensorsError(f"{lost[0]}, which the index names, is in no file")
    return tuple(found.values())
