"""Regular expressions of strangers, cut at every `.*` so that no input makes them slow.

Between two cuts only one unbounded repetition of a single character or class is let through,
and none of a group: matching is then at worst quadratic in a name's length.
"""

from __future__ import annotations

import re

MOST_EXPRESSIONS = 16  # alternatives of one pattern at its top level
_LOOKS = ("(?:", "(?!", "(?=")


class Expression:
    """One expression, matched from a name's start: segments with anything between them."""

    def __init__(self, segments: list[str], gaps: list[int]) -> None:
        self._first = re.compile(segments[0])
        self._more = [
            (re.compile(segment), gap) for segment, gap in zip(segments[1:], gaps, strict=True)
        ]

    def matches(self, name: str) -> bool:
        """Whether the expression matches at the start of `name`, as `re.match` has it."""
        found = self._first.match(name)
        for segment, gap in self._more:
            if found is None:
                return False
            found = segment.search(name, found.end() + gap)
        return found is not None


def expressions(pattern: str) -> tuple[Expression, ...] | None:
    """The alternatives of a pattern; None when it is malformed or may be slow."""
    pieces = _pieces(pattern)
    if pieces is None:
        return None
    alternatives: list[tuple[list[str], list[int]]] = [([""], [])]
    for piece in pieces:
        segments, gaps = alternatives[-1]
        if piece == "|":
            alternatives.append(([""], []))
        elif piece in (".*", ".+"):
            segments.append("")
            gaps.append(1 if piece == ".+" else 0)
        else:
            segments[-1] += piece
    if len(alternatives) > MOST_EXPRESSIONS:
        return None
    if any(_repetitions(segment) > 1 for segments, _ in alternatives for segment in segments):
        return None
    try:
        return tuple(Expression(segments, gaps) for segments, gaps in alternatives)
    except (re.error, OverflowError, RecursionError):
        return None


def _pieces(pattern: str) -> list[str] | None:
    """Atoms, groups, and at the top level `.*`, `.+` and `|`; None when something is refused."""
    pieces: list[str] = []
    at = 0
    while at < len(pattern):
        end = _atom_end(pattern, at)
        if end is None:
            return None
        atom, at = pattern[at:end], end
        quantifier = pattern[at : at + 1] if pattern[at : at + 1] in ("*", "+", "?", "{") else ""
        if quantifier and (quantifier == "{" or (atom.startswith("(") and quantifier != "?")):
            return None
        at += len(quantifier)
        if quantifier and pattern[at : at + 1] in ("?", "+"):
            at += 1  # lazy or possessive: the same names match once nothing follows
        if atom == "." and quantifier in ("*", "+"):
            pieces.append(f".{quantifier}")
        else:
            pieces.append(atom + quantifier)
    return pieces


def _atom_end(pattern: str, at: int) -> int | None:
    """Where the atom that starts at `at` ends: an escape, a class, a group, one character."""
    char = pattern[at]
    if char == "\\":
        # A back reference can be slow, and a lone backslash is an error.
        following = pattern[at + 1 : at + 2]
        return at + 2 if following and not following.isdigit() else None
    if char == "[":
        close = pattern.find("]", at + 2)
        return close + 1 if close > 0 else None
    if char == "(":
        return _group_end(pattern, at)
    return at + 1 if char not in "*+?{)" else None


def _group_end(pattern: str, at: int) -> int | None:
    """Where a group closes. Groups in it may not repeat; other kinds of groups are refused."""
    if pattern.startswith("(?", at) and not pattern.startswith(_LOOKS, at):
        return None
    inner = at + 3 if pattern.startswith(_LOOKS, at) else at + 1
    while inner < len(pattern):
        if pattern[inner] == ")":
            return inner + 1
        repeats = pattern[inner] in "*+?" and pattern[inner - 1] != "("
        if repeats and pattern[inner] != "?" and pattern[inner - 1] == ")":
            return None
        end = inner + 1 if repeats else _atom_end(pattern, inner)
        if end is None:
            return None
        inner = end
    return None


def _repetitions(segment: str) -> int:
    """Unbounded repetitions in a segment, escaped characters and classes left out."""
    bare = re.sub(r"\\.|\[[^]]*\]", "x", segment)
    return bare.count("*") + bare.count("+")
