"""Where the JSON Schemas lie: inside the wheel, or beside the package in a checkout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ENDING = ".schema.json"


def root() -> Path:
    """The folder of `*.schema.json`."""
    here = Path(__file__).parent
    packaged = here / "_schemas"
    return packaged if packaged.is_dir() else here.parent / "schemas"


def schema_names() -> tuple[str, ...]:
    """What can be read: deployment, report, config and more, in the order of the alphabet."""
    files = root().glob(f"*{ENDING}")
    return tuple(sorted(file.name.removesuffix(ENDING) for file in files))


def read_schema(name: str) -> dict[str, Any]:
    """One schema as plain data, a new copy each time. Raises FileNotFoundError."""
    text = (root() / f"{name}{ENDING}").read_text(encoding="utf-8")
    schema: dict[str, Any] = json.loads(text)
    return schema
