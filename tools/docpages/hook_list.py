"""Every hook as Markdown, from the docstrings of `capcheck.hookspecs`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Any

import capcheck
from capcheck import hookspecs


def signature(hook: Callable[..., Any]) -> str:
    """`capcheck_check(case: Case) -> Iterable[Result]`"""
    return f"{hook.__name__}{inspect.signature(hook)}".replace("'", "")


def markdown(hooks: Sequence[Callable[..., Any]] = hookspecs.HOOKS) -> str:
    """Each hook: its signature, when it is called, what it gives."""
    parts = []
    for hook in hooks:
        text = inspect.cleandoc(hook.__doc__ or "")
        parts.append(f"### `{hook.__name__}`\n\n```python\n{signature(hook)}\n```\n\n{text}")
    return "\n\n".join(parts)


def _first_line(found: object) -> str:
    """The first paragraph of a docstring as one line; constants have none of their own."""
    if not (callable(found) or inspect.ismodule(found)):
        return ""
    return " ".join((inspect.getdoc(found) or "").partition("\n\n")[0].split())


def _listed(name: str, found: object) -> str:
    text = _first_line(found)
    return f"- `{name}`{': ' + text if text else ''}"


def public_names() -> str:
    """The names that `from capcheck import ...` gives, each with what it is."""
    names = sorted(capcheck.__all__, key=str.casefold)
    return "\n".join(_listed(name, getattr(capcheck, name)) for name in names)


def public_modules() -> str:
    """The modules that plugins may use besides, each with what it is for."""
    names = [f"capcheck.{name}" for name in sorted(capcheck.PUBLIC_MODULES)]
    return "\n".join(_listed(name, import_module(name)) for name in names)
