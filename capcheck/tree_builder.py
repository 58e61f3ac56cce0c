"""Nodes from a reader's events: keys, duplicates, merge keys, aliases, and caps on all of it."""

from __future__ import annotations

from typing import Final, Literal, NamedTuple

from capcheck.reading import Abandoned, ProblemList, Span, shortened
from capcheck.source import Limits, Mapping, Node, Problem, Scalar, ScalarType, Sequence, Style
from capcheck.values import Path, Place

MERGE: Final = "<<"

# What the next node of a collection is: an item of a sequence; or of a mapping the key, its value,
# what << merges, or the value of a key that is none.
_Wanted = Literal["item", "key", "value", "merged", "dropped"]


class _Anchored(NamedTuple):
    node: Node | None  # None while its collection is still open
    size: int
    height: int


class _Frame:
    """A collection that is being read."""

    __slots__ = (
        "anchor",
        "at",
        "child",
        "entries",
        "height",
        "items",
        "key",
        "merged",
        "path",
        "size",
        "tag",
        "wants",
    )

    def __init__(self, wants: _Wanted, at: Span, path: Path, anchor: str, tag: str) -> None:
        self.wants: _Wanted = wants
        self.at = at
        self.path = path
        self.child = path  # the path of a mapping's next value
        self.anchor = anchor
        self.tag = tag
        self.items: list[Node] = []
        self.entries: dict[str, tuple[Scalar, Node]] = {}
        self.key: Scalar | None = None
        self.merged: list[Mapping] = []
        self.size = 1
        self.height = 1


class TreeBuilder:
    """Builds the tree of one document after another. Every method may raise Abandoned."""

    def __init__(self, file: str, limits: Limits, problems: ProblemList) -> None:
        self.root: Node | None = None
        self._file = file
        self._limits = limits
        self._problems = problems
        self._frames: list[_Frame] = []
        self._anchors: dict[str, _Anchored] = {}
        self._written = 0  # nodes of all documents
        self._expanded = 0  # nodes of this document, aliases expanded
        self._end = (1, 1)

    def begin(self) -> None:
        """A new document."""
        self.root = None
        self._frames = []
        self._anchors = {}
        self._expanded = 0

    @property
    def expects_key(self) -> bool:
        """Whether the next node is the key of a mapping."""
        return bool(self._frames) and self._frames[-1].wants == "key"

    def place(self, span: Span, path: Path | None = None) -> Place:
        """A place of this file, by default with the path of what is being read."""
        return Place(self._file, *span, self._child_path() if path is None else path)

    def scalar(
        self,
        text: str,
        kind: ScalarType,
        style: Style,
        span: Span,
        anchor: str = "",
        tag: str = "",
    ) -> None:
        """A scalar, as a key or a value."""
        self._end = span[2:]
        self._count(span)
        frame = self._frames[-1] if self._frames else None
        if frame is None:
            path: Path = ()
        elif frame.wants == "item":
            path = (*frame.path, len(frame.items))
        elif frame.wants == "key":
            path = (*frame.path, text)
        else:
            path = frame.child
        node = Scalar(text, kind, style, Place(self._file, *span, path), tag)
        if anchor:
            self._anchors[anchor] = _Anchored(node, 1, 0)
        self._add(node, 1, 0)

    def open(
        self, kind: Literal["mapping", "sequence"], at: Span, anchor: str = "", tag: str = ""
    ) -> None:
        """The start of a collection; `at` needs only a start."""
        self._end = at[:2]
        self._count(at)
        if len(self._frames) >= self._limits.depth:
            self._too_deep(at)
        if anchor:
            self._anchors[anchor] = _Anchored(None, 0, 0)
        wants: _Wanted = "key" if kind == "mapping" else "item"
        self._frames.append(_Frame(wants, at, self._child_path(), anchor, tag))

    def close(self, end: tuple[int, int] | None = None) -> None:
        """The end of the innermost collection; None: where its last node ended."""
        frame = self._frames.pop()
        if end is not None:
            self._end = end
        place = Place(self._file, *frame.at[:2], *self._end, frame.path)
        node: Node
        if frame.wants == "item":
            node = Sequence(tuple(frame.items), place, frame.tag)
        else:
            node = Mapping(_merged_entries(frame), place, frame.tag)
        if frame.anchor:
            self._anchors[frame.anchor] = _Anchored(node, frame.size, frame.height)
        self._add(node, frame.size, frame.height)

    def alias(self, name: str, span: Span) -> None:
        """A node that was anchored before; it keeps its place."""
        self._end = span[2:]
        self._count(span)
        anchored = self._anchors.get(name)
        short = shortened(name)
        if anchored is None:
            self._abandon(
                "spec/alias",
                f"no anchor &{short} stands before this alias",
                span,
                f"quote the text if it is no alias: '*{short}'",
            )
        elif anchored.node is None:
            self._abandon("spec/alias", f"the alias *{short} stands inside its own anchor", span)
        else:
            self._expanded += anchored.size - 1
            if self._expanded > self._limits.nodes:
                most = f"{self._limits.nodes:,}"
                self._abandon("spec/alias", f"aliases expand to more than {most} values", span)
            if len(self._frames) + anchored.height > self._limits.depth:
                self._too_deep(span)
            self._add(anchored.node, anchored.size, anchored.height)

    def _child_path(self) -> Path:
        if not self._frames:
            return ()
        frame = self._frames[-1]
        return (*frame.path, len(frame.items)) if frame.wants == "item" else frame.child

    def _count(self, span: Span) -> None:
        self._written += 1
        self._expanded += 1
        if self._expanded > self._limits.nodes:
            most = f"{self._limits.nodes:,}"
            self._abandon("spec/too-large", f"the document has more than {most} values", span)
        if self._written > self._limits.all_nodes:
            most = f"{self._limits.all_nodes:,}"
            message = f"the file has more than {most} values"
            problem = Problem("spec/too-large", message, self.place(span))
            raise Abandoned(problem, whole=True)

    def _too_deep(self, span: Span) -> None:
        message = f"nested deeper than {self._limits.depth} levels"
        self._abandon("spec/too-large", message, span)

    def _abandon(self, rule: str, message: str, span: Span, help: str = "") -> None:
        raise Abandoned(Problem(rule, message, self.place(span), help))

    def _add(self, node: Node, size: int, height: int) -> None:
        if not self._frames:
            self.root = node
            return
        frame = self._frames[-1]
        frame.size += size
        # What << brings is not one level deeper.
        frame.height = max(frame.height, height + (frame.wants != "merged"))
        if frame.wants == "item":
            frame.items.append(node)
        elif frame.wants == "key":
            self._key(frame, node)
        else:
            if frame.wants == "merged":
                self._merge(frame, node)
            elif frame.wants == "value" and frame.key is not None:
                frame.entries[frame.key.text] = (frame.key, node)
            frame.wants = "key"
            frame.child = frame.path

    def _key(self, frame: _Frame, node: Node) -> None:
        if not isinstance(node, Scalar):
            frame.wants = "dropped"
            message = "a key must be text, not a list or a mapping"
            help = "quote the key if it is text"
            self._problems.add(Problem("spec/yaml", message, node.place, help))
            return
        frame.key = node
        if node.text == MERGE and node.style == "plain":
            if frame.merged:
                self._duplicate(node, None)
            frame.wants = "merged"
            return
        first = frame.entries.pop(node.text, None)
        if first is not None:
            self._duplicate(node, first[0])
        frame.wants = "value"
        frame.child = (*frame.path, node.text)

    def _duplicate(self, key: Scalar, first: Scalar | None) -> None:
        message = f"the key {shortened(key.text)!r} stands twice in this mapping"
        if first is not None:
            message += f": on line {first.place.line}, column {first.place.column}, and here"
        self._problems.add(
            Problem(
                "spec/duplicate-key", message, key.place, "keep one of the two; the last counts"
            )
        )

    def _merge(self, frame: _Frame, node: Node) -> None:
        sources = node.items if isinstance(node, Sequence) else (node,)
        mappings = [source for source in sources if isinstance(source, Mapping)]
        if len(mappings) != len(sources) and frame.key is not None:
            message = "the merge key << takes a mapping or a list of mappings"
            help = "write <<: *name, where &name anchors a mapping"
            self._problems.add(Problem("spec/yaml", message, frame.key.place, help))
        frame.merged[:0] = mappings


def _merged_entries(frame: _Frame) -> tuple[tuple[Scalar, Node], ...]:
    """What `<<` brings comes first and loses to keys of the mapping's own."""
    if not frame.merged:
        return tuple(frame.entries.values())
    brought: dict[str, tuple[Scalar, Node]] = {}
    for source in frame.merged:
        for entry in source.entries:
            if entry[0].text not in frame.entries:
                brought.setdefault(entry[0].text, entry)
    return (*brought.values(), *frame.entries.values())
