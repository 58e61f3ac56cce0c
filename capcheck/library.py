"""The files of one run below one root: each is read once, never from outside."""

from __future__ import annotations

from pathlib import Path

from capcheck import files
from capcheck.formats import Document
from capcheck.problems import Problem
from capcheck.source import LIMITS, Documents, read_documents, read_file
from capcheck.source import Problem as SourceProblem
from capcheck.values import Place

# What is only wrong if the document is a deployment's: other tools read other files their way.
OURS_ONLY = frozenset({"spec/duplicate-key", "spec/template"})


class Library:
    """Documents by file, with the text and the problems of each."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.texts: dict[str, str] = {}
        self._documents: dict[str, tuple[Document, ...]] = {}
        self._problems: dict[str, tuple[Problem, ...]] = {}

    def name(self, path: Path) -> str:
        """A path as reports carry it."""
        return files.shown(path, self.root)

    def load(self, path: Path) -> tuple[Document, ...]:
        """The documents of a file, read at the first call."""
        name = self.name(path)
        if name not in self._documents:
            self._keep(name, read_file(path, name))
        return self._documents[name]

    def keep(self, name: str, content: str | bytes) -> tuple[Document, ...]:
        """The documents of what stands in no file."""
        self._keep(name, _read_content(content, name))
        return self._documents[name]

    def _keep(self, name: str, read: Documents) -> None:
        self.texts[name] = read.text
        self._problems[name] = tuple(Problem(*one) for one in read.problems)
        self._documents[name] = tuple(
            Document(name, number, root, read.text) for number, root in enumerate(read.roots)
        )

    def documents(self, name: str) -> tuple[Document, ...]:
        """The documents of a file that was read."""
        return self._documents.get(name, ())

    def everything(self) -> tuple[Document, ...]:
        """All documents so far, file by file."""
        return tuple(one for documents in self._documents.values() for one in documents)

    def problems(self, name: str) -> tuple[Problem, ...]:
        """What is wrong with a file's text."""
        return self._problems.get(name, ())

    def forgive(self, name: str) -> None:
        """Forget what is only wrong in a deployment: nobody reads this file as one."""
        if self._documents.get(name):
            kept = [one for one in self._problems[name] if one.rule not in OURS_ONLY]
            self._problems[name] = tuple(kept)

    def drop(self, name: str) -> tuple[Problem, ...]:
        """Forget, and give, everything that is wrong with a file."""
        return self._problems.pop(name, ())

    def all_problems(self) -> list[Problem]:
        """What is wrong with all files, file by file."""
        return [one for problems in self._problems.values() for one in problems]


def _read_content(content: str | bytes, name: str) -> Documents:
    """As `read_file`, for what was piped in."""
    if isinstance(content, str):
        return read_documents(content, name)
    from capcheck.decoding import Undecodable, decode

    if len(content) > LIMITS.bytes:
        message = f"the input has more than {LIMITS.bytes:,} bytes and is not read"
        return Documents((), (SourceProblem("spec/too-large", message, Place(name)),))
    try:
        return read_documents(decode(content), name)
    except Undecodable as wrong:
        place = Place(name, wrong.line, wrong.column, wrong.line, wrong.column)
        problem = SourceProblem(wrong.rule, wrong.message, place, wrong.help)
        return Documents((), (problem,))
