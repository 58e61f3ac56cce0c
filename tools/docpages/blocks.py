"""Generated blocks of a page: the lines between `<!-- generated: NAME -->` and `<!-- end -->`."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

_BLOCK = re.compile(r"(<!-- generated: ([\w-]+) -->\n).*?(<!-- end -->)", re.DOTALL)


def names_in(page: str) -> list[str]:
    """The names of the generated blocks of a page, in their order."""
    return [found[2] for found in _BLOCK.finditer(page)]


def filled(page: str, parts: Mapping[str, Callable[[], str]]) -> str:
    """The page with each block made anew. Raises KeyError for a block that nobody makes."""

    def made(found: re.Match[str]) -> str:
        return f"{found[1]}\n{parts[found[2]]().strip()}\n\n{found[3]}"

    return _BLOCK.sub(made, page)


def cell(text: str) -> str:
    """Text as it stands in a table's cell."""
    return " ".join(text.split()).replace("|", "\\|")


def table(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    """A Markdown table."""
    lines = [head, tuple("---" for _ in head), *rows]
    return "\n".join(f"| {' | '.join(cell(one) for one in line)} |" for line in lines)
