"""The files of one run below one root: each is read once, never from outside."""

from __future__ import annotations

from pathlib import Path

from capcheck import files
from capcheck.formats import Document
from capcheck.problems import Problem
from capcheck.source import Documents, read_documents, read_file

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

    def keep(self, name: str, text: str) -> tuple[Document, ...]:
        """The documents of a text that stands in no file."""
        self._keep(name, read_documents(text, name))
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

    def all_problems(self) -> list[Problem]:
        """What is wrong with all files, file by file."""
        return [one for problems in self._problems.values() for one in problems]
