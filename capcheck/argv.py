"""A command line's words as options with their places, the way argparse takes them apart.

    argv = read_argv(words, engine.options)
    argv.options      # ArgvOption("--max-model-len", "max_model_len", Word("32k", ...), ...)
    argv.positionals  # what belongs to no option: the model, stray words

Knows `--k v`, `--k=v`, `--flag`, `--no-flag`, `-tp 2`, `-tp=2`, `-O3`, several values after a
list option, `--json.key value`, `--json.list+ value`, unique prefixes and `--`. Nothing is
dropped: of an option given twice both are listed, the last of which is the one that counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from capcheck.option_types import Standing
from capcheck.values import Place
from capcheck.versions import Version
from capcheck.words import Word

if TYPE_CHECKING:
    from capcheck.options import OptionTable

_NEGATIVE = re.compile(r"-\d+|-\d*\.\d+")
_SWITCH_WORDS = ("true", "false")
_SHORT = 2  # characters of a short option whose value may follow at once: -O3


class ArgvOption(NamedTuple):
    """One option as it was given.

    `value` is True for an option that stands alone (also where it should not), False for a
    negated one, a list of words for a list.
    """

    written: str  # --max-num-s, as it is written, without the value
    name: str  # canonical, with the keys inside JSON: speculative_config.model; empty: unknown
    value: Word | bool | list[Word]
    place: Place  # of the name
    value_place: Place  # of the value, or of the name where there is none


class Argv(NamedTuple):
    """A command line taken apart."""

    options: tuple[ArgvOption, ...] = ()
    positionals: tuple[Word, ...] = ()


def read_argv(words: Sequence[Word], table: OptionTable, version: Version | None = None) -> Argv:
    """The options and positional words of a command line.

    Without `version`, names and whether they take a value are those of any release. An option
    that no release has takes the next word for its value, unless that is an option, too.
    """
    return _Reader(words, table, version).read()


class _Reader:
    def __init__(self, words: Sequence[Word], table: OptionTable, version: Version | None) -> None:
        self._words = words
        self._table = table
        self._version = version
        self._options: list[ArgvOption] = []
        self._positionals: list[Word] = []
        self._next = 0

    def read(self) -> Argv:
        while self._next < len(self._words):
            word = self._words[self._next]
            self._next += 1
            if word.text == "--":
                self._positionals += self._words[self._next :]
                break
            if _is_option(word):
                self._option(word)
            else:
                self._positionals.append(word)
        return Argv(tuple(self._options), tuple(self._positionals))

    def _option(self, word: Word) -> None:
        written, equals, _ = word.text.partition("=")
        standing = self._meaning(written)
        value: Word | None = None
        if equals:
            value = _part(word, len(written) + 1)
        elif standing.option is None and not written.startswith("--"):
            short = self._meaning(written[:_SHORT])
            if short.option is not None and len(written) > _SHORT:
                standing, value, written = short, _part(word, _SHORT), written[:_SHORT]
        head, dot, keys = written.partition(".")
        name = standing.option.name if standing.option else ""
        place = word.part(0, len(written)) if value is not None else word.place
        if dot:
            self._inside(written, name or _plain(head), keys, value, place)
        elif value is not None:
            self._add(written, name, self._whole(name, value), place)
        else:
            self._add(written, name, self._following(name, standing), place)

    def _meaning(self, written: str) -> Standing:
        standing = self._table.resolve(written, self._version)
        if self._version is None and standing.verdict == "ambiguous" and self._table.releases:
            newest = self._table.resolve(written, self._table.releases[-1])
            return newest if newest.option is not None else standing
        return standing

    def _add(self, written: str, name: str, value: Word | bool | list[Word], place: Place) -> None:
        at = place
        if isinstance(value, list):
            at = value[0].place
        elif isinstance(value, Word):
            at = value.place
        self._options.append(ArgvOption(written, name, value, place, at))

    def _inside(self, written: str, name: str, keys: str, value: Word | None, place: Place) -> None:
        """A key of a JSON option. `+` adds to a list, several values at a time."""
        if value is None:
            value = self._take()
        full = f"{name}.{keys.removesuffix('+')}"
        if not keys.endswith("+") or value is None:
            self._add(written, full, True if value is None else value, place)
            return
        items = [value._replace(text=part) for part in value.text.split(",")]
        self._add(written, full, [*self._so_far(full), *items], place)

    def _so_far(self, name: str) -> list[Word]:
        """What the same list was given before."""
        for option in reversed(self._options):
            if option.name == name:
                return option.value if isinstance(option.value, list) else []
        return []

    def _whole(self, name: str, value: Word) -> Word | list[Word]:
        """The value after `=`: a list option has only that one."""
        shape = self._table.shape(name, self._version)
        if name and shape.type == "list":
            return [*(self._so_far(name) if shape.repeated else []), value]
        return value

    def _following(self, name: str, standing: Standing) -> Word | bool | list[Word]:
        """The value in the words that follow the name."""
        if standing.negated:
            return False
        if not name:
            return self._take() or True
        shape = self._table.shape(name, self._version)
        if shape.type == "bool":
            if self._next < len(self._words) and self._peek().lower() in _SWITCH_WORDS:
                return self._take() or True
            return True
        if shape.type != "list":
            return self._take() or True
        if shape.repeated:
            one = self._take()
            return [*self._so_far(name), one] if one else True
        several = []
        while (one := self._take()) is not None:
            several.append(one)
        return several or True

    def _peek(self) -> str:
        return self._words[self._next].text

    def _take(self) -> Word | None:
        """The next word, unless it is an option or the end."""
        if self._next == len(self._words):
            return None
        word = self._words[self._next]
        if word.text == "--" or _is_option(word):
            return None
        self._next += 1
        return word


def _plain(written: str) -> str:
    return written.lstrip("-").replace("-", "_")


def _part(word: Word, start: int) -> Word:
    return word._replace(text=word.text[start:], place=word.part(start, len(word.text)))


def _is_option(word: Word) -> bool:
    """Whether argparse takes the word for an option's name: -x, not -1, not "- a sentence"."""
    text = word.text
    if not text.startswith("-") or text == "-" or _NEGATIVE.fullmatch(text):
        return False
    name = text.partition("=")[0]
    return " " not in name and not (word.unresolved and "$" in name)
