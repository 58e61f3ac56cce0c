"""The deployment schema with the plugins' parts, and what is wrong with a draft under it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capcheck.deployment import Draft, flatten
from capcheck.schema_errors import (
    Explainer,
    Violation,
    did_you_mean,
    found_word,
    quoted,
    validator_of,
)
from capcheck.schema_instance import instance_of, key_place, node_at, value_place
from capcheck.schema_sense import senseless
from capcheck.schema_tree import Path, Schema, SchemaTree, dotted, first
from capcheck.schemas_home import read_schema
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar
from capcheck.values import Place

if TYPE_CHECKING:
    from jsonschema import Draft7Validator

API_VERSION = "capcheck/v1"
KIND = "Deployment"
_OWN_KEY = re.compile(r"x-[A-Za-z0-9][A-Za-z0-9._-]*")


class Extension(NamedTuple):
    """A top-level key of the deployment that a plugin owns: `x-acme`, or an open one of ours.

    `schema` is a draft-07 fragment; `$ref` may only point inside it (`#/...`).
    """

    key: str
    schema: Schema


class BadExtension(ValueError):
    """A plugin's part of the schema cannot be used: a fault of the plugin."""


class Problem(NamedTuple):
    """Something that the schema does not allow, at its place."""

    rule: str  # "spec/unknown-key" or "spec/schema"
    message: str
    place: Place
    help: str = ""


def _inside(fragment: Any, home: str) -> Any:
    """The fragment with its references moved to where it is embedded. Raises BadExtension."""
    if isinstance(fragment, list):
        return [_inside(one, home) for one in fragment]
    if not isinstance(fragment, Mapping):
        return fragment
    moved = {name: _inside(one, home) for name, one in fragment.items()}
    reference = fragment.get("$ref")
    if isinstance(reference, str):
        if not reference.startswith("#"):
            raise BadExtension(f"$ref {quoted(reference)} points outside the fragment")
        moved["$ref"] = f"{home}{reference[1:]}"
    return moved


def _check_references(tree: SchemaTree, fragment: Any) -> None:
    if isinstance(fragment, list):
        for one in fragment:
            _check_references(tree, one)
    elif isinstance(fragment, Mapping):
        if isinstance(fragment.get("$ref"), str):
            try:
                list(tree.parts(fragment))
            except (KeyError, IndexError, ValueError, TypeError) as wrong:
                raise BadExtension(f"$ref {quoted(fragment['$ref'])} leads nowhere") from wrong
        for one in fragment.values():
            _check_references(tree, one)


def _embed(schema: dict[str, Any], extension: Extension) -> None:
    key, properties = extension.key, schema["properties"]
    ours = properties.get(key)
    if ours is None and not _OWN_KEY.fullmatch(key):
        raise BadExtension(f"{quoted(key)}: a plugin's own key begins with x-")
    if ours is not None and ours.get("additionalProperties") is not True:
        raise BadExtension(f"{quoted(key)} is not open to plugins")
    if not isinstance(extension.schema, Mapping):
        raise BadExtension(f"{key}: the schema is not a mapping")
    plain = {name: one for name, one in extension.schema.items() if name not in ("$id", "$schema")}
    try:
        properties[key] = _inside(plain, f"#/properties/{key}")
        _check_references(SchemaTree(schema), properties[key])
    except BadExtension as wrong:
        raise BadExtension(f"{key}: {wrong}") from wrong


def check_extension(extension: Extension) -> None:
    """Whether a plugin's part is a sound draft-07 schema. Raises BadExtension.

    Costs some milliseconds: for vendors' keys once a run, for our own in the tests.
    """
    from jsonschema import Draft7Validator
    from jsonschema.exceptions import SchemaError

    deployment_schema((extension,))
    try:
        Draft7Validator.check_schema(extension.schema)
    except SchemaError as wrong:
        where = dotted(wrong.absolute_path) or "the schema"
        found = found_word(wrong.instance)
        raise BadExtension(f"{extension.key}: {where} is {found}, no JSON Schema") from wrong


def deployment_schema(extensions: Iterable[Extension] = ()) -> dict[str, Any]:
    """The schema of capcheck/v1 with every plugin's part. Raises BadExtension."""
    schema = read_schema("deployment")
    for extension in extensions:
        _embed(schema, extension)
    return schema


class Validator:
    """The schema made ready: validating many drafts builds it once, and only when needed."""

    def __init__(self, extensions: Iterable[Extension] = ()) -> None:
        """Raises BadExtension."""
        self.schema = deployment_schema(extensions)
        self.tree = SchemaTree(self.schema)
        self._validator: Draft7Validator | None = None

    def problems(self, draft: Draft) -> tuple[Problem, ...]:
        """What the schema, and plain sense, do not allow in the merged draft, by place."""
        found = {_placed(draft, one) for one in self._violations(_with_header(draft))}
        return tuple(sorted(found, key=lambda one: (*one.place[:3], one.rule, one.message)))

    def _violations(self, draft: Draft) -> Iterator[Violation]:
        if self._validator is None:
            self._validator = validator_of(self.schema)
        plain, misread = instance_of(draft, self.tree)
        # Formats have looked at their header; what they read carries none of ours.
        whole = {"apiVersion": API_VERSION, "kind": KIND, **plain}
        explainer = Explainer(self.tree, "the deployment", lambda path: _shown_at(draft, path))
        yield from explainer.violations(self._validator, whole)
        for path, node, expected in misread:
            message = f"{dotted(path)} is {shown_scalar(node)}: expected {expected}"
            hint = first(self.tree.at(path), "x-hint")
            yield Violation(path, message, (hint,) if hint else ())
        for path, siblings in _empty(draft.root):
            known = self.tree.at(path) or not self.tree.at(path[:-1])
            if not known and not _has(whole, path):
                yield explainer.unknown_key(path[:-1], path[-1], siblings)
        yield from senseless({"name": draft.name, **whole})

    def path_problem(self, path: tuple[str, ...]) -> str:
        """Why no deployment has a field of that path; "" when one may."""
        for depth, key in enumerate(path):
            if not self.tree.at(path[: depth + 1]):
                near = did_you_mean(self.tree.suggest(path[:depth], key))
                return "; ".join((f"a deployment has no {dotted(path)}", *near))
        return ""


def problems(draft: Draft, extensions: Iterable[Extension] = ()) -> tuple[Problem, ...]:
    """As `Validator.problems`, for a single draft. Raises BadExtension."""
    return Validator(extensions).problems(draft)


def _with_header(draft: Draft) -> Draft:
    """The draft with those top-level keys of its own document that its reader kept to itself."""
    if not isinstance(draft.root, MappingNode):
        return draft
    have = {path[0] for path in draft.fields}
    more = {
        path: value
        for key, child in draft.root.entries
        if key.text not in have
        for path, value in flatten(child, (key.text,), word=key.text).items()
    }
    return draft._replace(fields={**more, **draft.fields})


def _shown_at(draft: Draft, path: Path) -> str | None:
    node = node_at(draft, path)
    return shown_scalar(node) if isinstance(node, Scalar) and node.type != "null" else None


def shown_scalar(node: Scalar) -> str:
    """A scalar as the file has it: text in quotes, numbers and flags bare."""
    bare = node.style == "plain" and node.type in ("integer", "number", "boolean")
    return node.text if bare else quoted(node.text)


def _empty(
    node: Node | None, at: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Keys with nothing below them, and their siblings."""
    if not isinstance(node, MappingNode):
        return
    names = [key.text for key, _ in node.entries]
    for key, child in node.entries:
        path = (*at, key.text)
        nothing = isinstance(child, Scalar) and child.type == "null"
        if nothing or (isinstance(child, MappingNode) and not child.entries):
            yield path, names
        else:
            yield from _empty(child, path)


def _has(plain: Any, path: Path) -> bool:
    for step in path:
        if not isinstance(plain, Mapping) or step not in plain:
            return False
        plain = plain[step]
    return True


def _placed(draft: Draft, one: Violation) -> Problem:
    place = key_place(draft, one.path) if one.key else value_place(draft, one.path)
    rule = "spec/unknown-key" if one.key else "spec/schema"
    return Problem(rule, one.message, place, " · ".join(one.help))
