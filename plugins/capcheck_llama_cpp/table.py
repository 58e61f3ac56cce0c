"""llama.cpp's option table, read when first asked. Its options cannot be shortened.

Most have a short name of their own, which a file of options gives without its dash: ngl, c.
"""

from __future__ import annotations

from pathlib import Path

from capcheck import OptionTable
from capcheck.options import Standing, Version

HERE = Path(__file__).parent


class Table(OptionTable):
    """Names are whole: no prefix stands for an option, and long ones go before short ones."""

    def resolve(self, name: str, version: Version | None, *, prefixes: bool = True) -> Standing:
        """See `OptionTable.resolve`."""
        found = super().resolve(name, version, prefixes=False)
        if found.option is not None or name.startswith("-"):
            return found
        short = super().resolve(f"-{name}", version, prefixes=False)
        return short if short.option is not None or short.candidates else found


TABLE = Table(HERE / "options.jsonl")
OLLAMA = Table(HERE / "ollama.jsonl")
