"""Which kernel an engine multiplies packed weights with, and what it pads: from data."""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from capcheck.quantization import Scheme

from .releases import Version, holds

_FILE = Path(__file__).parent / "data" / "kernels.jsonl"


@lru_cache(maxsize=1)
def _rows() -> tuple[Mapping[str, Any], ...]:
    lines = _FILE.read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line)


def kernel_of(
    scheme: Scheme, engine: str, vendor: str, capability: int | None, release: Version | None
) -> str:
    """The word of the kernel, "" for the hardware's own or where nothing is known.

    `capability` is NVIDIA's compute capability times ten, None for other vendors. The first row
    that fits decides; a row whose release range leaves it open whether it fits does not.
    """
    for row in _rows():
        if row["engine"] != engine or row["weight"] != scheme.weight or row["vendor"] != vendor:
            continue
        low, high = row.get("capability", (None, None))
        if low is not None and (capability is None or capability < low):
            continue
        if high is not None and (capability is None or capability >= high):
            continue
        if holds(row, release) is True:
            return str(row["kernel"])
    return ""


def padding(weight: str, kernel: str, *, expert: bool) -> tuple[int, int]:
    """Multiples that a kernel pads an expert's (intermediate, hidden) size to; 1: none."""
    if not kernel or not expert:
        return 1, 1
    for row in _rows():
        if row["weight"] == weight and row["kernel"] == kernel:
            return int(row.get("intermediate", 1)), int(row.get("hidden", 1))
    return 1, 1
