"""Releases that a command installs before it starts the engine: `pip install name==version`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from capcheck.source import Node, Scalar
from capcheck.unrendered import unresolved_why
from capcheck.values import Origin, Value
from capcheck.words import Command, Word

_REQUIREMENT = re.compile(r"([A-Za-z0-9][\w.-]*)(?:\[[^\]]*\])?\s*(.*)", re.DOTALL)
_PINNED = re.compile(r"===?\s*([A-Za-z0-9][\w.+!-]*)")
_PIP = re.compile(r"pip(?:3(?:\.\d+)?)?")


def installed(commands: Iterable[Command], names: Sequence[str]) -> Value[Node] | None:
    """The release of the last installation of `names`; None when nothing installs any.

    Unknown when it is not pinned to one release, or comes from a file or a repository.
    """
    wanted = {_plain(name) for name in names}
    found = None
    for command in commands:
        for word in _requirements(command.words):
            found = _release(word, wanted) or found
    return found


def _plain(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def _requirements(words: Sequence[Word]) -> Sequence[Word]:
    """What stands behind `pip install`."""
    texts = [word.text for word in words]
    for at, text in enumerate(texts[:-1]):
        if _PIP.fullmatch(text.rpartition("/")[2]) and texts[at + 1] == "install":
            return words[at + 2 :]
    return ()


def _release(word: Word, names: set[str]) -> Value[Node] | None:
    origin = Origin("written", word.place, word="pip install")
    if "/" in word.text or word.text.endswith(".whl"):
        stem = re.split(r"[-@.#]", _plain(word.text.rpartition("/")[2]))[0]
        if stem not in {name.partition("-")[0] for name in names}:
            return None
        return Value((), origin._replace(why=f"{word.text} does not tell the release"))
    requirement = _REQUIREMENT.fullmatch(word.text.strip())
    if requirement is None or _plain(requirement[1]) not in names:
        return None
    if word.unresolved:
        return Value((), origin._replace(why=unresolved_why(word.unresolved)))
    pinned = _PINNED.fullmatch(requirement[2].strip())
    if pinned is None:
        return Value((), origin._replace(why=f"{word.text} is not pinned to one release"))
    return Value((Scalar(pinned[1], "text", "plain", word.place),), origin)
