"""Keys inside the JSON options of a release, and what happens to a key that is not one."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import NamedTuple

from vllm_reader.hints import fields_of
from vllm_reader.registry import ARG_UTILS, Reading, Release
from vllm_reader.values import Class

INTERNAL = ("target_", "draft_model_config", "draft_parallel_config")


class Keys(NamedTuple):
    """The keys of one JSON option. No names: any key is allowed."""

    names: tuple[str, ...]
    stray: str  # what a key outside of `names` does: "error", "ignored" or "unsure"


def keys_of(release: Release, readings: Iterable[Reading]) -> dict[str, Keys]:
    """By option, for every JSON option of the release."""
    found: dict[str, Keys] = {}
    for reading in readings:
        if reading.shape.get("type") != "json":
            continue
        owner = _owner(release, reading.name)
        if owner is None:
            found[reading.name] = Keys((), "")
            continue
        names = [field.name for field in fields_of(release.evaluator, owner)]
        plain = tuple(name for name in names if not name.startswith(("_", *INTERNAL)))
        found[reading.name] = Keys(plain, _stray(release, owner, reading.name))
    return found


def _owner(release: Release, option: str) -> Class | None:
    """The class that an option's JSON becomes: KVTransferConfig for kv_transfer_config."""
    module = release.tree.module("vllm.config")
    wanted = option.replace("_", "")
    for name in (*module.definitions, *module.imports) if module else ():
        if module and name.lower() == wanted:
            found = release.evaluator.lookup(module, name)
            return found if isinstance(found, Class) else None
    return None


def _stray(release: Release, owner: Class, option: str) -> str:
    marks = [ast.unparse(mark) for mark in owner.node.decorator_list]
    config = release.tree.find("vllm.config.utils", "config")
    forbids = bool(config) and 'extra="forbid"' in _source(release, "vllm.config.utils")
    if any("forbid" in mark for mark in marks) or (forbids and "config" in marks):
        return "error"
    if not any(mark.startswith(("dataclass", "config")) for mark in marks):
        return "unsure"  # a pydantic model with its own settings
    home = owner.module.imports.get("dataclass")
    if home and home.module.startswith("pydantic"):
        return "ignored"
    if option == "speculative_config" or "json.loads(x))" in _source(release, ARG_UTILS):
        return "error"  # the class is called with the keys as arguments
    return "ignored"


def _source(release: Release, module: str) -> str:
    path = release.tree.root.joinpath(*module.split(".")).with_suffix(".py")
    return path.read_text("utf-8") if path.is_file() else ""
