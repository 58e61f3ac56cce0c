"""Comments in deployment files, and the suppressions that stand in them.

Only real comments count: a `#` inside a string, or a comment of a script inside a block scalar,
is data.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from capcheck.lines import line_starts, position
from capcheck.values import Place

MARK = "capcheck:"
_YAML_ENDINGS = (".yaml", ".yml")
_COMMENT = re.compile(r"#[^\r\n\x85\u2028\u2029]*")
_GAP = re.compile(r"(?:[ \t]*(?:#[^\r\n]*)?(?:\r\n|\n|\r))*[ \t]*(?:#[^\r\n]*)?")
_BOUNDARY = re.compile(r"(?:(?<=\n)|(?<=\r))---(?=[ \t\r\n]|\Z)")
_BLOCK_HEADER = re.compile(r"[|>][-+0-9]*[ \t]+(?=#)")
_WORD = re.compile(r"#\s*capcheck:\s*(?P<word>[A-Za-z-]+)\s*(?P<list>\[[^\]]*\])?(?P<reason>.*)")
WORDS = ("ignore", "file-ignore")


class Comment(NamedTuple):
    """A comment with its `#`. `alone`: nothing else stands on its line."""

    text: str
    line: int
    column: int
    alone: bool


class Suppression(NamedTuple):
    """A comment that names rules not to report. `lines` is None for a whole file."""

    word: str
    rules: tuple[str, ...]
    reason: str
    place: Place
    lines: frozenset[int] | None


class Commented(NamedTuple):
    """A file's comments, and the first and last line of each scalar of several lines."""

    comments: tuple[Comment, ...]
    scalars: tuple[tuple[int, int], ...]


def _in_gap(text: str, start: int, end: int) -> Iterator[int]:
    """Where comments start between two tokens: only blanks and comments stand there."""
    at = start
    while (at := text.find("#", at, end)) >= 0:
        found = _COMMENT.match(text, at, end)
        if at == 0 or text[at - 1].isspace():
            yield at
        at = found.end() if found else at + 1


def _scan(text: str) -> tuple[list[int], list[tuple[int, int]], bool]:
    """Where comments start in YAML, where scalars start and end, and whether it could be read.

    Of text that is no YAML the comments before the fault are given.
    """
    import yaml

    found: list[int] = []
    spans: list[tuple[int, int]] = []
    loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    end = 0
    try:
        for token in yaml.scan(text, Loader=loader):
            start, after = token.start_mark.index, token.end_mark.index
            found += _in_gap(text, end, start)
            if isinstance(token, yaml.ScalarToken) and after > start:
                spans.append((start, after))
                header = _BLOCK_HEADER.match(text, start) if token.style in ("|", ">") else None
                found += [header.end()] if header else []
            end = max(end, after)
        found += _in_gap(text, end, len(text))
    except yaml.YAMLError:
        gap = _GAP.match(text, end)
        found += _in_gap(text, end, gap.end() if gap else end)
        return found, spans, False
    return found, spans, True


def _offsets(text: str) -> tuple[list[int], list[tuple[int, int]]]:
    """As `_scan`; a fault in one document does not hide the comments of the next."""
    found, spans, whole = _scan(text)
    if whole:
        return found, spans
    found, spans = [], []
    starts = [0, *(boundary.start() for boundary in _BOUNDARY.finditer(text))]
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        here, there, _ = _scan(text[start:end])
        found += [start + at for at in here]
        spans += [(start + at, start + after) for at, after in there]
    return found, spans


def _whole_lines(text: str) -> list[int]:
    """Comments that have a line of their own: all that is sure in a file that is no YAML."""
    return [found.end() - 1 for found in re.finditer(r"^[ \t]*#", text, re.MULTILINE)]


def comments_of(text: str, file: str) -> Commented:
    """The comments of a file; JSON has none."""
    name = file.lower()
    spans: list[tuple[int, int]] = []
    if name.endswith(".json"):
        return Commented((), ())
    if name.endswith(_YAML_ENDINGS) or file.startswith("<"):
        offsets, spans = _offsets(text)
    else:
        offsets = _whole_lines(text)
    starts = line_starts(text)
    comments = []
    for at in offsets:
        line, column = position(starts, at)
        match = _COMMENT.match(text, at)
        alone = not text[starts[line - 1] : at].strip(" \t")
        comments.append(Comment(match.group() if match else "#", line, column, alone))
    scalars = []
    for start, end in spans:
        first = position(starts, start)[0]
        last = position(starts, start + len(text[start:end].rstrip()))[0]
        if last > first:
            scalars.append((first, last))
    return Commented(tuple(comments), tuple(scalars))


def _covered(commented: Commented, comment: Comment, alone: frozenset[int]) -> frozenset[int]:
    """The lines that a suppression speaks of: its own, or the next that is no comment."""
    first = comment.line
    if comment.alone:
        while first in alone:
            first += 1
    lines = {comment.line, first}
    for start, end in commented.scalars:
        if first in (start, end):
            lines.update(range(start, end + 1))
    return frozenset(lines)


def _meant(word: str, *, listed: bool) -> bool:
    """Whether a comment is a suppression, or a misspelt one: prose about capcheck is none."""
    if word in WORDS or not listed:
        return word in WORDS
    from difflib import get_close_matches

    return bool(get_close_matches(word, WORDS, 1))


def suppressions(text: str, file: str) -> list[Suppression]:
    """Every suppression of a file, well-formed or not, in its order."""
    if MARK not in text:
        return []
    commented = comments_of(text, file)
    alone = frozenset(one.line for one in commented.comments if one.alone)
    found = []
    for comment in commented.comments:
        match = _WORD.search(comment.text)
        if match is None or not _meant(match["word"], listed=match["list"] is not None):
            continue
        end = comment.column + len(comment.text.rstrip())
        place = Place(file, comment.line, comment.column, comment.line, end)
        names = (match["list"] or "[]")[1:-1].split(",")
        whole = match["word"] == "file-ignore"
        found.append(
            Suppression(
                match["word"],
                tuple(name.strip() for name in names if name.strip()),
                match["reason"].strip(" \t-–—:"),
                place,
                None if whole else _covered(commented, comment, alone),
            )
        )
    return found
