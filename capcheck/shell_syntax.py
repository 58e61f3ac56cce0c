"""What a shell script is made of: parts of words, words, operators, and brackets that nest."""

from __future__ import annotations

import re
from typing import Final, Literal, NamedTuple, TypeAlias, Union

SUBSTITUTION: Final = "$(...)"
ARITHMETIC: Final = "$((...))"
ARRAY: Final = "[@]"

_NESTING = re.compile(r"[\\'\"$(){}`]")
_BACKTICKS = re.compile(r"(?:[^`\\]++|\\[\s\S])*+`")


class Part(NamedTuple):
    """A stretch of a word. Text whose length is that of the stretch stands there as it is."""

    kind: Literal["text", "variable", "opaque"]
    text: str  # what it stands for; of a variable or opaque part how it is written
    start: int
    end: int
    quoted: bool
    name: str = ""  # of the variable; of an opaque part what to call it
    operator: str = ""  # :- - := = :? ? :+ + or [@]
    argument: tuple[Part, ...] = ()


class RawWord(NamedTuple):
    """A word before its variables are expanded; `items` when it assigns an array."""

    parts: tuple[Part, ...]
    start: int
    end: int
    items: tuple[RawWord, ...] | None = None

    @property
    def bare(self) -> str:
        """Its text when nothing in it is quoted or expanded, else empty: how keywords stand."""
        plain = all(part.kind == "text" and not part.quoted for part in self.parts)
        return "".join(part.text for part in self.parts) if plain else ""


class Operator(NamedTuple):
    """What separates commands; a newline is one."""

    text: str
    start: int


Token: TypeAlias = Union[RawWord, Operator]


def after_backtick(text: str, at: int) -> int:
    """Behind the backtick that closes what was opened before `at`; the end if none does."""
    found = _BACKTICKS.match(text, at)
    return found.end() if found else len(text)


def after_bracket(text: str, at: int, closer: str) -> int:
    """Behind the bracket that closes what was opened before `at`; the end if none does."""
    due = [closer]
    while due:
        found = _NESTING.search(text, at)
        if found is None:
            return len(text)
        char, at = found[0], found.end()
        if char == "\\":
            at += 1
        elif char == due[-1]:
            due.pop()
        elif char == "'" and due[-1] != '"':
            at = text.find("'", at) + 1 or len(text)
        elif char == '"':
            due.append('"')
        elif char == "`":
            at = after_backtick(text, at)
        elif char == "$" and text[at : at + 1] in ("(", "{"):
            due.append(")" if text[at] == "(" else "}")
            at += 1
        elif char == "(" and due[-1] == ")":
            due.append(")")
    return min(at, len(text))
