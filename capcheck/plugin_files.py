"""Plugins that are named: by module or by file; and functions that were meant to be hooks."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from capcheck import hookspecs
from capcheck.guard import RAISED, describe

PREFIX = "capcheck_"
_LOADED: dict[Path, ModuleType] = {}  # a file is run once in a process


class UnusablePlugin(Exception):
    """A plugin that was asked for by name cannot be had."""


def load_named(name: str) -> ModuleType:
    """A plugin by module name or by path of a .py file. Raises UnusablePlugin."""
    from importlib import import_module

    try:
        return _load_file(Path(name)) if name.endswith(".py") else import_module(name)
    except UnusablePlugin:
        raise
    except RAISED as error:
        raise UnusablePlugin(f"--plugin {name}: {describe(error)}") from error


def _load_file(path: Path) -> ModuleType:
    from importlib.util import module_from_spec, spec_from_file_location

    if not path.is_file():
        raise UnusablePlugin(f"--plugin {path}: there is no such file")
    path = path.resolve()
    if path not in _LOADED:
        name = _free_name(path)
        spec = spec_from_file_location(name, path)
        if spec is None or spec.loader is None:
            raise UnusablePlugin(f"--plugin {path}: not a Python module")
        module = module_from_spec(spec)
        sys.modules[name] = module
        try:
            spec.loader.exec_module(module)
        except BaseException:
            del sys.modules[name]
            raise
        _LOADED[path] = module
    return _LOADED[path]


def _free_name(path: Path) -> str:
    """The file's name, or one beside it: a plugin called json.py must not stand for json."""
    from importlib.util import find_spec

    def taken(name: str) -> bool:
        if name in sys.modules:
            return True
        try:
            spec = find_spec(name)
        except (ImportError, ValueError):
            return True
        return spec is not None and (spec.origin is None or Path(spec.origin).resolve() != path)

    stem = path.stem.replace(".", "_")
    name, number = stem, 1
    while taken(name):
        number += 1
        name = f"{stem}_{number}"
    return name


def misspelt_hooks(module: object) -> Iterator[str]:
    """What is wrong with functions of a plugin that were meant to be hooks."""
    known = [hook.__name__ for hook in hookspecs.HOOKS]
    for name, found in sorted(vars(module).items()):
        if not callable(found):
            continue
        marked = hasattr(found, f"{hookspecs.PROJECT}_impl")
        if marked and name not in known:
            yield f"there is no hook {name}{_near(name, known)}"
        elif not marked and name in known and _is_own(found, module):
            yield f"{name} is not marked: put @hookimpl above it"


def _is_own(found: object, module: object) -> bool:
    """Whether a function was written in the module, not imported into it."""
    return getattr(found, "__module__", "") == getattr(module, "__name__", None)


def _near(name: str, known: list[str]) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"; did you mean {near[0]}?" if near else ""
