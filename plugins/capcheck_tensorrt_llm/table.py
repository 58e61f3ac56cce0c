"""The option table of trtllm-serve and its YAML, read when first asked."""

from __future__ import annotations

from pathlib import Path

from capcheck import OptionTable
from capcheck.options import Standing, Version


class WholeNames(OptionTable):
    """A table whose names cannot be shortened."""

    def resolve(self, name: str, version: Version | None, *, prefixes: bool = False) -> Standing:
        """What a release makes of a written name: a prefix is no name."""
        del prefixes
        return super().resolve(name, version, prefixes=False)


TABLE = WholeNames(Path(__file__).parent / "options.jsonl")
