"""Template expressions that nobody has rendered: what they stand for is not known."""

from __future__ import annotations

import re
from collections.abc import Mapping as Variables
from collections.abc import Sequence as Several
from typing import Final

from capcheck.source import Mapping, Node, Scalar
from capcheck.words import Command, Replacement, Word

_MARKUP = re.compile(r"\{\{.*?\}\}|\{%.*?%\}", re.DOTALL)
_VARIABLE = re.compile(r"(?<!\$)\$(?:\{[^{}\n]*\}|[A-Za-z_]\w*)")
_NAME = re.compile(r"[A-Za-z_]\w*(?:\[[@*]\])?")
_STAND_IN: Final = "capcheck_template_"


def expressions_in(text: str) -> tuple[str, ...]:
    """`{{ … }}`, `{% … %}`, `${…}` and `$NAME` in a text that no shell reads."""
    if "{" not in text and "$" not in text:
        return ()
    found = (*_MARKUP.findall(text), *_VARIABLE.findall(_MARKUP.sub("", text)))
    return tuple(dict.fromkeys(found))


def unrendered_in(node: Node) -> tuple[str, ...]:
    """The expressions in a value or anywhere below it; an application's own tag is one, too."""
    tag = (node.tag,) if node.tag else ()
    if isinstance(node, Scalar):
        return (*tag, *expressions_in(node.text))
    children = (
        tuple(child for _, child in node.entries) if isinstance(node, Mapping) else node.items
    )
    return (*tag, *dict.fromkeys(one for child in children for one in unrendered_in(child)))


def unresolved_why(names: Several[str]) -> str:
    """Why a value with variables or expressions in it is not known."""
    if any(name in ("'", '"') for name in names):
        return "a quote is never closed"
    shown = ", ".join(
        f"${{{name}}}" if _NAME.fullmatch(name) else " ".join(name.split()) for name in names
    )
    return f"{shown} {'is' if len(names) == 1 else 'are'} not resolved"


def marked(word: Word) -> Word:
    """The word of a list, with its template expressions as unresolved."""
    lost = expressions_in(word.text)
    if not lost:
        return word
    return word._replace(unresolved=tuple(dict.fromkeys((*word.unresolved, *lost))))


def script_commands(
    scalar: Scalar,
    source_text: str,
    variables: Variables[str, str | None],
    replacements: Several[Replacement] = (),
) -> tuple[Command, ...]:
    """As `shell_words`, for a script that may hold `{{ … }}`: each stands for one variable."""
    from capcheck.embedded import shell_words

    templates = {
        f"{_STAND_IN}{number}": found for number, found in enumerate(_MARKUP.finditer(scalar.text))
    }
    if not templates:
        return shell_words(scalar, source_text, variables, replacements)
    spans = [one.span() for one in templates.values()]
    merged = [Replacement(*one.span(), f"${{{name}}}") for name, one in templates.items()]
    merged += [
        one
        for one in replacements
        if not any(start < one.end and one.start < end for start, end in spans)
    ]
    commands = shell_words(scalar, source_text, variables, sorted(merged))
    texts = {name: one[0] for name, one in templates.items()}
    return tuple(_restored(command, texts) for command in commands)


def _restored(command: Command, texts: Variables[str, str]) -> Command:
    return command._replace(
        words=tuple(_restored_word(word, texts) for word in command.words),
        environment=tuple(
            (name, _restored_word(word, texts)) for name, word in command.environment
        ),
    )


def _restored_word(word: Word, texts: Variables[str, str]) -> Word:
    """The word with its expressions in place of the variables that stood for them."""
    if _STAND_IN not in word.text:
        return word
    lost = [texts.get(name, name) for name in word.unresolved]
    text = word.text
    for name, expression in texts.items():
        if f"${{{name}}}" in text:
            text = text.replace(f"${{{name}}}", expression)
            lost.append(expression)
    return word._replace(text=text, unresolved=tuple(dict.fromkeys(lost)))
