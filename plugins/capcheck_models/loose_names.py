"""Names as people write them in prose: Llama 3 8B, Qwen2.5 32B Instruct, mistral small 24b.

A name is taken for a catalogue entry when both hold the same words, whatever joins them. Words
that do not change an architecture, and the date or version of a release, may be missing from what
was written, as long as every entry that remains has one architecture.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from typing import NamedTuple

from .spelling import LONGEST_NAME

_WORD = re.compile(r"\d+x\d+(?:\.\d+)?[bm]|a?\d+(?:\.\d+)?[bmt](?![a-z])|\d+(?:\.\d+)*|[a-z]+")
_UNDERSCORED = re.compile(r"(?<=\d)_(?=\d)")
# None of these changes what a model is built of.
_IDLE = frozenset(["base", "chat", "hf", "instruct", "it", "instruction", "model", "pt", "the"])
_TRAINED = frozenset(
    ["fine", "finetune", "finetuned", "tune", "tuned"]
)  # idle where a size is told
_MAKERS = frozenset(["meta", "nvidia"])  # that Hub names begin with and people leave out
# A date, a version or the active parameters of a mixture.
_RELEASE = re.compile(r"^(?:2[3-6](?:0[1-9]|1[0-2])|0\.\d|v|a\d+(?:\.\d+)?b)$")


class Loose(NamedTuple):
    """What a loosely spelled name stands for."""

    base: str
    entry: str  # the entry whose words it has
    same_words: bool  # nothing was left out


def words(name: str) -> tuple[str, ...]:
    """The words of a name in their order, numbers apart from letters; none of another script."""
    last = name.rpartition("/")[2].lower()[:LONGEST_NAME].replace("+", " plus")
    if not last.isascii():
        return ()
    return tuple(_WORD.findall(_UNDERSCORED.sub(".", last)))


def _core(all_words: Iterable[str]) -> frozenset[str]:
    core = frozenset(word for word in all_words if word not in _IDLE | _MAKERS)
    return core - _TRAINED if _has_size(core) else core


def _undated(core: frozenset[str]) -> frozenset[str]:
    return frozenset(word for word in core if _RELEASE.match(word) is None)


def _has_size(core: frozenset[str]) -> bool:
    return any(word[-1] in "bmt" and word[:-1].strip("ax0123456789.") == "" for word in core)


_Table = dict[frozenset[str], dict[str, str]]  # words -> architecture -> an entry


class LooseNames:
    """An index of names by their words."""

    def __init__(self, entries: Iterable[tuple[str, str]]) -> None:
        """`entries` are names and the catalogue's id of their architecture, best last."""
        self._whole: _Table = {}
        self._core: _Table = {}
        self._undated: _Table = {}
        for entry, base in entries:
            whole = frozenset(words(entry))
            core = _core(whole)
            self._whole.setdefault(whole, {})[base] = entry
            self._core.setdefault(core, {})[base] = entry
            self._undated.setdefault(_undated(core), {})[base] = entry

    def find(self, name: str, makers: Collection[str] = ()) -> Loose | None:
        """The only architecture whose entries have the words of `name`; None when several have.

        One of `makers`, in lower case, may come first: "unsloth QwQ-32B".
        """
        said = words(name)
        found = self._only(said)
        if found is None and len(said) > 2 and said[0] in makers:
            found = self._only(said[1:])
        return found

    def _only(self, said: tuple[str, ...]) -> Loose | None:
        whole = frozenset(said)
        core = _core(whole)
        if len(core) < 2 or not any(word.isalpha() for word in core):
            return None
        for table, key in ((self._whole, whole), (self._core, core), (self._undated, core)):
            bases = table.get(key, {})
            if len(bases) > 1:
                return None
            if bases and (table is not self._undated or _has_size(core)):
                ((base, entry),) = bases.items()
                return Loose(base, entry, table is self._whole)
        return None
