"""What a merged deployment leaves open or says twice, in the fields that decide the most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from capcheck.deployment import ARGS, Deployment, FieldPath
from capcheck.engine import Engine
from capcheck.launch import OPEN_ARGS
from capcheck.problems import Problem
from capcheck.source import Node, to_plain
from capcheck.values import Place, Value

MODEL_ID: FieldPath = ("model", "id")
ACCELERATOR: FieldPath = ("hardware", "accelerator")
# (file, places that included it, option): equals are what one layer says of one option
Layer = tuple[str, tuple[Place, ...], str]


def unresolved(deployment: Deployment, named: Value[str] | None) -> Iterator[Problem]:
    """Variables that nobody resolved where nearly every check hangs on them.

    Other unknown fields only make the checks skip that need them: a finding for each variable
    would be noise.
    """
    fields = deployment.fields
    deciding: tuple[tuple[str, Value[Any] | None, str], ...] = (
        ("the model", fields.get(MODEL_ID) or named, "name it with --assume model=NAME"),
        ("the accelerator", fields.get(ACCELERATOR), "name it with --assume accelerator=NAME"),
        ("what else the engine is started with", fields.get(OPEN_ARGS), "set the variable"),
    )
    for what, value, help in deciding:
        # Written, but with nothing that can be read: not merely absent.
        if value is not None and value.unknown and value.origin.kind == "written":
            message = f"{what} is not known: {value.origin.why or 'it is not resolved'}"
            yield Problem("spec/unresolved", message, value.place, help)


def conflicts(deployment: Deployment, engine: Engine) -> Iterator[Problem]:
    """Two names of one option in one layer, with different values. A higher layer overrides."""
    table = engine.options
    if table is None:
        return
    seen: dict[Layer, tuple[str, Any]] = {}
    for path, value in deployment.under(*ARGS).items():
        if not path:  # `args` itself is no mapping: the schema says so
            continue
        name = path[0]
        option = table.resolve(name, None).option
        if option is None or value.origin.kind != "written" or not value.known:
            continue
        layer = (value.place.file, value.origin.via, option.name)
        said = _said(deployment, name)
        first, other = seen.setdefault(layer, (name, said))
        if first != name and other != said:
            word = value.origin.word or name
            message = f"{word} and {first} are one option with different values"
            yield Problem("spec/conflict", message, value.place, f"keep {option.name}")
            seen[layer] = (name, said)


def _said(deployment: Deployment, name: str) -> Any:
    """All that is said under one name of an option, as plain data."""
    fields = deployment.under(*ARGS, name)
    return sorted((path, repr(_plain(value))) for path, value in fields.items())


def _plain(value: Value[Node]) -> Any:
    return [to_plain(option) for option in value.options]
