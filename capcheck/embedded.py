"""Command lines, scripts, YAML and JSON inside strings of a file, with their places in the file.

    places = offset_places(scalar, text)                   # places(3, 7) -> Place
    for command in shell_words(scalar, text, {"MODEL": "org/model", "TOKEN": None}): …
    word = list_word(item, text, {"MODEL": "org/model"})   # one item of Kubernetes args
    documents = yaml_inside(scalar, text, "engine.yaml")   # a ConfigMap's key

A variable that maps to None is set, to something the files do not say; one that is absent is set
by nobody. Both are unresolved, but only `${ABSENT:-default}` is its default (`Word.defaulted`).
Nothing is run, and none of this raises on any text.
"""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Mapping as Variables
from collections.abc import Sequence as Several
from typing import Final

from capcheck.scalar_places import offset_places
from capcheck.source import (
    Documents,
    Node,
    Scalar,
    Sequence,
    read_documents,
)
from capcheck.values import Place
from capcheck.words import Command, Replacement, Word

__all__ = [
    "Command",
    "Replacement",
    "Word",
    "kubernetes_replacements",
    "kubernetes_variables",
    "list_word",
    "offset_places",
    "shell_words",
    "whole_text",
    "yaml_inside",
]

_LONGEST: Final = 1_000_000  # characters that variables may expand to


def whole_text(text: str, file: str) -> Scalar:
    """A whole file, such as a script, as one scalar; `source_text` is then its `text`."""
    from capcheck.lines import line_starts, position

    line, column = position(line_starts(text), len(text))
    return Scalar(text, "text", "plain", Place(file, 1, 1, line, column))


def shell_words(
    scalar: Scalar,
    source_text: str,
    variables: Variables[str, str | None],
    replacements: Several[Replacement] = (),
) -> tuple[Command, ...]:
    """The commands of a `sh -c` string or a script, in order; what is followed: `capcheck.shell`.

    `variables` is the environment that the shell starts with. `replacements` are what something
    else put into the text before (`kubernetes_replacements`). Scripts of more than 200,000
    characters are not read.
    """
    from capcheck.shell import commands_of
    from capcheck.words import Script

    script = Script.of(scalar.text, replacements)
    return commands_of(script, offset_places(scalar, source_text), variables)


def _kubernetes(
    text: str, variables: Variables[str, str | None]
) -> tuple[tuple[Replacement, ...], tuple[str, ...]]:
    """What Kubernetes replaces, and the variables that it or we cannot resolve."""
    replacements: list[Replacement] = []
    unresolved: dict[str, None] = {}
    left = _LONGEST
    at = text.find("$")
    while 0 <= at < len(text) - 1:
        after = at + 1
        if text[at + 1] == "$":
            after = at + 2
            replacements.append(Replacement(at, after, "$"))
        elif text[at + 1] == "(":
            closed = text.find(")", at)
            if closed < 0:
                break
            after = closed + 1
            name = text[at + 2 : closed]
            value = variables.get(name)
            left -= len(value or "")
            if value is None or left < 0:
                unresolved[name] = None
            else:
                replacements.append(Replacement(at, after, value))
        at = text.find("$", after)
    return tuple(replacements), tuple(unresolved)


def kubernetes_replacements(
    text: str, variables: Variables[str, str | None]
) -> tuple[Replacement, ...]:
    """What Kubernetes puts into `text` of a command, args or env: $(VAR), and $ for $$."""
    return _kubernetes(text, variables)[0]


def kubernetes_variables(
    text: str, variables: Variables[str, str | None]
) -> tuple[str, tuple[str, ...]]:
    """`text` as a container receives it, and the names in it that are not resolved.

    `$(VAR)` becomes its value, `$$` becomes `$`, so that `$$(VAR)` is the text `$(VAR)`. A name
    that is unknown or not set stays `$(NAME)`.
    """
    from capcheck.words import Script

    replacements, unresolved = _kubernetes(text, variables)
    return Script.of(text, replacements).text, unresolved


def list_word(scalar: Scalar, source_text: str, variables: Variables[str, str | None]) -> Word:
    """One item of a Kubernetes `command` or `args` list: variables expanded, never split."""
    text, unresolved = kubernetes_variables(scalar.text, variables)
    place = offset_places(scalar, source_text)(0, len(scalar.text))
    return Word(text, place, unresolved, quoted=True, verbatim=text == scalar.text)


def yaml_inside(scalar: Scalar, source_text: str, file: str) -> Documents:
    """The YAML or JSON in a string, with places and problems in the file that holds the string.

    `file` is the name the text goes by, as the key of a ConfigMap; `.json` makes it JSON. The path
    of a place is the scalar's path and then that inside the text. `Documents.text` is the inner
    text.
    """
    from capcheck.lines import line_starts

    inner = read_documents(scalar.text, file)
    outer_place = offset_places(scalar, source_text)
    skipped = len(scalar.text) - len(inner.text)  # a byte order mark
    starts = line_starts(inner.text)

    def outer(place: Place) -> Place:
        start = starts[place.line - 1] + place.column - 1 + skipped
        end = starts[place.end_line - 1] + place.end_column - 1 + skipped
        return outer_place(start, end)._replace(path=(*scalar.place.path, *place.path))

    moved: dict[int, Node] = {}
    roots = tuple(_moved(root, outer, moved) for root in inner.roots)
    problems = tuple(problem._replace(place=outer(problem.place)) for problem in inner.problems)
    return Documents(roots, problems, inner.text)


def _moved(node: Node, outer: Callable[[Place], Place], done: dict[int, Node]) -> Node:
    """The node and all in it at other places; what aliases share stays shared."""
    known = done.get(id(node))
    if known is not None:
        return known
    place = outer(node.place)
    made: Node
    if isinstance(node, Scalar):
        made = node._replace(place=place)
    elif isinstance(node, Sequence):
        items = tuple(_moved(item, outer, done) for item in node.items)
        made = node._replace(items=items, place=place)
    else:
        entries = tuple(
            (key._replace(place=outer(key.place)), _moved(child, outer, done))
            for key, child in node.entries
        )
        made = node._replace(entries=entries, place=place)
    done[id(node)] = made
    return made
