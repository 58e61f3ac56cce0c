"""The commands of a shell script, in order, with what is known of their arguments.

Nothing is run. Assignments are followed where they surely happen: one inside an `if`, a loop, a
`case` or a function is known up to the end of that branch and not known after it; one behind `||`,
or behind `&&` and a test, is not known at all, one behind `&&` and any other command is. Commands
are listed wherever they stand, those of branches as `conditional`. `sh -c '…'` and `eval` are read
in their place. Not followed: `source`, `set`, `shift`, globs, braces, functions' arguments.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Final, NamedTuple

from capcheck.shell_blocks import Blocks
from capcheck.shell_lexer import Lexer
from capcheck.shell_syntax import Part, RawWord
from capcheck.shell_values import Atom, Field, Variables, script_of, word_of
from capcheck.values import Place
from capcheck.words import Command, Script, Word

_LONGEST: Final = 200_000  # characters of a script, and what is read of it in nested shells
_DEEPEST: Final = 4  # sh -c inside sh -c
_MOST_EXPORTS: Final = 500
_MOST_PIECES: Final = 1000  # of a variable's value, and items of an array; more are not known

_ASSIGNMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?)=")
_ELEMENT = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)\[[^\]]*\]\+?=")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_SHELLS: Final = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
_TESTS: Final = frozenset({"[", "[[", "test", "grep", "command", "which", "type", "hash"})
_DECLARE: Final = frozenset({"export", "declare", "typeset", "local", "readonly"})


class _Assignment(NamedTuple):
    name: str
    append: bool
    value: RawWord


def commands_of(
    script: Script, place: Callable[[int, int], Place], variables: Mapping[str, str | None]
) -> tuple[Command, ...]:
    """The commands of a script; `place` maps offsets that the script's spans count in."""
    if len(script.text) > _LONGEST:
        return ()
    shell = _Shell(script, place, Variables(variables))
    shell.read()
    return tuple(shell.found)


class _Shell:
    """One shell, or one that another starts."""

    def __init__(
        self, script: Script, place: Callable[[int, int], Place], variables: Variables
    ) -> None:
        self.found: list[Command] = []
        self._script = script
        self._place = place
        self._variables = variables
        self._in_environment = set(variables.values)
        self._exported: dict[str, Word] = {}
        self._environment: tuple[tuple[str, Word], ...] = ()
        self._depth = 0
        self._left = _LONGEST
        self._conditional = False
        self._blocks = Blocks(self._finish, self._forget)

    def read(self) -> None:
        """Reads the whole script."""
        pending: list[RawWord] = []
        for token in Lexer(self._script.text).tokens():
            if isinstance(token, RawWord):
                if not self._blocks.takes(token, first=not pending):
                    pending.append(token)
            elif not _inside_test(pending):
                self._blocks.operator(token.text, pending)
                pending = []
        self._finish(pending)

    def _finish(self, pending: Sequence[RawWord]) -> None:
        """The end of a command: its assignments, or itself."""
        self._read_command(pending)
        for name in self._variables.assigned:  # ${NAME:=value} in its words
            self._assign(name, self._variables.values[name])
        self._variables.assigned.clear()

    def _read_command(self, pending: Sequence[RawWord]) -> None:
        assignments: list[_Assignment] = []
        for word in pending:
            assignment = _assignment(word)
            if assignment is None:
                break
            assignments.append(assignment)
        rest = pending[len(assignments) :]
        if not rest:
            for assignment in assignments:
                self._assign_from(assignment)
            return
        head = rest[0].bare
        if head in _TESTS:
            self._blocks.tested()
        element = _ELEMENT.match(head)
        if element is not None:
            self._assign(element[1], None)  # an item of an array
        elif head in _DECLARE:
            self._declare(head, rest[1:])
        elif head in ("unset", "read"):
            for word in rest[1:]:
                self._assign(word.bare, None)
                self._forget(word.bare)
        else:
            self._command(rest[1:] if head == "exec" else rest, assignments)

    def _command(self, raw: Sequence[RawWord], assignments: Sequence[_Assignment]) -> None:
        fields = [
            field
            for word in raw
            for field in self._variables.fields(word, self._script, self._place)
        ]
        if not fields:
            return
        prefix = {one.name: self._value(one)[1] for one in assignments}
        if self._nested(fields, prefix):
            return
        start, end = raw[0].start, raw[-1].end
        environment = self._environment
        if prefix:
            environment = tuple({**self._exported, **prefix}.items())
        self.found.append(
            Command(
                tuple(field.word for field in fields),
                self._place(*self._script.span(start, end)),
                environment,
                self._conditional or self._blocks.conditional,
            )
        )

    def _nested(self, fields: Sequence[Field], prefix: Mapping[str, Word]) -> bool:
        """Reads the script of `sh -c '…'` or `eval …` in the place of the command."""
        head = fields[0].word.text.rpartition("/")[2]
        inside: Sequence[Field] = ()
        if head == "eval":
            inside = fields[1:]
        elif head in _SHELLS:
            inside = fields[_after_c(fields) :][:1]
        script = script_of(inside, self._script)
        self._left -= len(script.text)
        if (
            not script.text.strip()
            or not all(field.atoms for field in inside)
            or all(atom.unresolved for field in inside for atom in field.atoms if atom.text)
            or self._depth >= _DEEPEST
            or self._left < 0
        ):
            return False
        variables = self._variables
        if head != "eval":
            variables = variables.exported(self._in_environment)
            for name, word in prefix.items():
                variables.values[name] = _known(word)
        shell = _Shell(script, self._place, variables)
        shell._exported = {**self._exported, **prefix}
        shell._environment = tuple(shell._exported.items())
        shell._depth, shell._left = self._depth + 1, self._left
        shell._conditional = self._conditional or self._blocks.conditional
        shell.read()
        self._left = shell._left
        self.found += shell.found
        return True

    def _declare(self, head: str, rest: Sequence[RawWord]) -> None:
        exports = head == "export"
        for word in rest:
            if word.bare.startswith("-"):
                exports = exports or "x" in word.bare
                continue
            assignment = _assignment(word)
            name = assignment.name if assignment else word.bare
            if not _NAME.fullmatch(name):
                continue
            if exports:
                self._in_environment.add(name)
            if assignment is not None:
                self._assign_from(assignment)
            elif exports and name in self._variables.values:
                self._export(name, self._variables.values[name], self._place_of(word))

    def _place_of(self, word: RawWord) -> Place:
        return self._place(*self._script.span(word.start, word.end))

    def _value(self, assignment: _Assignment) -> tuple[tuple[Atom, ...], Word]:
        """The atoms that are assigned, and the word that they make."""
        name = assignment.name
        atoms = self._variables.expand(assignment.value.parts)
        if assignment.append:
            before = self._variables.values.get(name)
            atoms = [*(_unknown(name) if before is None else before), *atoms]
        value = tuple(atom._replace(splits=False) for atom in atoms)
        return value, word_of(value, self._place_of(assignment.value))

    def _assign_from(self, assignment: _Assignment) -> None:
        name, append, value = assignment
        if value.items is None:
            atoms, word = self._value(assignment)
            self._assign(name, atoms)
            self._export(name, self._variables.values[name], word.place)
            return
        items = [
            field.word
            for item in value.items
            for field in self._variables.fields(item, self._script, self._place)
        ]
        known = self._variables.arrays
        before = known.get(name) if name in self._variables.values else ()
        self._assign(name, None)
        if not self._doubtful and (before is not None or not append):
            joined = (*(before or ()), *items) if append else tuple(items)
            known[name] = joined if len(joined) <= _MOST_PIECES else None

    @property
    def _doubtful(self) -> bool:
        """Whether it is not known if what stands here happens, or how often."""
        return self._blocks.unsure or self._blocks.repeated

    def _export(self, name: str, atoms: tuple[Atom, ...] | None, place: Place) -> None:
        """Notes what the script puts into the environment of the commands that follow."""
        room = name in self._exported or len(self._exported) < _MOST_EXPORTS
        if name in self._in_environment and room:
            self._exported[name] = word_of(_unknown(name) if atoms is None else atoms, place)
            self._environment = tuple(self._exported.items())

    def _assign(self, name: str, atoms: tuple[Atom, ...] | None) -> None:
        """Sets a variable, to nothing known where that is doubtful."""
        self._blocks.assigned(name)
        known = not self._doubtful and atoms is not None and len(atoms) <= _MOST_PIECES
        self._variables.values[name] = atoms if known else None
        self._variables.arrays[name] = None

    def _forget(self, name: str) -> None:
        self._variables.values[name] = None
        self._variables.arrays[name] = None
        if name in self._exported:
            self._export(name, None, self._exported[name].place)


def _unknown(name: str) -> tuple[Atom, ...]:
    return (Atom(f"${name}", 0, 0, quoted=False, unresolved=name),)


def _inside_test(pending: Sequence[RawWord]) -> bool:
    """Whether a [[ is still open: && and < in it are no operators."""
    if not pending or pending[0].bare != "[[":
        return False
    return pending[-1].bare != "]]"


def _known(word: Word) -> tuple[Atom, ...] | None:
    return None if word.unresolved else (Atom(word.text, 0, 0, quoted=False),)


def _after_c(fields: Sequence[Field]) -> int:
    """The index of the script after -c, -lc or the like; the number of words if there is none."""
    for index, field in enumerate(fields[1:], 1):
        text = field.word.text
        if re.fullmatch(r"-[a-zA-Z]*c[a-zA-Z]*", text):
            return index + 1
        if not text.startswith(("-", "+")) and fields[index - 1].word.text not in ("-o", "-O"):
            break
    return len(fields)


def _assignment(word: RawWord) -> _Assignment | None:
    """NAME=value, NAME+=value or NAME=(…) as an assignment."""
    first = word.parts[0] if word.parts else None
    if first is None or first.kind != "text" or first.quoted:
        return None
    found = _ASSIGNMENT.match(first.text)
    if found is None:
        return None
    start = first.start + found.end()
    rest = Part("text", first.text[found.end() :], start, first.end, quoted=False)
    parts = (*((rest,) if rest.text else ()), *word.parts[1:])
    value = RawWord(parts, start if parts else word.start, word.end, word.items)
    return _Assignment(found[1], found[2] == "+", value)
