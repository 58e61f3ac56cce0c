"""The shipped tables, and short names for tests of them."""

from __future__ import annotations

from pathlib import Path

import capcheck_vllm
from capcheck.options import OptionTable, Standing, Version, parse_version

DATA = Path(capcheck_vllm.__file__).parent
TABLE = OptionTable(DATA / "options.jsonl")
ENVIRONMENT = OptionTable(DATA / "environment.jsonl")


def v(text: str) -> Version:
    """The version; a test that misspells one fails."""
    version = parse_version(text)
    assert version is not None
    return version


def resolve(name: str, release: str) -> Standing:
    """What the release makes of a name."""
    return TABLE.resolve(name, v(release))
