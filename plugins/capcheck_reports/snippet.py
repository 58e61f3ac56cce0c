"""The line of a finding with carets below what is marked, as wide as a terminal shows it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from capcheck.printable import escaped, width

TAB = 4
WIDEST = 100  # columns of a source line; longer ones are cut around the mark
BEFORE = 32  # columns that a cut line keeps before the mark
CUT = "…"


class Snippet(NamedTuple):
    """A source line, and the carets to be printed below it, `indent` columns in."""

    line: str
    indent: int
    carets: str


class _Cell(NamedTuple):
    text: str
    width: int


def _cells(line: str) -> list[_Cell]:
    """Each code point as it is shown; tabs reach the next stop."""
    cells: list[_Cell] = []
    column = 0
    for one in line:
        if one == "\t":
            cell = _Cell(" " * (TAB - column % TAB), TAB - column % TAB)
        elif one.isprintable():
            cell = _Cell(one, width(one))
        else:
            text = escaped(one)
            cell = _Cell(text, len(text))
        column += cell.width
        cells.append(cell)
    return cells


def _wide(cells: Sequence[_Cell]) -> int:
    return sum(cell.width for cell in cells)


def _window(cells: Sequence[_Cell], start: int) -> tuple[int, int]:
    """The first and last cell (exclusive) to show of a line that is too long."""
    first = start
    room = BEFORE
    while first > 0 and cells[first - 1].width <= room:
        first -= 1
        room -= cells[first].width
    room = WIDEST - (BEFORE - room) - 2 * len(CUT)
    last = start
    while last < len(cells) and cells[last].width <= room:
        room -= cells[last].width
        last += 1
    while last == len(cells) and first > 0 and cells[first - 1].width <= room:
        first -= 1
        room -= cells[first].width
    return first, last


def snippet(line: str, column: int, end_column: int | None) -> Snippet:
    """The line with carets from `column` to `end_column` (1-based code points, exclusive).

    `end_column` None marks to the line's end. There is always at least one caret.
    """
    line = line.rstrip()
    cells = _cells(line)
    start = min(max(column - 1, 0), len(cells))
    end = len(cells) if end_column is None else min(max(end_column - 1, start), len(cells))
    first, last = 0, len(cells)
    if _wide(cells) > WIDEST:
        first, last = _window(cells, start)
    head, tail = CUT if first else "", CUT if last < len(cells) else ""
    shown = "".join(cell.text for cell in cells[first:last])
    before = len(head) + _wide(cells[first:start])
    carets = max(_wide(cells[start : min(end, last)]), 1)
    return Snippet(f"{head}{shown}{tail}", before, "^" * carets)
