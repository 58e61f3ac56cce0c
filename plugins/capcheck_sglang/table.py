"""SGLang's option table, read when first asked."""

from __future__ import annotations

from pathlib import Path

from capcheck import OptionTable

TABLE = OptionTable(Path(__file__).parent / "options.jsonl")
