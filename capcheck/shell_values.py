"""What a script's words hold once its variables are expanded, as far as the files tell."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final, NamedTuple

from capcheck.shell_syntax import ARRAY, SUBSTITUTION, Part, RawWord
from capcheck.values import Place
from capcheck.words import Script, Word

_FIELDS = re.compile(r"[ \t\r\n]+|[^ \t\r\n]+")
_BARE_SUBSTITUTION = re.compile(r"\$\(([A-Za-z_][A-Za-z0-9_]*)\)")
_MOST_EXPANDED: Final = 1_000_000  # characters; values that double each other end there


class Atom(NamedTuple):
    """A stretch of an expanded word; `start` and `end` in the script."""

    text: str
    start: int
    end: int
    quoted: bool
    splits: bool = False  # blanks in it end the word
    unresolved: str = ""
    stands: bool = False  # the script says just this there
    defaulted: str = ""  # the variable whose default this is


class Field(NamedTuple):
    """A word and what it was made of; nothing for an item of an array."""

    word: Word
    atoms: tuple[Atom, ...] = ()


class Variables:
    """The variables of one shell.

    A name that is absent is set by nobody who is known, so that `${NAME:-default}` gives the
    default; None is set to something that is not known.
    """

    def __init__(self, known: Mapping[str, str | None]) -> None:
        self.values: dict[str, tuple[Atom, ...] | None] = {
            name: None if text is None else (Atom(text, 0, 0, quoted=False),)
            for name, text in known.items()
        }
        self.arrays: dict[str, tuple[Word, ...] | None] = {}
        self.assigned: list[str] = []  # by ${NAME:=…}, since the shell last looked
        self._left = _MOST_EXPANDED

    def exported(self, names: Iterable[str]) -> Variables:
        """What a shell started from this one sees."""
        inner = Variables({})
        inner.values = {name: self.values[name] for name in names if name in self.values}
        inner._left = self._left
        return inner

    def expand(self, parts: Iterable[Part]) -> list[Atom]:
        """The parts with the variables' values."""
        atoms: list[Atom] = []
        for part in parts:
            if part.kind == "variable":
                atoms += self._variable(part)
            elif part.kind == "opaque":
                name = part.name
                found = _BARE_SUBSTITUTION.fullmatch(part.text) if name == SUBSTITUTION else None
                if found is not None and found[1] in self.values:
                    name = found[1]  # Kubernetes would have put the variable here
                atoms.append(_as_written(part, name))
            else:
                stands = len(part.text) == part.end - part.start
                atoms.append(Atom(part.text, part.start, part.end, part.quoted, stands=stands))
        return atoms

    def _variable(self, part: Part) -> list[Atom]:
        name, operator = part.name, part.operator
        value = self.values.get(name)
        written = [_as_written(part, f"{name}[@]" if operator == ARRAY else name)]
        if operator in ("+", ":+"):
            if value is None:
                return written
            if operator == "+" or any(atom.text and not atom.unresolved for atom in value):
                return self._argument(part)
            return written if any(atom.unresolved for atom in value) else []
        if operator == ARRAY or (value is None and name in self.values):
            return written
        empty = value is None or not any(atom.text for atom in value)
        if (
            operator[-1:] in ("-", "=")
            and operator
            and (value is None or (empty and ":" in operator))
        ):
            found = [atom._replace(defaulted=name) for atom in self._argument(part)]
            found = found or [Atom("", part.start, part.end, part.quoted, defaulted=name)]
            if "=" not in operator:
                return found
            self.values[name] = tuple(found)
            self.assigned.append(name)
            value = self.values[name]
        if value is None or not self._spend(value):
            return written
        return [
            atom._replace(
                start=part.start,
                end=part.end,
                quoted=part.quoted,
                splits=not part.quoted,
                stands=False,
            )
            for atom in value
        ]

    def _argument(self, part: Part) -> list[Atom]:
        atoms = self.expand(part.argument)
        if part.quoted:
            return atoms
        return [atom._replace(splits=not atom.quoted) for atom in atoms]

    def _spend(self, value: Sequence[Atom]) -> bool:
        self._left -= sum(len(atom.text) + 1 for atom in value)
        return self._left >= 0

    def fields(
        self, raw: RawWord, script: Script, place: Callable[[int, int], Place]
    ) -> list[Field]:
        """The words that a word becomes: one, or none, or several where a value is split."""
        parts = [part for part in raw.parts if part.text or part.kind != "text"]
        if len(parts) == 1 and parts[0].operator == ARRAY:
            items = self.arrays.get(parts[0].name)
            if items is not None and self._spend([Atom(item.text, 0, 0, True) for item in items]):
                return [Field(item) for item in items]
        groups = _split(self.expand(raw.parts))
        fields = []
        for atoms in groups:
            start, end = raw.start, raw.end
            if len(groups) > 1:
                start = min(atom.start for atom in atoms)
                end = max(atom.end for atom in atoms)
            word = word_of(atoms, place(*script.span(start, end)))
            inherited = script.defaults(start, end)
            word = word._replace(defaulted=tuple(dict.fromkeys((*word.defaulted, *inherited))))
            if all(atom.stands for atom in atoms) and len(word.text) == end - start:
                word = word._replace(verbatim=script.stands(start, end))
            fields.append(Field(word, tuple(atoms)))
        return fields


def _as_written(part: Part, unresolved: str) -> Atom:
    return Atom(part.text, part.start, part.end, part.quoted, False, unresolved, stands=True)


def word_of(atoms: Sequence[Atom], place: Place) -> Word:
    """The word that the atoms make."""
    return Word(
        "".join(atom.text for atom in atoms),
        place,
        tuple(dict.fromkeys(atom.unresolved for atom in atoms if atom.unresolved)),
        any(atom.quoted for atom in atoms),
        tuple(dict.fromkeys(atom.defaulted for atom in atoms if atom.defaulted)),
    )


def _split(atoms: Iterable[Atom]) -> list[list[Atom]]:
    """Field splitting: blanks in the values of unquoted variables end a word."""
    groups: list[list[Atom]] = []
    current: list[Atom] = []
    for atom in atoms:
        if not atom.splits or atom.unresolved:
            if atom.text or atom.quoted or current:
                current.append(atom)
            continue
        for found in _FIELDS.finditer(atom.text):
            if not found[0].isspace():
                exact = (atom.start + found.start(), atom.start + found.end())
                start, end = exact if atom.stands else (atom.start, atom.end)
                current.append(atom._replace(text=found[0], start=start, end=end))
            elif current:
                groups.append(current)
                current = []
    return [*groups, current] if current else groups


def script_of(fields: Sequence[Field], outer: Script) -> Script:
    """The text of some words, with blanks between, as a script of its own."""
    text: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    defaulted: list[tuple[int, int, str]] = []
    for field in fields:
        for atom in field.atoms:
            text.append(atom.text)
            if atom.defaulted:
                defaulted.append((len(starts), len(starts) + len(atom.text), atom.defaulted))
            if atom.stands:
                starts += outer.starts[atom.start : atom.end]
                ends += outer.ends[atom.start : atom.end]
            else:
                start, end = outer.span(atom.start, atom.end)
                starts += [start] * len(atom.text)
                ends += [end] * len(atom.text)
        if field is not fields[-1]:
            text.append(" ")
            starts.append(ends[-1] if ends else 0)
            ends.append(ends[-1] if ends else 0)
    return Script("".join(text), starts, ends, tuple(defaulted))
