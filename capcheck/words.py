"""Words of command lines and scripts, with their places and what is not known of them."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from capcheck.values import Place


class Word(NamedTuple):
    """One argument as a program would receive it.

    What is not known stays in `text` as it is written (`$MODEL`), and is named in `unresolved`: a
    variable, `$(...)` for a command's output, `A[@]` for an array, `"` or `'` for a quote that is
    never closed. An unquoted word with unresolved variables may be any number of arguments.
    """

    text: str
    place: Place
    unresolved: tuple[str, ...] = ()
    quoted: bool = False  # any part was quoted, or it is an item of a list: it stays one word
    defaulted: tuple[str, ...] = ()  # variables whose ${VAR:-default} default was used
    verbatim: bool = False  # nothing was replaced or expanded in it

    def part(self, start: int, end: int) -> Place:
        """The place of `text[start:end]`, or of the whole word where it cannot be told."""
        place = self.place
        wide = place.end_column - place.column == len(self.text)
        if not (self.verbatim and place.exact and place.line == place.end_line and wide):
            return place
        return place._replace(column=place.column + start, end_column=place.column + end)


class Command(NamedTuple):
    """One command of a script, without assignments before it, redirections and `exec`."""

    words: tuple[Word, ...]
    place: Place
    # What the script itself puts into the command's environment: exports and prefixes.
    environment: tuple[tuple[str, Word], ...] = ()
    # It stands in an if, a loop, a case, a function, or behind || or a test and &&.
    conditional: bool = False


class Replacement(NamedTuple):
    """A stretch of a text that something replaced before the shell saw it."""

    start: int
    end: int
    text: str


class Script(NamedTuple):
    """A text whose characters stand for stretches of another one, the scalar's."""

    text: str
    starts: Sequence[int]
    ends: Sequence[int]
    defaulted: tuple[tuple[int, int, str], ...] = ()  # stretches that are a variable's default

    @classmethod
    def of(cls, text: str, replacements: Sequence[Replacement] = ()) -> Script:
        """The text itself, with replacements that are in order and do not overlap."""
        if not replacements:
            return cls(text, range(len(text)), range(1, len(text) + 1))
        pieces: list[str] = []
        starts: list[int] = []
        ends: list[int] = []
        at = 0
        for one in (*replacements, Replacement(len(text), len(text), "")):
            pieces += text[at : one.start], one.text
            starts += *range(at, one.start), *[one.start] * len(one.text)
            ends += *range(at + 1, one.start + 1), *[one.end] * len(one.text)
            at = one.end
        return cls("".join(pieces), starts, ends)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The stretch of the scalar that this stretch of the script stands for."""
        if start < end:
            return self.starts[start], self.ends[end - 1]
        if start < len(self.starts):
            return self.starts[start], self.starts[start]
        return (self.ends[-1], self.ends[-1]) if self.ends else (0, 0)

    def defaults(self, start: int, end: int) -> tuple[str, ...]:
        """The variables whose defaults are in the stretch."""
        index = bisect_right(self.defaulted, start, key=lambda stretch: stretch[1])
        names: list[str] = []
        while index < len(self.defaulted) and self.defaulted[index][0] < end:
            names.append(self.defaulted[index][2])
            index += 1
        return tuple(names)

    def stands(self, start: int, end: int) -> bool:
        """Whether the stretch stands in the scalar just like this."""
        first = self.span(start, end)[0]
        size = end - start
        return list(self.starts[start:end]) == list(range(first, first + size)) and list(
            self.ends[start:end]
        ) == list(range(first + 1, first + size + 1))
