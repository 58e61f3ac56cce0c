"""Reading a config.json that a stranger may have written: typed, bounded, never a KeyError."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

LARGEST_SIZE = 10**9  # of one dimension; real vocabularies and n-gram tables stay below 10^8
MOST_LAYERS = 2000
MOST_BLOCKS = 300  # of an encoder, each with tensors of its own
MOST_EXPERTS = 100_000
MOST_ITEMS = 5000  # of one list
MOST_CHARACTERS = 200  # of one word


class BadConfig(ValueError):
    """A key of the model's configuration is missing or holds what no model could have."""

    def __init__(self, key: str, expected: str) -> None:
        super().__init__(f"{key}: expected {expected}")
        self.key = key
        self.expected = expected


class UnknownFamily(ValueError):
    """No family is registered for this model_type; `near` are the listed ones it resembles."""

    def __init__(self, model_type: str, near: tuple[str, ...] = ()) -> None:
        super().__init__(f"unknown model_type {model_type!r}")
        self.model_type = model_type
        self.near = near


class Config:
    """One mapping of a config.json. A null counts as absent, as it does for the engines."""

    __slots__ = ("_path", "values")

    def __init__(self, values: Mapping[str, Any], path: str = "") -> None:
        self.values = values
        self._path = path

    def _name(self, key: str) -> str:
        return f"{self._path}.{key}" if self._path else key

    def _first(self, keys: tuple[str, ...]) -> tuple[str, Any]:
        for key in keys:
            value = self.values.get(key)
            if value is not None:
                return key, value
        return keys[0], None

    def with_values(self, more: Mapping[str, Any]) -> Config:
        """The same section with more keys told."""
        return Config({**self.values, **more}, self._path)

    def bad(self, key: str, expected: str) -> BadConfig:
        """The error to raise when a value of this section makes no sense with its neighbours."""
        return BadConfig(self._name(key), expected)

    def has(self, *keys: str) -> bool:
        """Whether one of the keys is told."""
        return self._first(keys)[1] is not None

    def optional(self, *keys: str, least: int = 0, most: int = LARGEST_SIZE) -> int | None:
        """The first told key as a whole number, or None when none is. Raises BadConfig."""
        key, value = self._first(keys)
        if value is None:
            return None
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise self.bad(key, f"a whole number from {least} to {most}")
        return value

    def whole(
        self, *keys: str, default: int | None = None, least: int = 0, most: int = LARGEST_SIZE
    ) -> int:
        """As `optional`, with a default; without one the key is required. Raises BadConfig."""
        value = self.optional(*keys, least=least, most=most)
        if value is None:
            if default is None:
                raise self.bad(keys[0], f"a whole number from {least} to {most}")
            return default
        return value

    def size(self, *keys: str, default: int | None = None) -> int:
        """A dimension: a whole number that is not zero. Raises BadConfig."""
        return self.whole(*keys, default=default, least=1)

    def number(self, key: str, default: float) -> float:
        """A finite number, whole or not. Raises BadConfig."""
        value = self.values.get(key)
        if value is None:
            return default
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise self.bad(key, "a number")
        if not -LARGEST_SIZE <= value <= LARGEST_SIZE:
            raise self.bad(key, f"a number within ±{LARGEST_SIZE}")
        return float(value)

    def flag(self, *keys: str, default: bool = False) -> bool:
        """True or false. Raises BadConfig."""
        key, value = self._first(keys)
        if value is None:
            return default
        if not isinstance(value, bool):
            raise self.bad(key, "true or false")
        return value

    def word(self, *keys: str, default: str = "") -> str:
        """A short text. Raises BadConfig."""
        key, value = self._first(keys)
        if value is None:
            return default
        if not isinstance(value, str) or len(value) > MOST_CHARACTERS:
            raise self.bad(key, f"a text of at most {MOST_CHARACTERS} characters")
        return value

    def items(self, *keys: str) -> tuple[Any, ...] | None:
        """A list as a tuple, or None when it is not told. Raises BadConfig."""
        key, value = self._first(keys)
        if value is None:
            return None
        if not isinstance(value, (list, tuple)) or len(value) > MOST_ITEMS:
            raise self.bad(key, f"a list of at most {MOST_ITEMS} items")
        return tuple(value)

    def words(self, *keys: str) -> tuple[str, ...] | None:
        """A list of texts, or None when it is not told. Raises BadConfig."""
        items = self.items(*keys)
        if items is not None and not all(isinstance(item, str) for item in items):
            raise self.bad(self._first(keys)[0], "a list of texts")
        return items

    def wholes(self, *keys: str, most: int = LARGEST_SIZE) -> tuple[int, ...] | None:
        """A list of whole numbers, or None when it is not told. Raises BadConfig."""
        items = self.items(*keys)
        if items is None:
            return None
        for item in items:
            if isinstance(item, bool) or not isinstance(item, int) or not 0 <= item <= most:
                raise self.bad(self._first(keys)[0], f"a list of whole numbers up to {most}")
        return items

    def section(self, *keys: str) -> Config:
        """A nested mapping. Raises BadConfig when it is missing or none."""
        key, value = self._first(keys)
        if not isinstance(value, Mapping):
            raise self.bad(key, "a mapping")
        return Config(value, self._name(key))

    def section_or_self(self, *keys: str) -> Config:
        """A nested mapping, or this one where the keys lie flat."""
        return self.section(*keys) if self.has(*keys) else self

    def sections(self, key: str) -> tuple[Config, ...]:
        """A list of mappings; empty when it is not told. Raises BadConfig."""
        found = []
        for index, item in enumerate(self.items(key) or ()):
            if not isinstance(item, Mapping):
                raise self.bad(f"{key}[{index}]", "a mapping")
            found.append(Config(item, f"{self._name(key)}[{index}]"))
        return tuple(found)

    def per_layer(self, key: str, layers: int) -> tuple[str, ...] | None:
        """A list with one text a layer, or None when it is not told. Raises BadConfig."""
        words = self.words(key)
        if words is not None and len(words) < layers:
            raise self.bad(key, f"one text for each of {layers} layers")
        return words[:layers] if words is not None else None

    def multiple(self, whole: int, part: int, key: str) -> int:
        """`whole / part` where it must come out even. Raises BadConfig naming `key`."""
        if part <= 0 or whole % part:
            raise self.bad(key, f"a divisor of {whole}")
        return whole // part
