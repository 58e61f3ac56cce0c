"""JSON with places: what YAML 1.1 refuses (tabs, surrogate pairs) or reads otherwise.

As Python's own reader it takes NaN and Infinity, which real model configurations hold.
"""

from __future__ import annotations

import json
import re
from typing import Final, Literal, NoReturn

from capcheck.lines import line_starts, position
from capcheck.reading import Abandoned, ProblemList, Span, point
from capcheck.source import Documents, Limits, Problem, ScalarType
from capcheck.tree_builder import TreeBuilder

_BLANK = re.compile(r"[ \t\r\n]*+")
_STRING_BODY = re.compile(r'(?:[^"\\\x00-\x1f]++|\\["\\/bfnrt]|\\u[0-9a-fA-F]{4})*+')
_STRING = re.compile(f'"{_STRING_BODY.pattern}"')
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_WORD = re.compile(r"-?[A-Za-z]+")
_WORDS: Final[dict[str, ScalarType]] = {
    "true": "boolean",
    "false": "boolean",
    "null": "null",
    "NaN": "number",
    "Infinity": "number",
    "-Infinity": "number",
}
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_WORD_OR_NUMBER_END = re.compile(r"[ \t\r\n,:\]}]|\Z")

_Expected = Literal["value", "value or ]", "key", "key or }", ":", ", or end"]


def read_json(text: str, file: str, limits: Limits) -> Documents:
    """The one value of a JSON text, or why there is none. An empty text holds nothing."""
    problems = ProblemList(limits.problems)
    reader = _JsonReader(text, TreeBuilder(file, limits, problems))
    try:
        reader.read()
    except Abandoned as end:
        return Documents((), (*problems.found, end.problem), text)
    root = reader.builder.root
    return Documents(() if root is None else (root,), tuple(problems.found), text)


class _JsonReader:
    def __init__(self, text: str, builder: TreeBuilder) -> None:
        self.builder = builder
        self._text = text
        self._at = 0
        self._open: list[str] = []  # the closing brackets that are due
        self._opened: list[int] = []

    def read(self) -> None:
        """Feeds the builder. Raises Abandoned."""
        self._skip_blanks()
        if self._at == len(self._text):
            return
        expected: _Expected | None = "value"
        while expected is not None:
            expected = self._step(expected)
            self._skip_blanks()
        if self._at < len(self._text):
            self._fail("text after the end of the JSON value")

    def _skip_blanks(self) -> None:
        found = _BLANK.match(self._text, self._at)
        self._at = found.end() if found else self._at

    def _step(self, expected: _Expected) -> _Expected | None:
        char = self._text[self._at : self._at + 1]
        if expected == ", or end":
            return self._after_value(char)
        if expected == ":":
            if char != ":":
                self._fail("expected : after the key")
            self._at += 1
            return "value"
        if char and expected.endswith(f" or {char}"):
            return self._close()
        if expected in ("key", "key or }"):
            self._string("a key in double quotes" + (" or }" if "}" in expected else ""))
            return ":"
        return self._value(char)

    def _after_value(self, char: str) -> _Expected | None:
        if not self._open:
            return None
        if char == self._open[-1]:
            return self._close()
        if char != ",":
            opened = "{" if self._open[-1] == "}" else "["
            line, column = self._position(self._opened[-1])
            where = f"the {opened} of line {line}, column {column} is still open"
            self._fail(f"expected , or {self._open[-1]} here: {where}")
        self._at += 1
        return "key" if self._open[-1] == "}" else "value"

    def _value(self, char: str) -> _Expected | None:
        if char in ("{", "["):
            start = self._position(self._at)
            self.builder.open("mapping" if char == "{" else "sequence", Span(*start, *start))
            self._open.append("}" if char == "{" else "]")
            self._opened.append(self._at)
            self._at += 1
            return "key or }" if char == "{" else "value or ]"
        if char == '"':
            self._string("a value")
        else:
            self._word()
        return ", or end" if self._open else None

    def _close(self) -> _Expected | None:
        self._at += 1
        self._open.pop()
        self._opened.pop()
        self.builder.close(self._position(self._at))
        return ", or end" if self._open else None

    def _string(self, wanted: str) -> None:
        found = _STRING.match(self._text, self._at)
        if found is None:
            self._bad_string(wanted)
        text = json.loads(found[0])
        if "\\u" in found[0]:
            text = _LONE_SURROGATE.sub("\ufffd", text)
        self.builder.scalar(text, "text", "double", self._span(found.end()))
        self._at = found.end()

    def _bad_string(self, wanted: str) -> NoReturn:
        char = self._text[self._at : self._at + 1]
        if char == '"':
            good = _STRING_BODY.match(self._text, self._at + 1)
            end = good.end() if good else self._at
            stopped = self._text[end : end + 1]
            if stopped == "\\":
                self._fail(f"{self._text[end : end + 2]} is no escape in JSON", at=end)
            if stopped in ("", "\n", "\r"):
                self._fail("the quote that opens here is never closed")
            self._fail(f"the character U+{ord(stopped):04X} must be escaped in JSON", at=end)
        self._fail(f"expected {wanted}")

    def _word(self) -> None:
        found = _NUMBER.match(self._text, self._at) or _WORD.match(self._text, self._at)
        kind: ScalarType | None = None
        if found is not None and _WORD_OR_NUMBER_END.match(self._text, found.end()):
            number = found[0].strip("-")[0].isdigit()
            whole = not any(mark in found[0] for mark in ".eE")
            kind = ("integer" if whole else "number") if number else _WORDS.get(found[0])
        if found is None or kind is None:
            self._fail("expected a value")
        self.builder.scalar(found[0], kind, "plain", self._span(found.end()))
        self._at = found.end()

    def _position(self, offset: int) -> tuple[int, int]:
        return position(line_starts(self._text), offset)

    def _span(self, end: int) -> Span:
        return Span(*self._position(self._at), *self._position(end))

    def _fail(self, message: str, *, at: int | None = None) -> NoReturn:
        offset = self._at if at is None else at
        help = ""
        if offset >= len(self._text):
            offset = len(self._text.rstrip())
            message += ", but the text ends"
        elif self._text[offset] == "'":
            help = "JSON takes double quotes only"
        elif self._text.startswith(("//", "/*", "#"), offset):
            help = "JSON has no comments"
        elif self._text[offset] in "]}" and self._text[:offset].rstrip()[-1:] == ",":
            help = "remove the comma before it"
        span = point(*self._position(offset), self._text[offset : offset + 1])
        raise Abandoned(Problem("spec/json", message, self.builder.place(span, ()), help))
