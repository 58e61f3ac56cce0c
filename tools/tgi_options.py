"""Rebuilds the option table of plugins/capcheck_tgi from the launcher's sources.

    python tools/tgi_options.py CLONE      a clone of text-generation-inference with its tags

Reads `launcher/src/main.rs` of every release since 1.0.0 through git; nothing is built or run.
Writes options.jsonl, whose first line lists the inspected releases with their dates.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

OLDEST = (1, 0, 0)
LAUNCHER = "launcher/src/main.rs"
TARGET = Path(__file__).resolve().parent.parent / "plugins" / "capcheck_tgi" / "options.jsonl"
# Options that say nothing of the model or its memory.
HOST = frozenset({
    "api_key", "cors_allow_origin", "disable_crash_reports", "disable_usage_stats", "env",
    "graceful_termination_timeout", "hostname", "huggingface_hub_cache", "json_output",
    "master_addr", "master_port", "ngrok", "ngrok_authtoken", "ngrok_edge", "otlp_endpoint",
    "otlp_service_name", "payload_limit", "port", "prometheus_port", "shard_uds_path",
    "tokenizer_config_path", "usage_stats", "watermark_delta", "watermark_gamma",
})  # fmt: skip
NUMBERS = {"usize": "int", "u16": "int", "u32": "int", "u64": "int", "f32": "float"}


class Field(NamedTuple):
    """One field of the launcher's arguments as the source declares it."""

    kind: str  # the Rust type, Option<> removed
    optional: bool
    default: str | None


def git(clone: Path, *words: str) -> str:
    """What git prints for one command."""
    return subprocess.run(
        ["git", "-C", str(clone), *words], check=True, capture_output=True, text=True
    ).stdout


def releases(clone: Path) -> list[tuple[tuple[int, ...], str]]:
    """Released versions with their dates, oldest first."""
    found = []
    for tag in git(clone, "tag", "--list", "v*").split():
        match = re.fullmatch(r"v(\d+)\.(\d+)\.(\d+)", tag)
        if match:
            version = tuple(int(part) for part in match.groups())
            if version >= OLDEST:
                found.append((version, git(clone, "log", "-1", "--format=%cs", tag).strip()))
    return sorted(found)


def block(source: str, head: str) -> str:
    """The body of a struct or enum."""
    start = source.index(head)
    return source[start : source.index("\n}\n", start)]


def fields(source: str) -> dict[str, Field]:
    """The launcher's arguments by name."""
    found: dict[str, Field] = {}
    attributes = ""
    for line in block(source, "struct Args").splitlines()[1:]:
        text = line.strip()
        if text.startswith("///"):
            continue
        if text.startswith("#[") or attributes.count("(") > attributes.count(")"):
            attributes += text
            continue
        match = re.fullmatch(r"(?:pub )?(\w+): (.*),", text)
        if match:
            kind = re.fullmatch(r"Option<(.*)>", match[2])
            default = re.search(r'default_value = "([^"]*)"', attributes)
            found[match[1]] = Field(
                kind[1] if kind else match[2], bool(kind), default[1] if default else None
            )
            attributes = ""
    return found


def words_of(source: str, name: str) -> list[str]:
    """The values of an enum as clap spells them."""
    found, named = [], ""
    for line in block(source, f"enum {name}").splitlines()[1:]:
        text = line.strip()
        spelled = re.search(r'name = "([^"]*)"', text)
        if spelled and text.startswith("#["):
            named = spelled[1]
        match = re.fullmatch(r"([A-Z]\w*),", text)
        if match:
            kebab = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", match[1]).lower()
            found.append(named or kebab)
            named = ""
    return found


def shape_of(field: Field) -> dict[str, Any]:
    """How the launcher reads the value."""
    if field.kind == "bool":
        # A switch; where it is optional, true or false follows.
        return {"type": "bool"} | ({"optional_value": True} if field.optional else {})
    if field.kind.startswith("Vec<"):
        inner = NUMBERS.get(field.kind[4:-1], "text")
        return {"type": "text" if inner == "int" else "list"} | (
            {} if inner == "int" else {"item": inner, "repeated": True}
        )
    kind = NUMBERS.get(field.kind)
    if kind is None:
        return {"type": "text" if field.kind == "String" else "choice"}
    return {"type": kind, "bounds": {"ge": 0}}


def choices_of(source: str, field: Field) -> list[str]:
    """The words that an option takes; [] where it takes any."""
    if field.kind in NUMBERS or field.kind in ("String", "bool") or field.kind.startswith("Vec"):
        return []
    return words_of(source, field.kind) if f"enum {field.kind}" in source else []


def default_of(field: Field) -> Any:
    """The default in the table's own type; null where the launcher decides at start."""
    if field.kind == "bool" and not field.optional:
        return False
    if field.default is None:
        return None
    kind = NUMBERS.get(field.kind)
    return {"int": int, "float": float}.get(kind or "", str)(field.default)


def history(steps: list[tuple[str, Any]]) -> list[list[Any]]:
    """Only the releases in which something changes."""
    kept: list[list[Any]] = []
    for release, value in steps:
        if not kept or kept[-1][1] != value:
            kept.append([release, value])
    return kept


def record(name: str, seen: list[str], by_release: dict[str, tuple[str, Field]]) -> dict[str, Any]:
    """One line of the table."""
    having = [release for release in seen if release in by_release]
    first, last = seen.index(having[0]), seen.index(having[-1])
    found: dict[str, Any] = {"name": name, "group": "frontend" if name in HOST else "engine"}
    if first:
        found |= {"before_first": seen[first - 1], "first": having[0]}
    if last + 1 < len(seen):
        found |= {"last": having[-1], "gone": seen[last + 1]}
    at = {release: by_release[release] for release in having}
    found["defaults"] = history([(one, default_of(field)) for one, (_, field) in at.items()])
    found["shapes"] = history([(one, shape_of(field)) for one, (_, field) in at.items()])
    choices = history([(one, choices_of(source, field)) for one, (source, field) in at.items()])
    if any(words for _, words in choices):
        found["choices"] = choices
    return found


def table(clone: Path) -> list[dict[str, Any]]:
    """The head and every option."""
    dated = [(".".join(map(str, version)), date) for version, date in releases(clone)]
    sources = {release: git(clone, "show", f"v{release}:{LAUNCHER}") for release, _ in dated}
    options: dict[str, dict[str, tuple[str, Field]]] = {}
    for release, source in sources.items():
        for name, field in fields(source).items():
            options.setdefault(name, {})[release] = (source, field)
    seen = list(sources)
    head = {"releases": [list(one) for one in dated]}
    return [head, *(record(name, seen, options[name]) for name in sorted(options))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("clone", type=Path)
    parser.add_argument("--out", type=Path, default=TARGET)
    given = parser.parse_args()
    lines = [json.dumps(line) for line in table(given.clone)]
    given.out.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
