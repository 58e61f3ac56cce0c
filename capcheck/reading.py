"""What the YAML and the JSON reader share: spans, problems, and giving a document up."""

from __future__ import annotations

from typing import NamedTuple

from capcheck.source import Problem


class Span(NamedTuple):
    """Where something stands: 1-based, end exclusive."""

    line: int
    column: int
    end_line: int
    end_column: int


class Abandoned(Exception):
    """The document cannot be given; `whole` when the rest of the file is not read either."""

    def __init__(self, problem: Problem, *, whole: bool = False) -> None:
        super().__init__(problem.message)
        self.problem = problem
        self.whole = whole


class ProblemList:
    """The problems of a file, up to a number."""

    def __init__(self, limit: int) -> None:
        self.found: list[Problem] = []
        self._limit = limit

    def add(self, problem: Problem) -> None:
        """Raises Abandoned for the whole file when there are too many."""
        if len(self.found) >= self._limit:
            message = f"more than {self._limit} problems: the rest of the file is not read"
            raise Abandoned(problem._replace(message=message, help=""), whole=True)
        self.found.append(problem)


def point(line: int, column: int, char: str) -> Span:
    """The span of one character, empty at the end of a line or of the text."""
    return Span(line, column, line, column + (char not in ("", "\n", "\r")))


def shortened(text: str, most: int = 40) -> str:
    """A name from the file as a message shows it."""
    return text if len(text) <= most else text[:most] + "…"
