"""Tables of benchmarks, as text or Markdown."""

from __future__ import annotations

from collections.abc import Sequence


def print_table(table: Sequence[Sequence[str]], markdown: bool) -> None:
    """The first row is the head; two columns of words, then figures."""
    widths = [max(len(row[at]) for row in table) for at in range(len(table[0]))]
    for number, row in enumerate(table):
        cells = [
            cell.ljust(width) if at < 2 else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(row, widths, strict=True))
        ]
        print(f"| {' | '.join(cells)} |" if markdown else "  ".join(cells).rstrip())
        if markdown and not number:
            print("|" + "|".join("-" * (width + 2) for width in widths) + "|")
