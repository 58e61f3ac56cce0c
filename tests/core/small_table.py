"""The option table of an invented engine: each way in which an option can change."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from capcheck.options import OptionTable, Version, parse_version

RELEASES = ["1.0.0", "1.1.0", "1.1.0.post1", "1.3.0", "2.0.0"]
OPTIONS: list[dict[str, Any]] = [
    {
        "name": "max_length",
        "defaults": [["1.0.0", None]],
        "shapes": [
            ["1.0.0", {"type": "int"}],
            ["1.1.0", {"type": "tokens", "bounds": {"gt": 0}}],
            ["2.0.0", {"type": "tokens", "bounds": {"ge": -1}, "words": ["-1", "auto"]}],
        ],
    },
    {
        "name": "share",
        "defaults": [["1.0.0", 0.9], ["2.0.0", 0.92]],
        "shapes": [
            ["1.0.0", {"type": "float", "bounds": {"gt": 0, "le": 1}, "shorts": ["-s"]}],
            ["2.0.0", {"type": "float", "bounds": {"gt": 0, "le": 1}, "aliases": ["device_share"]}],
        ],
    },
    {
        "name": "enable_cache",
        "defaults": [["1.0.0", False]],
        "shapes": [
            ["1.0.0", {"type": "bool"}],
            ["1.1.0", {"type": "bool", "optional_value": True}],
            ["1.3.0", {"type": "bool", "negatable": True}],
            ["2.0.0", {"type": "bool", "negatable": True, "inverse": "disable_cache"}],
        ],
    },
    {
        "name": "swap",
        "last": "1.1.0.post1",
        "gone": "1.3.0",
        "defaults": [["1.0.0", 4]],
        "shapes": [["1.0.0", {"type": "float"}]],
    },
    {
        "name": "swap_files",
        "before_first": "1.3.0",
        "first": "2.0.0",
        "defaults": [["2.0.0", {"computed": "cpu_count()"}]],
        "shapes": [["2.0.0", {"type": "list", "item": "int"}]],
    },
    {
        "name": "max_lists",
        "before_first": "1.1.0.post1",
        "first": "1.3.0",
        "absent": ["2.0.0"],
        "defaults": [["1.3.0", 1]],
        "shapes": [["1.3.0", {"type": "int"}]],
    },
    {
        "name": "kind",
        "defaults": [["1.0.0", "auto"]],
        "choices": [["1.0.0", ["auto", "fast_one"]], ["2.0.0", ["auto", "fast_one", "slow"]]],
        "shapes": [["1.0.0", {"type": "choice"}], ["2.0.0", {"type": "choice", "folded": True}]],
    },
    {
        "name": "extra",
        "defaults": [["1.0.0", {}]],
        "shapes": [["1.0.0", {"type": "json", "pairs": True}], ["2.0.0", {"type": "json"}]],
    },
    {
        "name": "target",
        "defaults": [["1.0.0", None]],
        "shapes": [["1.0.0", {"type": "text", "positional": True}]],
    },
]
RENAMED = [
    {"name": "swap", "since": "1.3.0", "before": "2.0.0", "write": "remove it"},
    {"name": "swap", "since": "2.0.0", "write": "use swap_files"},
    {"name": "length", "write": "use max_length"},
    {"name": "extra.width", "write": "use the key size"},
]
SUBKEYS = [
    {
        "name": "extra",
        "stray": [["1.0.0", "ignored"], ["2.0.0", "error"]],
        "keys": {
            "size": {},
            "old": {"last": "1.1.0.post1", "gone": "1.3.0"},
            "fresh": {"before_first": "1.3.0", "first": "2.0.0"},
        },
    },
]


def lines(*records: object) -> str:
    """JSON lines."""
    return "".join(json.dumps(record) + "\n" for record in records)


def write_table(folder: Path) -> OptionTable:
    """The table, with what lies beside it, in `folder`."""
    head = {"releases": [[release, "2030-01-01"] for release in RELEASES]}
    options = [{"group": "engine", **option} for option in OPTIONS]
    (folder / "options.jsonl").write_text(lines(head, *options))
    (folder / "renamed.jsonl").write_text(lines(*RENAMED))
    (folder / "subkeys.jsonl").write_text(lines(head, *SUBKEYS))
    return OptionTable(folder / "options.jsonl")


def v(text: str) -> Version:
    """The version; a test that misspells one fails."""
    version = parse_version(text)
    assert version is not None
    return version
