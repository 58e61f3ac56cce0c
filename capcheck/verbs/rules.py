"""`capcheck rules`: every rule in one line."""

from __future__ import annotations

import argparse
import json
import sys
from typing import Any

from capcheck.cli import session_of
from capcheck.notices import NOTICES


def table(rules: dict[str, Any]) -> list[dict[str, str]]:
    """Id, title, severity and owner of every rule, the core's own included."""
    rows = [
        {"id": id, "title": one.title, "severity": one.severity, "plugin": one.plugin}
        for id, one in rules.items()
        if id == one.id
    ]
    rows += [
        {"id": id, "title": one.title, "severity": one.severity, "plugin": "capcheck"}
        for id, one in NOTICES.items()
    ]
    return sorted(rows, key=lambda row: row["id"])


def run(given: argparse.Namespace) -> int:
    """List them."""
    rows = table(dict(session_of(given).rules))
    if given.format == "json":
        json.dump(rows, sys.stdout, indent=2, ensure_ascii=False)
        print()
        return 0
    width = max(len(row["id"]) for row in rows)
    for row in rows:
        print(f"{row['id']:{width}}  {row['severity']:7}  {row['title']}")
    return 0
