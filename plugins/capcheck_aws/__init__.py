"""AWS Inferentia and Trainium: parts, label values, instance types."""

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
