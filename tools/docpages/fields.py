"""Every field of a JSON Schema as Markdown: what it takes, its default, an example."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from capcheck import config
from capcheck.cli import TRACE_VARIABLE
from capcheck.intake import ASSUMABLE
from capcheck.measure import NotAMeasure
from capcheck.schema import deployment_schema
from capcheck.schema_instance import MEASURES
from capcheck.schema_tree import SchemaTree, first
from capcheck.schemas_home import read_schema
from docpages.blocks import table

Parts = list[Mapping[str, Any]]
Path = tuple[str | int, ...]

_TYPES = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "null",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_LIMITS = {
    "minimum": "at least",
    "exclusiveMinimum": "more than",
    "maximum": "at most",
    "exclusiveMaximum": "less than",
}


def _measure(kind: str) -> str:
    """What a measure looks like, in the words of the message for a bad one."""
    try:
        MEASURES[kind]("no measure")
    except NotAMeasure as wrong:
        return wrong.expected
    raise ValueError(f"the measure {kind} takes any text")


def _choices(parts: Parts) -> list[str]:
    wanted = first(parts, "enum") or [first(parts, "const")]
    return [f"`{json.dumps(one).strip(chr(34))}`" for one in wanted if one is not None]


def _types(parts: Parts) -> list[str]:
    """The kinds of value that a field takes, in words."""
    named = first(parts, "type") or []
    types = [named] if isinstance(named, str) else list(named)
    measure = first(parts, "x-measure")
    words = [_measure(measure)] if measure else []
    if measure:
        types = [one for one in types if one not in ("number", "string", "integer")]
    return words + [_TYPES[one] for one in types]


def takes(parts: Parts) -> str:
    """One line: types or choices, limits, default."""
    words = _choices(parts) or _types(parts)
    facts = [" or ".join(words) if words else "anything"]
    for keyword, sign in _LIMITS.items():
        limit = first(parts, keyword)
        if limit is not None and first(parts, "x-measure") != "share":
            facts.append(f"{sign} {limit}")
    default = first(parts, "default")
    if default is not None and default not in ({}, []):
        facts.append(f"default `{json.dumps(default).strip(chr(34))}`")
    return "; ".join(facts)


def inline(value: Any) -> str:
    """A value in the short form of YAML."""
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{key}: {inline(one)}" for key, one in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(inline(one) for one in value) + "]"
    if isinstance(value, str) and _is_plain(value):
        return value
    return json.dumps(value, ensure_ascii=False)


def _is_plain(text: str) -> bool:
    """Whether YAML reads an unquoted text as that text, and no person as a number."""
    if not text.strip("0123456789.") or set(text) & set("{}[],"):
        return False
    try:
        return bool(yaml.safe_load(text) == text)
    except yaml.YAMLError:
        return False


def _toml(value: Any) -> str:
    """A value as TOML has it."""
    if isinstance(value, Mapping):
        pairs = (f"{json.dumps(key)} = {_toml(one)}" for key, one in value.items())
        return "{" + ", ".join(pairs) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(_toml(one) for one in value) + "]"
    return json.dumps(value, ensure_ascii=False)


class FieldList:
    """The fields of one schema. `toml`: examples are settings rather than YAML."""

    def __init__(self, schema: Mapping[str, Any], *, toml: bool = False, level: int = 3) -> None:
        self.tree = SchemaTree(schema)
        self.toml = toml
        self.level = level

    def _names(self, path: Path) -> list[str]:
        """The fields below a path; those of a list's items when it is one."""
        return self.tree.names(path) or self.tree.names((*path, 0))

    def _below(self, path: Path, name: str) -> Path:
        return (*path, name) if self.tree.names(path) else (*path, 0, name)

    def _example(self, name: str, parts: Parts) -> str:
        examples = first(parts, "examples") or []
        if not examples:
            return ""
        if self.toml:
            shown = [f"`{name} = {_toml(one)}`" for one in examples]
        else:
            shown = [f"`{name}: {inline(one)}`" for one in examples]
        return f"Example: {' or '.join(shown)}"

    def _is_leaf(self, path: Path) -> bool:
        return not self._names(path) and not self._example("", self.tree.at(path))

    def _heading(self, path: Path) -> list[str]:
        shown = ".".join("[]" if one == 0 else str(one) for one in path).replace(".[]", "[]")
        return [f"{'#' * self.level} `{shown}`", ""]

    def entry(self, path: Path) -> list[str]:
        """The lines of one field."""
        parts = self.tree.at(path)
        lines = [*self._heading(path), f"Takes {takes(parts)}.", ""]
        description = first(parts, "description")
        if description:
            lines += [str(description), ""]
        example = self._example(str(path[-1]), parts)
        return lines + ([example, ""] if example else [])

    def _rows(self, below: list[Path]) -> list[str]:
        """Fields without examples of their own, as a table."""
        rows = []
        for path in below:
            parts = self.tree.at(path)
            rows.append((f"`{path[-1]}`", takes(parts), str(first(parts, "description") or "")))
        return [table(("field", "takes", "meaning"), rows), ""]

    def lines(self, path: Path = ()) -> Iterator[str]:
        """All fields below a path, each before those inside it."""
        below = [self._below(path, name) for name in self._names(path)]
        if path and below and all(self._is_leaf(one) for one in below):
            yield from self._rows(below)
            return
        for one in below:
            yield from self.entry(one)
            yield from self.lines(one)

    def markdown(self) -> str:
        """The whole list."""
        return "\n".join(self.lines())


def deployment() -> str:
    """The fields of a spec, the parts of shipped plugins included."""
    from docpages.known import plugins

    return FieldList(deployment_schema(plugins().extensions().values())).markdown()


def settings() -> str:
    """The keys of a configuration."""
    return FieldList(read_schema("config"), toml=True).markdown()


def variables() -> str:
    """The environment variables that stand for settings."""
    rows = [(f"`{config.CONFIG_VARIABLE}`", "the configuration file, as `--config`")]
    for key in (*config.LISTS, "format", "strict"):
        form = "separated by commas" if key in config.LISTS else "as in the configuration"
        form = "true or false" if key == "strict" else form
        name = config.PREFIX + key.upper().replace("-", "_")
        rows.append((f"`{name}`", f"`{key}`, {form}"))
    rows.append((f"`{TRACE_VARIABLE}`", "when set, an internal error shows its whole trace"))
    return table(("variable", "setting"), rows)


def assumptions() -> str:
    """The names that can be assumed, and the fields they fill."""
    rows = [(f"`{name}`", f"`{'.'.join(path)}`") for name, path in ASSUMABLE.items()]
    return table(("name", "field"), rows)
