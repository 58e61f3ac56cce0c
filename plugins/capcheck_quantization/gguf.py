"""GGUF: how llama.cpp stores a tensor of each type, and which words name its files' mixtures."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from capcheck.quantization import Scheme, Seen

METHOD = "gguf"
_DATA = Path(__file__).parent / "data"
_LAST_RESORT = "f16"  # rows that no block of 32 divides stay at 16 bit


class StoredType(NamedTuple):
    """A ggml type: `bytes` for each `block` of values of a row."""

    name: str
    block: int
    bytes: int
    fallback: str  # the type in its place where rows are no whole blocks

    @property
    def bits(self) -> float:
        """Bits of one value, scales included."""
        return self.bytes * 8 / self.block


def records(name: str) -> Iterator[Mapping[str, Any]]:
    """The records of one of this method's data files."""
    for line in (_DATA / name).read_text(encoding="utf-8").splitlines():
        yield json.loads(line)


@lru_cache(maxsize=1)
def stored_types() -> Mapping[str, StoredType]:
    """Every type by its word."""
    return {
        row["type"]: StoredType(row["type"], row["block"], row["bytes"], row.get("fallback", ""))
        for row in records("gguf_types.jsonl")
    }


def fitting(word: str, row: int) -> StoredType:
    """The type that rows of `row` values are stored in where `word` is asked for."""
    types = stored_types()
    found = types[word]
    while row % found.block:
        found = types[found.fallback or _LAST_RESORT]
    return found


def stored_bytes(word: str, out: int, into: int, copies: int = 1) -> float:
    """Bytes of a matrix of `out` rows of `into` values: whole blocks, each row for itself."""
    found = fitting(word, into)
    return float(out) * copies * (into // found.block) * found.bytes


def is_exact(scheme: Scheme) -> bool:
    """Whether a scheme is one ggml type, not a file's mixture of several."""
    return scheme.method == METHOD and scheme.weight in stored_types() and not scheme.guessed


def exact(word: str, targets: tuple[str, ...] = (), seen: Seen = "written") -> Scheme:
    """The scheme of tensors of one ggml type."""
    return Scheme(METHOD, word, stored_types()[word].bits, seen=seen, targets=targets)
