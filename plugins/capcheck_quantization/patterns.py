"""Module names, and the patterns by which checkpoints exclude or target modules.

Patterns come from files of strangers: their number and length are capped, and a regular
expression is taken apart so that matching it stays quick; one that cannot be is not guessed at.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from fnmatch import translate
from functools import lru_cache

from .expressions import Expression, expressions

MOST_PATTERNS = 20_000
LONGEST_PATTERN = 300

_WRAPPERS = frozenset(
    ("model", "language_model", "backbone", "transformer", "text_model", "llm", "thinker")
)
_LAYER_LISTS = ("model.layers", "model.language_model.layers", "language_model.model.layers",
                "backbone.layers", "layers")  # fmt: skip
_DRAFT_LISTS = ("mtp.layers.0", "model.mtp.layers.0", "mtp")
_INDEXED = re.compile(
    r"^(?P<before>(?:.*\.)?(?:layers|blocks|h)\.)(?P<index>\d{1,5})(?P<after>\D.*)?$"
)
_FOLDED = re.compile(r"\{(\d{1,5}(?:-\d{1,5})?(?:,\d{1,5}(?:-\d{1,5})?)*)\}")
_EXPERT = re.compile(r"\bexperts\.(?:\d+|\*)\.")
_ENDS_IN_INDEX = re.compile(r"\.\d+\*$")


def canonical(name: str) -> str:
    """A module's name without what wraps the language model, and without an expert's number."""
    parts = name.split(".")
    while len(parts) > 1 and parts[0] in _WRAPPERS:
        parts.pop(0)
    return _EXPERT.sub("experts.", ".".join(parts))


def fold(names: Iterable[str]) -> tuple[str, ...]:
    """The same patterns, those that differ only in a layer's index as one: `layers.{0-2,5}.x`."""
    order: dict[tuple[str, str] | str, list[int]] = {}
    for name in names:
        known = name if name.startswith("re:") else canonical(name)
        found = None if known.startswith("re:") else _INDEXED.match(known)
        if found is None:
            order.setdefault(known, [])
        else:
            key = (found["before"], found["after"] or "")
            order.setdefault(key, []).append(int(found["index"]))
    return tuple(_folded(key, indices) for key, indices in order.items())


def _folded(key: tuple[str, str] | str, indices: list[int]) -> str:
    if isinstance(key, str):
        return key
    before, after = key
    distinct = sorted(set(indices))
    if len(distinct) == 1:
        return f"{before}{distinct[0]}{after}"
    return f"{before}{{{_ranges(distinct)}}}{after}"


def _ranges(distinct: Sequence[int]) -> str:
    runs: list[list[int]] = []
    for index in distinct:
        if runs and index == runs[-1][1] + 1:
            runs[-1][1] = index
        else:
            runs.append([index, index])
    return ",".join(str(a) if a == b else f"{a}-{b}" for a, b in runs)


class _Plain:
    """Whole dotted parts of a name: `mlp.gate` is in `layers.3.mlp.gate`, not in `mlp.gate_up`."""

    def __init__(self, pattern: str) -> None:
        self._run = f".{pattern.strip('.')}."

    def matches(self, name: str) -> bool:
        return self._run in f".{name}."


class _Glob:
    """A shell wildcard over the whole name."""

    def __init__(self, pattern: str) -> None:
        # `layers.1*` means layer 1 and what is in it, not layers 10 to 19.
        shell = f"{pattern[:-1]}.*" if _ENDS_IN_INDEX.search(pattern) else pattern
        self._compiled = re.compile(translate(shell))

    def matches(self, name: str) -> bool:
        return self._compiled.match(name) is not None


class _Ranged:
    """A folded pattern: the layer's index is in its ranges, and the rest matches."""

    def __init__(self, pattern: str, found: re.Match[str]) -> None:
        before, after = pattern[: found.start()], pattern[found.end() :]
        self._indices = _indices(found[1])
        self._layer = re.compile(rf"(?:^|\.){re.escape(before.lstrip('.'))}(\d+)(?=\.|$)")
        star = any(char in after for char in "*?[")
        self._rest = _Glob(f"0{after}") if star else _Plain(f"0{after}")

    def matches(self, name: str) -> bool:
        found = self._layer.search(name)
        if found is None or int(found[1]) not in self._indices:
            return False
        return self._rest.matches(f"0{name[found.end() :]}")


def _indices(text: str) -> frozenset[int]:
    found: set[int] = set()
    for item in text.split(","):
        first, _, last = item.partition("-")
        found.update(range(int(first), min(int(last or first), int(first) + 10_000) + 1))
    return frozenset(found)


class Matcher:
    """Some patterns, ready to be asked about modules."""

    def __init__(self, patterns: Sequence[str]) -> None:
        self.names: list[_Plain | _Glob | _Ranged] = []
        self.expressions: list[Expression] = []
        self.refused: list[str] = []  # what is not matched: too long, too many, too costly
        self.by_layer = False  # whether any pattern tells layers apart
        self.refused.extend(patterns[MOST_PATTERNS:])
        for pattern in patterns[:MOST_PATTERNS]:
            self._add(pattern)
        self._known: dict[tuple[int | None, str, bool], bool] = {}

    def _add(self, pattern: str) -> None:
        if not pattern or len(pattern) > LONGEST_PATTERN:
            self.refused.append(pattern[:LONGEST_PATTERN])
            return
        if pattern.startswith("re:"):
            self._add_expression(pattern)
            return
        known = canonical(pattern)
        folded = _FOLDED.search(known)
        self.by_layer = self.by_layer or bool(folded) or _INDEXED.match(known) is not None
        if folded is not None:
            self.names.append(_Ranged(known, folded))
        elif any(char in known for char in "*?["):
            self.names.append(_Glob(known))
        else:
            self.names.append(_Plain(known))

    def _add_expression(self, pattern: str) -> None:
        found = expressions(pattern[3:])
        if found is None:
            self.refused.append(pattern)
            return
        self.by_layer = self.by_layer or bool(re.search(r"(?<![\\{,\d])\d", pattern))
        self.expressions.extend(found)

    def matches(self, layer: int | None, module: str, *, draft: bool = False) -> bool:
        """Whether a pattern names this module; `module` is its name inside the layer."""
        key = (layer, module, draft)
        if key not in self._known:
            self._known[key] = self._matches(layer, module, draft)
        return self._known[key]

    def _matches(self, layer: int | None, module: str, draft: bool) -> bool:
        short = [canonical(module) if layer is None else f"layers.{layer}.{canonical(module)}"]
        if draft:
            short.extend(f"{one}.{canonical(module)}" for one in _DRAFT_LISTS)
        if any(one.matches(name) for one in self.names for name in short):
            return True
        if not self.expressions:
            return False
        full = _full_names(layer, module, draft)
        return any(one.matches(name) for one in self.expressions for name in full)


def _full_names(layer: int | None, module: str, draft: bool) -> list[str]:
    """The names that checkpoints may give the module: expressions are anchored at the start."""
    if layer is None:
        return [module, f"model.{module}", f"language_model.{module}"]
    lists = [f"{one}.{layer}" for one in _LAYER_LISTS]
    if draft:
        lists.extend(_DRAFT_LISTS)
    inside = [module]
    if ".experts." in f".{module}" and "experts.0." not in module:
        inside.append(module.replace("experts.", "experts.0.", 1))
    return [f"{one}.{name}" for one in lists for name in inside]


@lru_cache(maxsize=128)
def matcher(patterns: tuple[str, ...]) -> Matcher:
    """The matcher of some patterns, made once."""
    return Matcher(patterns)
