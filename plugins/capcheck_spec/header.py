"""The header of a capcheck/v1 document, and headers that were meant to be one."""

from __future__ import annotations

from capcheck.source import Mapping, Node, Scalar

VERSION_KEY, KIND_KEY = "apiVersion", "kind"
VERSION, KIND = "capcheck/v1", "Deployment"
LONGEST_SHOWN = 60  # characters
MOST_EDITS = 2  # a longer way from our words is somebody else's word


def distance(first: str, second: str) -> int:
    """Insertions, deletions, replacements and swaps of neighbours from one word to the other."""
    rows: list[list[int]] = [list(range(len(second) + 1))]
    for i, left in enumerate(first, 1):
        row = [i]
        for j, right in enumerate(second, 1):
            cost = min(rows[-1][j] + 1, row[j - 1] + 1, rows[-1][j - 1] + (left != right))
            swapped = i > 1 and j > 1 and left == second[j - 2] and first[i - 2] == right
            row.append(min(cost, rows[-2][j - 2] + 1) if swapped else cost)
        rows.append(row)
    return rows[-1][-1]


def _near(text: str, word: str) -> bool:
    if abs(len(text) - len(word)) > MOST_EDITS:
        return False
    return distance(text.casefold(), word.casefold()) <= MOST_EDITS


def _shown(text: str) -> str:
    """A word of the file's, short enough for a message."""
    return repr(text if len(text) <= LONGEST_SHOWN else f"{text[:LONGEST_SHOWN]}…")


def _text_of(node: Node | None) -> str:
    return node.text if isinstance(node, Scalar) else ""


def is_ours(root: Node) -> bool:
    """Whether the header is exactly ours."""
    if not isinstance(root, Mapping):
        return False
    return _text_of(root.get(VERSION_KEY)) == VERSION and _text_of(root.get(KIND_KEY)) == KIND


def _meant_version(text: str) -> bool:
    """Whether a version was meant to be ours: `capchek/v1`, `capcheck/v2`, `Capcheck/v1`."""
    return text.casefold().startswith("capcheck/") or _near(text, VERSION)


def near_miss(root: Node) -> tuple[str, Node] | None:
    """What keeps a header from being ours, and the node to mark; None for others' headers."""
    if not isinstance(root, Mapping):
        return None
    version = root.get(VERSION_KEY)
    if version is None:
        return _misspelt_version_key(root)
    if not isinstance(version, Scalar) or not _meant_version(version.text):
        return None
    if version.text != VERSION:
        return f"{VERSION_KEY} is {_shown(version.text)}: did you mean {VERSION}?", version
    return _wrong_kind(root, version)


def _misspelt_version_key(root: Mapping) -> tuple[str, Node] | None:
    for key, value in root.entries:
        if _near(key.text, VERSION_KEY) and _meant_version(_text_of(value)):
            return f"the key {_shown(key.text)} is not known: did you mean {VERSION_KEY}?", key
    return None


def _wrong_kind(root: Mapping, version: Scalar) -> tuple[str, Node] | None:
    """Our version is ours whatever the kind is."""
    kind = root.get(KIND_KEY)
    if kind is None:
        for key, _ in root.entries:
            if _near(key.text, KIND_KEY) and key.text != VERSION_KEY:
                return f"the key {_shown(key.text)} is not known: did you mean {KIND_KEY}?", key
        return f"{KIND_KEY}: {KIND} is missing", version
    if _text_of(kind) == KIND:
        return None
    return f"{KIND_KEY} is {_shown(_text_of(kind))}: {VERSION} has only {KIND}", kind
