"""Reads and validates one configuration file; faults are named with their line."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from capcheck.config import ConfigError

_LARGEST = 1_000_000  # bytes
_KEY = r"""(?:[A-Za-z0-9_-]+|"[^"\n]*"|'[^'\n]*')"""
_DOTTED = rf"{_KEY}(?:\s*\.\s*{_KEY})*"
_HEADER = re.compile(rf"\s*\[\[?\s*({_DOTTED})\s*\]\]?")
_ENTRY = re.compile(rf"\s*({_DOTTED})\s*=")

KeyPath = tuple[str, ...]


def _steps(dotted: str) -> KeyPath:
    return tuple(key.strip("\"'") for key in re.findall(_KEY, dotted))


def _keys(text: str) -> Iterator[tuple[int, KeyPath]]:
    """Line and path of each table and key, as far as a line tells."""
    table: KeyPath = ()
    for number, line in enumerate(text.splitlines(), 1):
        header = _HEADER.match(line)
        entry = _ENTRY.match(line)
        if header:
            table = _steps(header[1])
            yield number, table
        elif entry:
            yield number, (*table, *_steps(entry[1]))


def line_of(text: str, path: KeyPath) -> int:
    """The line where `path`, or the nearest table or key around it, is written; 0 for none."""
    best, depth = 0, 0
    for number, key in _keys(text):
        if len(key) > depth and key == path[: len(key)]:
            best, depth = number, len(key)
    return best


def _parse(file: Path) -> tuple[str, dict[str, Any]]:
    import tomllib

    try:
        data = file.read_bytes()
        if len(data) > _LARGEST:
            raise ConfigError(f"{file}: larger than any configuration")
        text = data.decode("utf-8-sig")
        return text, tomllib.loads(text)
    except OSError as wrong:
        raise ConfigError(f"{file}: {wrong.strerror or wrong}") from wrong
    except UnicodeDecodeError as wrong:
        raise ConfigError(f"{file}: not text in UTF-8") from wrong
    except (tomllib.TOMLDecodeError, RecursionError) as wrong:
        raise ConfigError(f"{file}: not valid TOML: {wrong}") from wrong


def _faults(values: Mapping[str, Any]) -> Iterable[tuple[KeyPath, str]]:
    from capcheck.schema_errors import Explainer, sorted_by_path, validator_of
    from capcheck.schema_tree import SchemaTree
    from capcheck.schemas_home import read_schema

    schema = read_schema("config")
    explainer = Explainer(SchemaTree(schema), "the configuration")
    for one in sorted_by_path(explainer.violations(validator_of(schema), values)):
        path = tuple(step for step in one.path if isinstance(step, str))
        yield path, "; ".join((one.message, *one.help))


def read_table(file: Path, table: KeyPath) -> Mapping[str, Any] | None:
    """The validated values of `table` (the whole file for `()`); None when it is not there.

    Raises ConfigError with every fault on a line of its own.
    """
    text, values = _parse(file)
    found: Any = values
    for step in table:
        if not isinstance(found, dict) or step not in found:
            return None
        found = found[step]
    if not isinstance(found, dict):
        raise ConfigError(f"{file}:{line_of(text, table)}: {'.'.join(table)} is not a table")
    lines = []
    for path, message in _faults(found):
        line = line_of(text, (*table, *path))
        lines.append(f"{file}:{line}: {message}" if line else f"{file}: {message}")
    if lines:
        raise ConfigError("\n".join(lines))
    return found
