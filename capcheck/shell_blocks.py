"""Where in a script's ifs, loops, cases and functions a command stands, and what that means.

Assignments inside a branch are known up to its end and not known after it; see `capcheck.shell`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, Literal, NamedTuple

from capcheck.shell_syntax import RawWord

_Scope = Literal["if", "loop", "case", "function", "subshell", "group"]
_OPENERS: Final[dict[str, _Scope]] = {
    "if": "if",
    "while": "loop",
    "until": "loop",
    "for": "loop",
    "select": "loop",
    "case": "case",
    "{": "group",
}
_CLOSERS: Final[dict[str, tuple[_Scope, ...]]] = {
    "fi": ("if",),
    "done": ("loop",),
    "esac": ("case",),
    "}": ("group", "function"),
}
_SKIPPED: Final = frozenset({"then", "do", "time"})
_ALWAYS_RUN: Final = ("group", "subshell")

# What the next words are, where they are no command.
_Mode = Literal["command", "for name", "for words", "case word", "pattern", "function name"]


class _Open(NamedTuple):
    scope: _Scope
    unsure: bool  # whether it runs at all was in doubt where it began
    assigned: set[str]


class Blocks:
    """Takes the keywords and operators of a script in their order.

    `finish` is called with the words of each command when it ends, `forget` with each variable
    whose value is not known from there on.
    """

    def __init__(
        self, finish: Callable[[Sequence[RawWord]], None], forget: Callable[[str], None]
    ) -> None:
        self._finish = finish
        self._forget = forget
        self._open: list[_Open] = []
        self._mode: _Mode = "command"
        self._tested = False
        self.unsure = False  # behind || or a test and &&

    @property
    def conditional(self) -> bool:
        """Whether a command that stands here may not run."""
        branches = any(one.scope not in _ALWAYS_RUN or one.unsure for one in self._open)
        return branches or self.unsure

    @property
    def repeated(self) -> bool:
        """Whether it may run several times."""
        return any(one.scope == "loop" for one in self._open)

    def assigned(self, name: str) -> None:
        """A variable gets a value here."""
        if self._open:
            self._open[-1].assigned.add(name)

    def tested(self) -> None:
        """The command that stands here asks something: what follows its && may not run."""
        self._tested = True

    def takes(self, word: RawWord, *, first: bool) -> bool:
        """Whether the word is the shell's own; `first` when it stands where a command may."""
        if self._mode == "command":
            return first and self._keyword(word.bare)
        if self._mode == "for name":
            if word.bare:
                self._forget(word.bare)
            self._mode = "for words"
        elif self._mode == "case word" and word.bare == "in":
            self._mode = "pattern"
        elif self._mode == "pattern" and word.bare == "esac":
            self._keyword("esac")
        elif self._mode == "function name":
            self._push("function")
            self._mode = "command"
        return True

    def _keyword(self, text: str) -> bool:
        if text in _OPENERS:
            body = text == "{" and self._open and self._open[-1].scope == "function"
            if not body:
                self._push(_OPENERS[text])
            modes: dict[str, _Mode] = {"for": "for name", "select": "for name", "case": "case word"}
            self._mode = modes.get(text, "command")
        elif text in _CLOSERS:
            self._mode = "command"
            if self._open and self._open[-1].scope in _CLOSERS[text]:
                self._pop()
        elif text in ("elif", "else"):
            self._end_branch()
        elif text == "function":
            self._mode = "function name"
        elif text == "!":
            self._tested = True
        else:
            return text in _SKIPPED
        return True

    def operator(self, text: str, words: Sequence[RawWord]) -> None:
        """An operator behind the words of a command."""
        if self._mode == "pattern":
            self._mode = "command" if text == ")" else "pattern"
        elif self._mode in ("for name", "for words"):
            self._mode = "command" if text in (";", "\n") else self._mode
        elif self._mode == "command":
            if text == "(" and len(words) == 1 and words[0].bare:
                self._push("function")  # name() { …
            else:
                self._finish(words)
                self._end_command(text)

    def _end_command(self, text: str) -> None:
        if text == "(":
            self._push("subshell")
        elif text == ")":
            if self._open and self._open[-1].scope == "subshell":
                self._pop()
        elif text in (";;", ";&", ";;&"):
            self._end_branch()
            self._mode = "pattern"
        elif text == "||":
            self.unsure = True
        elif text == "&&":
            self.unsure = self.unsure or self._tested
        elif text not in ("|", "|&"):
            self.unsure = False
        self._tested = False

    def _push(self, scope: _Scope) -> None:
        self._open.append(_Open(scope, self.unsure, set()))
        self.unsure = False

    def _pop(self) -> None:
        if self._open[-1].scope != "group" or self._open[-1].unsure:
            self._end_branch()
        closed = self._open.pop()
        self.unsure = closed.unsure
        if self._open:
            self._open[-1].assigned.update(closed.assigned)

    def _end_branch(self) -> None:
        for name in self._open[-1].assigned if self._open else ():
            self._forget(name)
