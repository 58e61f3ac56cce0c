"""Where in the file each character of a scalar's text stands.

The scalar is decoded once more, keeping the offset of every character. Only when that gives the
very text that the reader gave are the offsets used: a place is exact or says that it is not.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final, NamedTuple

from capcheck.lines import line_starts, position
from capcheck.source import Scalar
from capcheck.values import Place

_LONGEST: Final = 1_000_000  # characters; longer texts with escapes are marked as a whole

_HEADER = re.compile(r"[|>][-+0-9]*[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r)")
_BLANKS_AND_BREAKS = re.compile(r"[ \t\r\n]+")
_BREAK = re.compile(r"\r\n|\n|\r")
_LINE = re.compile(r"([^\r\n]*)(\r\n|\n|\r|\Z)")
_RUNS: Final = {
    "plain": re.compile(r"[^ \t\r\n]+"),
    "single": re.compile(r"[^ \t\r\n']+"),
    "double": re.compile(r"[^ \t\r\n\\]+"),
}
_ESCAPE = re.compile(
    r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}"  # one character in JSON
    r"|\\x[0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\U[0-9a-fA-F]{8}|\\(?:\r\n|[\s\S])"
)
_ESCAPES: Final = {
    "0": "\0",
    "a": "\a",
    "b": "\b",
    "t": "\t",
    "\t": "\t",
    "n": "\n",
    "v": "\v",
    "f": "\f",
    "r": "\r",
    "e": "\x1b",
    "N": "\x85",
    "_": "\xa0",
    "L": "\u2028",
    "P": "\u2029",
}


class Offsets(NamedTuple):
    """Of each character the offset in the file where it starts, and where it ends."""

    starts: Sequence[int]
    ends: Sequence[int]


class _Decoded:
    """Characters with the stretches of the source that they come from."""

    def __init__(self) -> None:
        self.text: list[str] = []
        self.starts: list[int] = []
        self.ends: list[int] = []

    def run(self, text: str, start: int) -> None:
        """Text that stands in the source as it is."""
        self.text.append(text)
        self.starts += range(start, start + len(text))
        self.ends += range(start + 1, start + len(text) + 1)

    def one(self, char: str, start: int, end: int) -> None:
        """A character that stands for a stretch of the source."""
        self.text.append(char)
        self.starts.append(start)
        self.ends.append(end)

    def offsets(self, text: str) -> Offsets | None:
        """The offsets, if this is the text that they are wanted for (or begins with it)."""
        size = len(text)
        if len(self.starts) < size or not "".join(self.text).startswith(text):
            return None
        return Offsets(self.starts[:size], self.ends[:size])


def offset_places(scalar: Scalar, source_text: str) -> Callable[[int, int], Place]:
    """Maps a stretch [start, end) of `scalar.text` to its place in `source_text`.

    Offsets are code points; those out of range are taken to the nearest end. The place covers the
    characters as they are written, escapes and folded breaks included. Where the text cannot be
    followed into the file every place is the whole scalar, with `exact=False`.
    """
    offsets = _offsets(scalar, source_text)
    starts = line_starts(source_text)
    whole = scalar.place._replace(exact=False)

    def place(start: int, end: int) -> Place:
        if offsets is None:
            return whole
        if not scalar.text:
            return scalar.place
        start = min(max(start, 0), len(scalar.text))
        end = min(max(end, start), len(scalar.text))
        first = offsets.starts[start] if start < len(scalar.text) else offsets.ends[-1]
        last = offsets.ends[end - 1] if end > start else first
        line, column = position(starts, first)
        end_line, end_column = position(starts, last)
        return whole._replace(
            line=line, column=column, end_line=end_line, end_column=end_column, exact=True
        )

    return place


def _offsets(scalar: Scalar, source_text: str) -> Offsets | None:
    starts = line_starts(source_text)
    place = scalar.place
    if not (1 <= place.line <= place.end_line <= len(starts)):
        return None
    start = starts[place.line - 1] + place.column - 1
    end = starts[place.end_line - 1] + place.end_column - 1
    size = len(scalar.text)
    if end - start == size and source_text.startswith(scalar.text, start):
        return Offsets(range(start, end), range(start + 1, end + 1))
    if size > _LONGEST or end > len(source_text):
        return None
    if scalar.style in ("literal", "folded"):
        decoded = _block(source_text, start, scalar)
    else:
        decoded = _flow(source_text, start, end, scalar.style)
    return None if decoded is None else decoded.offsets(scalar.text)


def _flow(source: str, start: int, end: int, style: str) -> _Decoded | None:
    """A plain or quoted scalar, over several lines or on one."""
    if style != "plain":
        start, end = start + 1, end - 1
    decoded = _Decoded()
    runs = _RUNS[style]
    at = start
    while at < end:
        run = runs.match(source, at, end)
        blanks = None if run else _BLANKS_AND_BREAKS.match(source, at, end)
        if run is not None:
            decoded.run(run[0], at)
            at = run.end()
        elif blanks is not None:
            _fold(decoded, blanks[0], at)
            at = blanks.end()
        elif style == "single":
            decoded.one("'", at, at + 2)
            at += 2
        else:
            escape = _ESCAPE.match(source, at, end)
            if escape is None:
                return None
            at = _unescape(decoded, source, escape, end)
    return decoded


def _fold(decoded: _Decoded, blanks: str, at: int) -> None:
    """Blanks between words: as they are on one line; one space, or the empty lines, over breaks."""
    breaks = list(_BREAK.finditer(blanks))
    if not breaks:
        decoded.run(blanks, at)
    elif len(breaks) == 1:
        decoded.one(" ", at, at + len(blanks))
    else:
        for found in breaks[1:]:
            decoded.one("\n", at + found.start(), at + found.end())


def _unescape(decoded: _Decoded, source: str, escape: re.Match[str], end: int) -> int:
    """One escape of a double-quoted scalar; the offset behind it."""
    written = escape[0]
    start, after = escape.span()
    if len(written) > 2 and written[1] in "xuU":
        if len(written) == 12:
            code = 0x10000 + ((int(written[2:6], 16) & 0x3FF) << 10 | int(written[8:], 16) & 0x3FF)
        else:
            code = int(written[2:], 16)
        decoded.one(chr(code) if code < 0x110000 else "\ufffd", start, after)
    elif written[1] in "\r\n":
        # An escaped break joins the lines; what is left of the blanks is empty lines.
        blanks = _BLANKS_AND_BREAKS.match(source, after, end)
        if blanks is not None:
            for found in _BREAK.finditer(blanks[0]):
                decoded.one("\n", after + found.start(), after + found.end())
            after = blanks.end()
    else:
        decoded.one(_ESCAPES.get(written[1], written[1]), start, after)
    return after


class _Line(NamedTuple):
    text: str
    start: int
    break_start: int
    break_end: int


def _block(source: str, start: int, scalar: Scalar) -> _Decoded | None:
    """A literal or folded block scalar, from its | or >."""
    header = _HEADER.match(source, start)
    if header is None:
        return None
    indentation = _indentation(source, header.end(), scalar.text)
    decoded = _Decoded()
    due: list[_Line] = []  # the breaks since the last line with text
    blank_before = scalar.style == "literal"
    first = True
    at = header.end()
    while len(decoded.starts) < len(scalar.text) and at < len(source):
        line = _line(source, at, indentation)
        if source[at : line.start].strip(" \t"):
            break  # indented less: a comment or what follows the block
        at = line.break_end
        if line.text:
            blank = line.text[0] in " \t" or scalar.style == "literal"
            _join(decoded, due, first or blank or blank_before)
            decoded.run(line.text, line.start)
            blank_before, first, due = blank, False, []
        due.append(line)
    for line in due:
        decoded.one("\n", line.break_start, line.break_end)
    return decoded


def _line(source: str, at: int, indentation: int) -> _Line:
    found = _LINE.match(source, at)
    assert found is not None  # the pattern takes an empty line
    start = min(at + indentation, found.end(1))
    return _Line(source[start : found.end(1)], start, found.start(2), found.end(2))


def _join(decoded: _Decoded, due: list[_Line], keep: bool) -> None:
    """The breaks between two lines: all of them, or folded to a space, or one less."""
    if keep or not due:
        kept = due
    elif len(due) == 1:
        decoded.one(" ", due[0].break_start, due[0].break_end)
        kept = []
    else:
        kept = due[1:]
    for line in kept:
        decoded.one("\n", line.break_start, line.break_end)


def _indentation(source: str, at: int, text: str) -> int:
    """How far the block is indented: its first line with text tells, beside that of the text."""
    if not text.strip("\n"):
        return len(source)
    line = re.compile(r"(?:[ \t]*(?:\r\n|\n|\r))*( *)").match(source, at)
    inside = re.match(r"(?:[ \t]*\n)*( *)", text)
    return len(line[1] if line else "") - len(inside[1] if inside else "")
