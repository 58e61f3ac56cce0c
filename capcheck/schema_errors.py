"""The errors of a JSON Schema validator as sentences for people.

Nothing here knows what is validated: deployments and the configuration both use it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capcheck.schema_instance import MEASURE_WORDS
from capcheck.schema_tree import Path, Schema, SchemaTree, closest, dotted, first

if TYPE_CHECKING:
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import ValidationError

_LONGEST = 60
_TYPE_WORDS = {
    "array": "a list",
    "boolean": "true or false",
    "integer": "a whole number",
    "null": "nothing",
    "number": "a number",
    "object": "a mapping",
    "string": "text",
}
_LIMITS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "more than",
    "exclusiveMaximum": "less than",
}
_SIZES = {
    "minLength": ("at least", "character"),
    "maxLength": ("at most", "character"),
    "minItems": ("at least", "item"),
    "maxItems": ("at most", "item"),
    "minProperties": ("at least", "key"),
    "maxProperties": ("at most", "key"),
}
_FORMATS = {"date": "a date such as 2026-11-30", "date-time": "a time such as 2026-11-30T12:00:00Z"}


class Violation(NamedTuple):
    """One thing that the schema does not allow. `key`: an unknown key; `path` ends in it."""

    path: Path
    message: str
    help: tuple[str, ...] = ()
    key: bool = False


def quoted(text: str) -> str:
    """Text of a file inside a sentence: on one line, not too long."""
    text = " ".join(text.split())
    return f"'{text}'" if len(text) <= _LONGEST else f"'{text[:_LONGEST]}…'"


def found_word(found: Any) -> str:
    """A value inside a sentence."""
    if isinstance(found, str):
        return quoted(found)
    if isinstance(found, Mapping):
        return "a mapping" if found else "an empty mapping"
    if isinstance(found, list):
        return "a list" if found else "an empty list"
    return "empty" if found is None else json.dumps(found)


def either(words: Iterable[str]) -> str:
    """`a, b or c`."""
    *head, last = list(words)
    return f"{', '.join(head)} or {last}" if head else last


def _plural(count: int, unit: str) -> str:
    return f"{count} {unit}" if count == 1 else f"{count} {unit}s"


class Explainer:
    """Turns a validator's errors into violations.

    `written` gives a path's own text as a sentence shows it, None where there is none.
    """

    def __init__(
        self,
        tree: SchemaTree,
        whole: str,
        written: Callable[[Path], str | None] | None = None,
    ) -> None:
        self.tree = tree
        self.whole = whole  # what the top level is called
        self.written = written

    def violations(self, validator: Draft7Validator, instance: Any) -> list[Violation]:
        """Everything that the schema does not allow, each once."""
        found = [one for error in validator.iter_errors(instance) for one in self.explain(error)]
        return list(dict.fromkeys(found))

    def explain(self, error: ValidationError) -> Iterator[Violation]:
        """One error as one sentence; as several for several unknown keys."""
        path: Path = tuple(error.absolute_path)
        keyword = str(error.validator)
        if keyword == "additionalProperties":
            yield from self._unknown_keys(path, error)
        elif keyword in ("anyOf", "oneOf") and error.context:
            yield from self._branches(error)
        elif keyword == "required":
            yield self._required(path, error)
        else:
            expected, help = self._expected(keyword, _wanted(error), error)
            yield self._violation(path, error, expected, help)

    def _violation(
        self, path: Path, error: ValidationError, expected: str, help: tuple[str, ...] = ()
    ) -> Violation:
        if error.validator == "uniqueItems":
            return Violation(path, f"{self._name(path)} has one item twice", help)
        message = f"{self._name(path)} is {self._found(path, _instance(error))}: {expected}"
        return Violation(path, message, (*help, *self._hint(path, error)))

    def _name(self, path: Path) -> str:
        return dotted(path) or self.whole

    def _found(self, path: Path, instance: Any) -> str:
        written = None
        if self.written is not None and not isinstance(instance, (dict, list)):
            written = self.written(path)
        return found_word(instance) if written is None else written

    def _hint(self, path: Path, error: ValidationError) -> tuple[str, ...]:
        hint = first(self.tree.at(path), "x-hint")
        if hint is None or error.validator in _LIMITS:
            return ()
        text = _instance(error)
        named = isinstance(text, str) and 0 < len(text) <= _LONGEST and text.isprintable()
        return (hint.replace("NAME", text) if named else hint,)

    def unknown_key(self, path: Path, key: str, siblings: Collection[str]) -> Violation:
        """A key that is not allowed below `path`."""
        where = f" in {dotted(path)}" if path else ""
        message = f"unknown key {quoted(key)}{where}"
        near = self.tree.suggest(path, key)
        taken = [name for name in near if name in siblings and name != key]
        help = did_you_mean(near)
        if key in near:
            help = (f"{key} stands at the top level",)
        elif taken:
            help = (f"{taken[0]} is already given",)
        elif not near and self.tree.names(path):
            help = (f"{self._name(path)} takes {', '.join(self.tree.names(path))}",)
        return Violation((*path, key), message, help, key=True)

    def _unknown_keys(self, path: Path, error: ValidationError) -> Iterator[Violation]:
        """Keys that neither `properties` nor `patternProperties` beside the keyword allow."""
        beside = [error.schema] if isinstance(error.schema, Mapping) else []
        keys: Mapping[str, Any] = _instance(error)
        for key in keys:
            if not self.tree.child(beside, key):
                yield self.unknown_key(path, key, keys)

    def _required(self, path: Path, error: ValidationError) -> Violation:
        have = _instance(error)
        missing = [key for key in _wanted(error) if key not in have]
        named = next((key for key in missing if error.message.startswith(repr(key))), missing[0])
        says = first(self.tree.at((*path, named)), "description")
        help = (f"{named}: {says[:1].lower()}{says[1:]}",) if says else ()
        return Violation(path, f"{self._name(path)} lacks {named}", help)

    def _expected(
        self, keyword: str, wanted: Any, error: ValidationError
    ) -> tuple[str, tuple[str, ...]]:
        """What was expected, and what helps."""
        if keyword == "type":
            return f"expected {self._types(wanted, error.schema)}", ()
        if keyword in ("enum", "const"):
            return _choices(wanted if keyword == "enum" else [wanted], _instance(error))
        if keyword in _LIMITS:
            return f"expected {_LIMITS[keyword]} {found_word(wanted)}", ()
        if keyword in _SIZES:
            sign, unit = _SIZES[keyword]
            return f"expected {sign} {_plural(wanted, unit)}", ()
        if keyword == "multipleOf":
            return f"expected a multiple of {found_word(wanted)}", ()
        if keyword == "pattern":
            return f"expected text that matches {wanted}", ()
        if keyword == "format":
            return f"expected {_FORMATS.get(wanted, f'text in the form {wanted}')}", ()
        if keyword == "uniqueItems":
            return "expected each item once", ()
        says = error.schema.get("description") if isinstance(error.schema, Mapping) else None
        return f"not allowed here ({keyword})", (says,) if isinstance(says, str) else ()

    def _types(self, wanted: Any, schema: Any) -> str:
        """`a whole number or a mapping`; a measure is named by its kind."""
        types = [wanted] if isinstance(wanted, str) else list(wanted)
        kind = schema.get("x-measure") if isinstance(schema, Mapping) else None
        words = [MEASURE_WORDS[str(kind)]] if kind in MEASURE_WORDS else []
        if words:
            types = [name for name in types if name not in ("number", "string")]
        return either([*words, *(_TYPE_WORDS.get(name, name) for name in types)])

    def _branches(self, error: ValidationError) -> Iterator[Violation]:
        """The errors of the branch that the instance comes closest to; its types when none is."""
        branches: dict[Any, list[ValidationError]] = {}
        for inner in error.context or ():
            branches.setdefault(inner.schema_path[0], []).append(inner)
        fitting = [errors for errors in branches.values() if not _foreign(errors)]
        if not fitting:
            yield self._no_branch(error)
            return
        best = max(fitting, key=lambda errors: (_depth(errors), -len(errors)))
        for inner in best:
            yield from self.explain(inner)

    def _no_branch(self, error: ValidationError) -> Violation:
        path: Path = tuple(error.absolute_path)
        words: list[str] = []
        for one in _wanted(error):
            for part in self.tree.parts(one):
                if "type" in part:
                    words.append(self._types(part["type"], part))
                words += [found_word(choice) for choice in part.get("enum", ())]
        expected = f"expected {either(dict.fromkeys(words))}" if words else "fits no form of it"
        return self._violation(path, error, expected)


def did_you_mean(near: Iterable[str]) -> tuple[str, ...]:
    """The help for a misspelt word; empty when nothing is near."""
    words = list(near)
    return (f"did you mean {either(words)}?",) if words else ()


def _instance(error: ValidationError) -> Any:
    """What the error is about. (The library's type allows for errors that are not set up.)"""
    return error.instance


def _wanted(error: ValidationError) -> Any:
    """The value of the keyword that was not met."""
    return error.validator_value


def _choices(wanted: list[Any], found: Any) -> tuple[str, tuple[str, ...]]:
    words = [one if isinstance(one, str) else found_word(one) for one in wanted]
    near = closest(found, words) if isinstance(found, str) and len(words) > 1 else ""
    return f"expected {either(words)}", did_you_mean([near] if near else [])


def _foreign(errors: list[ValidationError]) -> bool:
    """Whether a branch is for another kind of value altogether."""
    return any(
        error.validator in ("type", "enum", "const") and not error.relative_path for error in errors
    )


def _depth(errors: list[ValidationError]) -> int:
    """How far the instance follows a branch before it leaves it."""
    return max(len(error.relative_path) for error in errors)


def sorted_by_path(violations: Iterable[Violation]) -> list[Violation]:
    """In the order of paths, so that output does not depend on the validator's."""

    def key(one: Violation) -> tuple[list[str], str]:
        return [str(step) for step in one.path], one.message

    return sorted(violations, key=key)


def validator_of(schema: Schema) -> Draft7Validator:
    """A validator that checks known formats too. The schema itself is not checked."""
    from jsonschema import Draft7Validator

    return Draft7Validator(dict(schema), format_checker=Draft7Validator.FORMAT_CHECKER)
