"""Apple silicon: parts, label values, instance types, and how surely their memory is known."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import Shelf, hookimpl

_HERE = Path(__file__).parent


@hookimpl
def capcheck_catalogues() -> Iterable[Shelf]:
    """The parts (accelerators.jsonl) and what else they are called (names.jsonl)."""
    return (
        Shelf("accelerator", _HERE / "accelerators.jsonl", __name__),
        Shelf("accelerator-name", _HERE / "names.jsonl", __name__),
    )


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """How far the memory that Metal lets models use varies."""
    return (_HERE / "terms.jsonl",)
