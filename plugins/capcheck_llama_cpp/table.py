"""llama.cpp's option table, read when first asked. Its options cannot be shortened."""

from __future__ import annotations

from pathlib import Path

from capcheck import OptionTable
from capcheck.options import Standing, Version

HERE = Path(__file__).parent


class Table(OptionTable):
    """Names are whole: no prefix stands for an option."""

    def resolve(self, name: str, version: Version | None, *, prefixes: bool = True) -> Standing:
        """See `OptionTable.resolve`."""
        return super().resolve(name, version, prefixes=False)


TABLE = Table(HERE / "options.jsonl")
OLLAMA = Table(HERE / "ollama.jsonl")
