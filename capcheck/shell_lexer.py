"""A POSIX shell script as words and operators. Nothing is run or looked up here.

A word is a list of parts, so that whoever expands its variables still knows what was quoted and
where each part stands. Redirections and here-documents are dropped: they are no arguments.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from capcheck.shell_syntax import (
    ARITHMETIC,
    ARRAY,
    SUBSTITUTION,
    Operator,
    Part,
    RawWord,
    Token,
    after_backtick,
    after_bracket,
)

_DEEPEST = 20  # ${A:-${B:-…}}; deeper ones are not looked into
_BLANKS = re.compile(r"(?:[ \t]|\\\r?\n)+")
_COMMENT = re.compile(r"#[^\n]*")
_NEWLINE = re.compile(r"\r?\n")
_OPERATOR = re.compile(r";;&|;;|;&|;|&&|&(?!>)|\|\||\|&|\||\(|\)")
_REDIRECT = re.compile(r"&>>?|<<<|<<-?|<>|<&|>>|>&|>\||<|>")
_RUN = re.compile(r"[^ \t\r\n;&|<>()'\"\\$`]+")
_QUOTED_RUN = re.compile(r"[^\"\\$`]+")
_ARGUMENT_RUN = re.compile(r"[^}'\"\\$`]+")
_QUOTED_ARGUMENT_RUN = re.compile(r"[^}\"\\$`]+")
_NAME = re.compile(r"\$([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!-])")
_BRACED = re.compile(r"\$\{([A-Za-z_][A-Za-z0-9_]*|[0-9]+|[@*])(:?[-=?+]|\[[@*]\](?=\})|(?=\}))")
_ARRAY_START = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_ANSI_C = re.compile(r"\\(?:x[0-9a-fA-F]{1,2}|[0-7]{1,3}|u[0-9a-fA-F]{1,4}|[\s\S])|'|[^\\']+")
_ANSI_C_LETTERS: Final = {
    "a": "\a", "b": "\b", "e": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v",
}  # fmt: skip


class Lexer:
    """Reads one script. Quotes and brackets that are never closed reach to its end."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0
        self._documents: list[tuple[str, bool]] = []  # here-documents due: end word, tabs cut
        self._no_arithmetic_end = False

    def tokens(self) -> Iterator[Token]:
        """The words and operators in their order."""
        text = self._text
        while self._at < len(text):
            if self._skip(_BLANKS) or (text[self._at] == "#" and self._skip(_COMMENT)):
                continue
            start = self._at
            if self._skip(_NEWLINE):
                self._skip_documents()
                yield Operator("\n", start)
            elif text.startswith(("<(", ">("), start):
                self._at = after_bracket(text, start + 2, ")")
                yield RawWord((self._opaque(start, SUBSTITUTION, quoted=False),), start, self._at)
            elif self._skip(_REDIRECT):
                self._redirect(text[start : self._at])
            elif text.startswith("((", start) and self._arithmetic():
                yield RawWord((self._opaque(start, ARITHMETIC, quoted=False),), start, self._at)
            elif self._skip(_OPERATOR):
                yield Operator(text[start : self._at], start)
            else:
                word = self._word()
                number = word.bare.isdigit() and text[self._at : self._at + 1] in ("<", ">")
                if not number:  # 2>&1 redirects, its 2 is no argument
                    yield word

    def _skip(self, pattern: re.Pattern[str]) -> bool:
        found = pattern.match(self._text, self._at)
        if found is None:
            return False
        self._at = found.end()
        return True

    def _opaque(self, start: int, name: str, *, quoted: bool) -> Part:
        return Part("opaque", self._text[start : self._at], start, self._at, quoted, name)

    def _arithmetic(self) -> bool:
        """Skips (( … )), if it is closed."""
        if self._no_arithmetic_end:
            return False
        end = self._text.find("))", self._at)
        self._no_arithmetic_end = end < 0
        if end >= 0:
            self._at = end + 2
        return end >= 0

    def _redirect(self, operator: str) -> None:
        self._skip(_BLANKS)
        here = self._text[self._at : self._at + 1]
        if not here or _OPERATOR.match(here) or _NEWLINE.match(here) or _REDIRECT.match(here):
            return
        target = self._word()
        if operator in ("<<", "<<-"):
            end = "".join(part.text for part in target.parts)
            self._documents.append((end, operator == "<<-"))

    def _skip_documents(self) -> None:
        for end, cut_tabs in self._documents:
            while self._at < len(self._text):
                after = self._text.find("\n", self._at) + 1 or len(self._text)
                line = self._text[self._at : after].rstrip("\r\n")
                self._at = after
                if (line.lstrip("\t") if cut_tabs else line) == end:
                    break
        self._documents = []

    def _word(self, *, arrays: bool = True) -> RawWord:
        text, start = self._text, self._at
        parts: list[Part] = []
        while self._at < len(text):
            char = text[self._at]
            if self._part(parts, _RUN, quoted=False):
                continue
            if char == "\r" and not text.startswith("\n", self._at + 1):
                parts.append(Part("text", char, self._at, self._at + 1, quoted=False))
                self._at += 1
                continue
            if arrays and char == "(" and len(parts) == 1 and _ARRAY_START.fullmatch(parts[0].text):
                self._at += 1
                return RawWord(tuple(parts), start, self._at, self._items())
            break
        self._at = max(self._at, start + 1) if not parts and self._at == start else self._at
        return RawWord(tuple(parts), start, self._at)

    def _items(self) -> tuple[RawWord, ...]:
        """The words of an array up to its closing parenthesis; arrays do not nest."""
        items: list[RawWord] = []
        while self._at < len(self._text):
            if self._skip(_BLANKS) or self._skip(_NEWLINE):
                continue
            char = self._text[self._at]
            if char == "#" and self._skip(_COMMENT):
                continue
            if char == ")":
                self._at += 1
                break
            if char in ";&|<>(":
                self._at += 1
                continue
            items.append(self._word(arrays=False))
        return tuple(items)

    def _part(self, parts: list[Part], run: re.Pattern[str], *, quoted: bool) -> bool:
        """Reads one stretch, of text like `run` or what a quote, backslash or $ begins."""
        text, start = self._text, self._at
        if self._skip(run):
            parts.append(Part("text", text[start : self._at], start, self._at, quoted))
            return True
        char = text[start]
        if char == "\\":
            self._escaped(parts, quoted=quoted)
        elif char == "'" and not quoted:
            self._single(parts)
        elif char == '"':
            self._double(parts)
        elif char == "$":
            self._dollar(parts, quoted=quoted)
        elif char == "`":
            self._at = after_backtick(text, start + 1)
            parts.append(self._opaque(start, SUBSTITUTION, quoted=quoted))
        else:
            return False
        return True

    def _escaped(self, parts: list[Part], *, quoted: bool) -> None:
        start = self._at
        found = re.compile(r"\\\r?\n").match(self._text, start)
        if found is not None:
            self._at = found.end()  # the line goes on
            return
        after = self._text[start + 1 : start + 2]
        # Inside double quotes the backslash stays before anything that needs none.
        stays = not after or (quoted and after not in '$`"\\')
        first = start if stays else start + 1
        self._at = start + 1 + len(after)
        parts.append(Part("text", self._text[first : self._at], first, self._at, quoted=True))

    def _single(self, parts: list[Part]) -> None:
        start = self._at + 1
        end = self._text.find("'", start)
        if end < 0:
            self._at = len(self._text)
            parts.append(self._opaque(start, "'", quoted=True))
            return
        self._at = end + 1
        parts.append(Part("text", self._text[start:end], start, end, quoted=True))

    def _double(self, parts: list[Part]) -> None:
        self._at += 1
        start = self._at
        parts.append(Part("text", "", start, start, quoted=True))
        while self._at < len(self._text):
            if self._text[self._at] == '"':
                self._at += 1
                return
            self._part(parts, _QUOTED_RUN, quoted=True)
        parts.append(Part("opaque", "", self._at, self._at, True, '"'))

    def _ansi_c(self, parts: list[Part]) -> None:
        """$'…' with its escapes."""
        self._at += 2
        parts.append(Part("text", "", self._at, self._at, quoted=True))
        for found in _ANSI_C.finditer(self._text, self._at):
            piece = found[0]
            self._at = found.end()
            if piece == "'":
                return
            if piece[0] == "\\" and len(piece) > 1:
                code = piece[2:] if piece[1] in "xu" else piece[1:]
                if piece[1] in "xu" and code:
                    piece = chr(int(code, 16))
                elif piece[1].isdigit():
                    piece = chr(int(code, 8))
                else:
                    piece = _ANSI_C_LETTERS.get(piece[1], piece[1])
            parts.append(Part("text", piece, found.start(), self._at, quoted=True))
        parts.append(Part("opaque", "", self._at, self._at, True, "'"))

    def _dollar(self, parts: list[Part], *, quoted: bool) -> None:
        text, start = self._text, self._at
        name = _NAME.match(text, start)
        if name is not None:
            self._at = name.end()
            parts.append(Part("variable", name[0], start, self._at, quoted, name[1]))
        elif text.startswith("$(", start):
            what = ARITHMETIC if text.startswith("$((", start) else SUBSTITUTION
            self._at = after_bracket(text, start + 2, ")")
            parts.append(self._opaque(start, what, quoted=quoted))
        elif text.startswith("${", start):
            parts.append(self._braced(quoted=quoted))
        elif not quoted and text.startswith("$'", start):
            self._ansi_c(parts)
        elif not quoted and text.startswith('$"', start):
            self._at += 1
            self._double(parts)
        else:
            self._at += 1
            parts.append(Part("text", "$", start, self._at, quoted))

    def _braced(self, *, quoted: bool) -> Part:
        """${…}: a variable with a default or the like, an array, or what is not looked into."""
        start = self._at
        found = _BRACED.match(self._text, start)
        if found is None or self._depth >= _DEEPEST:
            self._at = after_bracket(self._text, start + 2, "}")
            return self._opaque(start, self._text[start : self._at], quoted=quoted)
        self._at = found.end()
        name, operator = found[1], found[2]
        argument: list[Part] = []
        if operator == "[*]" and quoted:  # one word of all items, which is hardly ever meant
            self._at = after_bracket(self._text, start + 2, "}")
            return self._opaque(start, self._text[start : self._at], quoted=quoted)
        if operator[:1] == "[":
            operator = ARRAY
        elif operator:
            self._depth += 1
            run = _QUOTED_ARGUMENT_RUN if quoted else _ARGUMENT_RUN
            while self._at < len(self._text) and self._text[self._at] != "}":
                self._part(argument, run, quoted=quoted)
            self._depth -= 1
        closed = self._at < len(self._text)
        self._at += closed
        written = self._text[start : self._at]
        if not closed:
            return Part("opaque", written, start, self._at, quoted, written)
        return Part("variable", written, start, self._at, quoted, name, operator, tuple(argument))
