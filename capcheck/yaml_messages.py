"""A YAML loader's error as one sentence in the reader's words, at the place that helps most."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from capcheck.lines import line_starts, position

if TYPE_CHECKING:
    from yaml.error import MarkedYAMLError

_CONFLICT = re.compile(r"^(?:<{7}|>{7})(?= |$)", re.MULTILINE)
# {{ or {% where YAML looks for a value or begins a line: unquoted, so never plain text.
_TEMPLATE = re.compile(r"(?:^[ \t]*(?:- +)*|[:\[,] *|- +)\{[{%]", re.MULTILINE)
_ILLEGAL = re.compile(
    "[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]"
)
_BROKEN = "not valid YAML"


class Fault(NamedTuple):
    """What is wrong with a text; the place is an offset in it."""

    rule: str
    message: str
    help: str
    offset: int


class _Error(NamedTuple):
    """A loader's error, with offsets into the text."""

    problem: str
    context: str
    at: int
    context_at: int
    text: str

    @property
    def char(self) -> str:
        return self.text[self.at : self.at + 1]

    @property
    def ended(self) -> bool:
        """Whether the loader wanted more where the document ends."""
        return not self.text[self.at :].strip()

    def where(self, offset: int) -> str:
        line, column = position(line_starts(self.text), offset)
        return f"line {line}, column {column}"


def illegal_character(text: str) -> Fault | None:
    """The first character that YAML does not allow, if there is one."""
    found = _ILLEGAL.search(text)
    if found is None:
        return None
    code = ord(found[0])
    if code == 0xFEFF:
        message = "a byte order mark in the middle of the file"
    else:
        message = f"the character U+{code:04X} is not allowed in YAML"
    return Fault("spec/yaml", message, "remove it, or write it as an escape", found.start())


def template_fault(offset: int) -> Fault:
    """A template in place of a document."""
    message = "this looks like a template ({{ … }} or {% … %}), not like YAML"
    return Fault("spec/template", message, "render it first and check the result", offset)


def explain(error: MarkedYAMLError, text: str, base: int) -> Fault:
    """What the error says about `text`, the document at offset `base` of what was parsed.

    The fault's offset counts in `text`.
    """
    conflict = _CONFLICT.search(text)
    if conflict is not None:
        message = "an unresolved merge conflict"
        return Fault("spec/yaml", message, "resolve it and remove the markers", conflict.start())
    template = _TEMPLATE.search(text)
    if template is not None:
        return template_fault(template.end() - 2)
    at = error.problem_mark.index - base if error.problem_mark else 0
    context_at = error.context_mark.index - base if error.context_mark else at
    last = len(text.rstrip())
    known = _Error(
        (error.problem or "").lower(),
        (error.context or "").lower(),
        max(0, min(at, last)),
        max(0, min(context_at, last)),
        text,
    )
    for words, explanation in _EXPLANATIONS:
        if any(word in known.problem for word in words):
            fault = explanation(known)
            if fault is not None:
                return fault
    return Fault("spec/yaml", f"{_BROKEN}: {error.problem or error}", "", known.at)


def _fault(error: _Error, message: str, help: str = "", at: int | None = None) -> Fault:
    return Fault("spec/yaml", message, help, error.at if at is None else at)


def _cannot_start(error: _Error) -> Fault | None:
    line = error.text[: error.at].rpartition("\n")[2]
    if error.char == "\t" or (not line.strip() and "\t" in line):
        return _tab(error)
    message = f"a value cannot start with {error.char!r}"
    return _fault(error, message, "quote the value")


def _tab(error: _Error) -> Fault:
    start = error.text.rfind("\n", 0, error.at) + 1
    tab = error.text.find("\t", start, error.at + 1)
    return _fault(
        error,
        "a tab is used as indentation: YAML takes only spaces",
        "replace the tab by spaces",
        tab if tab >= 0 else error.at,
    )


def _quote(error: _Error) -> Fault | None:
    if "quoted scalar" not in error.context and "double-quoted" not in error.context:
        return None
    quote = error.text[error.context_at : error.context_at + 1]
    return _fault(error, f"the quote {quote} that opens here is never closed", at=error.context_at)


def _escape(error: _Error) -> Fault:
    backslash = error.at if error.char == "\\" else max(error.at - 1, 0)
    escape = error.text[backslash : backslash + 2]
    return _fault(
        error,
        f"{escape} is no escape in double quotes",
        "use single quotes, or double the backslash",
        backslash,
    )


def _bracket(error: _Error) -> Fault:
    opened = error.text[error.context_at : error.context_at + 1]
    wanted = "]" if "]" in error.problem.partition("but")[0] else "}"
    if error.ended:
        message = f"the {opened} that opens here is never closed: {wanted} is missing"
        return _fault(error, message, at=error.context_at)
    where = error.where(error.context_at)
    return _fault(error, f"expected , or {wanted} here: the {opened} of {where} is still open")


def _block(error: _Error) -> Fault:
    rest = error.text[error.at : error.at + 1]
    line = error.text[: error.at].rpartition("\n")[2]
    if rest in ("]", "}"):
        return _fault(error, f"this {rest} closes nothing")
    if line.rstrip()[-1:] in ("'", '"', "]", "}"):
        message = "nothing may follow a value that is closed by a quote or bracket"
        return _fault(error, message, "quote the whole value")
    what = "list item (- )" if "collection" in error.context or "'-'" in error.problem else "key"
    where = error.where(error.context_at)
    return _fault(
        error,
        f"expected a {what} with the indentation of {where}, or the end of that block",
        "check the indentation of this line and of the one above",
    )


def _colon(error: _Error) -> Fault:
    return _fault(
        error,
        "a ': ' where no key can stand",
        "quote the text if the colon belongs to it, else check the indentation",
    )


def _no_colon(error: _Error) -> Fault:
    return _fault(
        error,
        "expected 'key: value' here: a ':' is missing",
        "a text of several lines is indented deeper than its key",
        error.context_at,
    )


def _anchor(error: _Error) -> Fault | None:
    if "alias" not in error.context and "anchor" not in error.context:
        return None
    sign = error.text[error.context_at : error.context_at + 1]
    what = "an alias" if sign == "*" else "an anchor"
    message = f"a value that starts with {sign} is {what}, and this is no name for one"
    return _fault(error, message, "quote the value", error.context_at)


def _no_value(error: _Error) -> Fault:
    found = "the document ends: a bracket is not closed" if error.ended else f"found {error.char!r}"
    return _fault(error, f"expected a value, but {found}")


def _nesting(error: _Error) -> Fault:
    return Fault("spec/too-large", "brackets are nested too deep", "", error.at)


def _says(message: str, help: str = "") -> Callable[[_Error], Fault]:
    return lambda error: _fault(error, message, help)


# Words of libyaml's or of PyYAML's own message -> what to say; the first that fits.
_EXPLANATIONS: tuple[tuple[tuple[str, ...], Callable[[_Error], Fault | None]], ...] = (
    (("nesting",), _nesting),
    (("tab character",), _tab),
    (("cannot start any token",), _cannot_start),
    (("end of stream", "document indicator", "document separator"), _quote),
    (("escape", "hexdecimal", "hexadecimal", "character code"), _escape),
    (("',' or",), _bracket),
    (("expected key", "<block end>", "'-' indicator"), _block),
    (("mapping values are not allowed",), _colon),
    (("expected ':'",), _no_colon),
    (
        ("sequence entries are not allowed",),
        _says("a list item cannot start here", "put '- ' on a line of its own"),
    ),
    (("alphabetic or numeric",), _anchor),
    (
        ("document start",),
        _says("text after the end of the document", "separate documents by a line ---"),
    ),
    (
        ("tag", "uri"),
        _says("this tag is not known or not complete", "quote the value if its ! belongs to it"),
    ),
    (
        ("directive", "incompatible", "version number"),
        _says("this line that starts with % is no directive that YAML knows"),
    ),
    (("node content",), _no_value),
    (
        ("comment or line break", "chomping", "indentation indicator"),
        _says("after | or > may follow only + or -, one digit and a comment"),
    ),
)
