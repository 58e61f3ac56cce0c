"""Every hook as Markdown, from the docstrings of `capcheck.hookspecs`."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
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


def public_names() -> str:
    """The names that `from capcheck import ...` gives, each with the first line of its text."""
    lines = []
    for name in sorted(capcheck.__all__, key=str.casefold):
        found = getattr(capcheck, name)
        text = inspect.getdoc(found) if callable(found) else ""
        first = (text or "").strip().splitlines()[0] if text else ""
        lines.append(f"- `{name}`{': ' + first if first else ''}")
    return "\n".join(lines)
