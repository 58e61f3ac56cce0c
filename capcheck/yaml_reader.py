"""YAML through libyaml's events: one pass, no recursion, so depth costs nothing but memory."""

from __future__ import annotations

import re
from typing import Any, Final, NoReturn, Protocol

import yaml

from capcheck.lines import line_starts, position
from capcheck.reading import Abandoned, ProblemList, Span, point, shortened
from capcheck.scalars import type_of_plain
from capcheck.source import Documents, Limits, Node, Problem, Scalar, ScalarType, Style
from capcheck.tree_builder import TreeBuilder
from capcheck.yaml_messages import Fault, explain, illegal_character, template_fault

_STYLES: Final[dict[str | None, Style]] = {
    "": "plain",
    None: "plain",
    "'": "single",
    '"': "double",
    "|": "literal",
    ">": "folded",
}
_STANDARD: Final = "tag:yaml.org,2002:"
_TAGS: Final[dict[str, ScalarType]] = {
    "!": "text",
    _STANDARD + "str": "text",
    _STANDARD + "int": "integer",
    _STANDARD + "float": "number",
    _STANDARD + "bool": "boolean",
    _STANDARD + "null": "null",
    _STANDARD + "timestamp": "timestamp",
    _STANDARD + "binary": "text",
    _STANDARD + "merge": "text",
}
_STRUCTURES: Final = frozenset(_STANDARD + name for name in ("map", "seq", "set", "omap", "pairs"))
# Anchor and tag before a node, with the blanks, breaks and comments behind each.
_PROPERTY = r"(?:&[^\s,\[\]{}]+|!<[^>\s]*>|![^\s,\[\]{}]*)"
_FIRST_PROPERTY = re.compile(_PROPERTY)
_PROPERTIES = re.compile(rf"(?:{_PROPERTY}(?:[ \t\r\n]+(?:#[^\r\n]*)?)*)*")
# A document begins at such a line, whatever stands before it.
_SEPARATOR = re.compile(r"(?<=[\r\n])---(?=[ \t\r\n]|\Z)")
# YAML 1.1 breaks lines here, editors do not.
_ODD_BREAKS: Final = ("\x85", "\u2028", "\u2029")


def _boundaries(text: str, after: int) -> list[int]:
    """Where documents begin behind an offset, each with the directives before its ---."""
    starts: list[int] = []
    for found in _SEPARATOR.finditer(text, after):
        start = found.start()
        while start > after:
            line = text.rfind("\n", after, start - 1) + 1
            if line <= after or text[line] != "%":
                break
            start = line
        starts.append(start)
        after = found.end()
    return starts


class EventSource(Protocol):
    """The part of PyYAML's parsers that is used here."""

    def get_event(self) -> Any:
        """The next event. Raises yaml.YAMLError."""


def events_of(text: str) -> EventSource:
    """libyaml's parser, or PyYAML's own where it was built without: seven times slower."""
    return yaml.CSafeLoader(text) if yaml.__with_libyaml__ else yaml.SafeLoader(text)


def read_yaml(text: str, file: str, limits: Limits) -> Documents:
    """The documents of a YAML text. Of a stream with a bad document all others are given."""
    reader = _Reader(text, file, limits)
    try:
        reader.read()
    except Abandoned as end:
        reader.problems.found.append(end.problem)
    return Documents(tuple(reader.roots), tuple(reader.problems.found), text)


class _Reader:
    """Reads one text: in one go while it is good, else document by document."""

    def __init__(self, text: str, file: str, limits: Limits) -> None:
        self.roots: list[Node] = []
        self.problems = ProblemList(limits.problems)
        self._text = text
        self._builder = TreeBuilder(file, limits, self.problems)
        self._by_offset = any(mark in text for mark in _ODD_BREAKS)
        self._base = 0  # offset and line in the text of what is being parsed
        self._base_line = 1
        self._start = 0  # of the document that is being read, and the end of its ---
        self._resume = 0
        self._inside = False

    def read(self) -> None:
        """Reads everything. Raises Abandoned when the rest of the file is not to be read."""
        if illegal_character(self._text) is None:
            if self._parse(self._text):
                return
            starts = []
        else:
            starts = [0]
        starts += _boundaries(self._text, self._resume)
        ends = [*starts[1:], len(self._text)]
        for start, end in zip(starts, ends, strict=False):  # no start, one end: nothing to do
            self._base = self._start = self._resume = start
            self._base_line = self._position(start)[0]
            self._parse_alone(self._text[start:end])

    def _parse_alone(self, chunk: str) -> None:
        fault = illegal_character(chunk)
        if fault is None:
            self._parse(chunk)
        else:
            self._report(fault)

    def _parse(self, text: str) -> bool:
        """Whether the text could be read to its end."""
        events = events_of(text)
        self._inside = False
        before = len(self.roots)
        while True:
            try:
                event = events.get_event()
                if not self._take(event):
                    return True
            except yaml.MarkedYAMLError as error:
                if not self._inside and len(self.roots) > before:
                    self.roots.pop()  # what follows its end without a --- belongs to it
                self._report_error(error)
                return False
            except Abandoned as end:
                if end.whole:
                    raise
                self._add(end.problem)
                return False

    def _take(self, event: Any) -> bool:
        """Passes an event on; False at the end of the stream."""
        kind = type(event)
        if kind is yaml.ScalarEvent:
            self._scalar(event)
        elif kind is yaml.MappingStartEvent or kind is yaml.SequenceStartEvent:
            self._open(event, kind is yaml.MappingStartEvent)
        elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
            span = self._span(event)
            # The end of a block is that of its last node: the event's is the next token's start.
            flow = (span.line, span.column) != (span.end_line, span.end_column)
            self._builder.close((span.end_line, span.end_column) if flow else None)
        elif kind is yaml.AliasEvent:
            self._builder.alias(event.anchor, self._span(event))
        elif kind is yaml.DocumentStartEvent:
            self._start = self._base + event.start_mark.index
            self._resume = self._base + event.end_mark.index
            self._inside = True
            self._builder.begin()
        elif kind is yaml.DocumentEndEvent:
            self._inside = False
            root = self._builder.root
            if root is not None and not (isinstance(root, Scalar) and not root.text):
                self.roots.append(root)
        return kind is not yaml.StreamEndEvent

    def _scalar(self, event: Any) -> None:
        style = _STYLES[event.style]
        text = event.value
        tag = event.tag
        kind: ScalarType = "text"
        own_tag = ""
        if tag is None or tag == "!":
            if style == "plain" and tag is None:
                kind = type_of_plain(text)
        elif tag in _TAGS:
            kind = _TAGS[tag]
        else:
            own_tag = self._own_tag(event)
        if event.anchor is None and tag is None and style not in ("literal", "folded"):
            span = self._span(event)
        else:
            span = self._trimmed(event, style)
        self._builder.scalar(text, kind, style, span, event.anchor or "", own_tag)

    def _open(self, event: Any, mapping: bool) -> None:
        offset = self._base + event.start_mark.index
        if mapping and self._builder.expects_key and self._text[offset - 1 : offset + 1] == "{{":
            self._abandon(template_fault(offset - 1))
        tag = "" if event.tag is None or event.tag in _STRUCTURES else self._own_tag(event)
        plain = event.anchor is None and event.tag is None
        span = self._span(event) if plain else self._trimmed(event, "plain")
        self._builder.open("mapping" if mapping else "sequence", span, event.anchor or "", tag)

    def _own_tag(self, event: Any) -> str:
        """An application's tag; YAML's own namespace knows no others than those above."""
        tag: str = event.tag
        if tag.startswith("!"):
            return tag
        self._add(
            Problem(
                "spec/yaml",
                f"the tag {shortened(tag.replace(_STANDARD, '!!'))} is not one that is read safely",
                self._builder.place(self._span(event)),
                "remove the tag",
            )
        )
        return tag

    def _span(self, event: Any) -> Span:
        start, end = event.start_mark, event.end_mark
        if self._by_offset:
            base = self._base
            return Span(*self._position(base + start.index), *self._position(base + end.index))
        line = self._base_line
        return Span(start.line + line, start.column + 1, end.line + line, end.column + 1)

    def _trimmed(self, event: Any, style: Style) -> Span:
        """Without anchor and tag before it, and without the empty lines after a block scalar."""
        start = self._base + event.start_mark.index
        end = self._base + event.end_mark.index
        if event.anchor is not None or event.tag is not None:
            nothing = style == "plain" and type(event) is yaml.ScalarEvent and not event.value
            found = (_FIRST_PROPERTY if nothing else _PROPERTIES).match(self._text, start)
            start = found.end() if found is not None else start
            end = start if nothing else max(start, end)
        if style in ("literal", "folded"):
            while end > start and self._text[end - 1] in " \t\r\n":
                end -= 1
        return Span(*self._position(start), *self._position(end))

    def _position(self, offset: int) -> tuple[int, int]:
        return position(line_starts(self._text), offset)

    def _report_error(self, error: yaml.MarkedYAMLError) -> None:
        boundary = _SEPARATOR.search(self._text, self._resume)
        document = self._text[self._start : boundary.start() if boundary else len(self._text)]
        fault = explain(error, document, self._start - self._base)
        self._report(fault._replace(offset=fault.offset + self._start - self._base))

    def _problem(self, fault: Fault) -> Problem:
        offset = min(self._base + fault.offset, len(self._text))
        span = point(*self._position(offset), self._text[offset : offset + 1])
        return Problem(fault.rule, fault.message, self._builder.place(span, ()), fault.help)

    def _abandon(self, fault: Fault) -> NoReturn:
        raise Abandoned(self._problem(fault._replace(offset=fault.offset - self._base)))

    def _report(self, fault: Fault) -> None:
        self._add(self._problem(fault))

    def _add(self, problem: Problem) -> None:
        if problem.rule == "spec/template" and any(
            other.rule == problem.rule for other in self.problems.found
        ):
            return  # one word about it is enough: the whole file is a template
        self.problems.add(problem)
