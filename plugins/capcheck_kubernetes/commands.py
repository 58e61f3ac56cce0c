"""What a container runs: its command and args, or the script that they start."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from capcheck import Place
from capcheck.embedded import Command, Word, kubernetes_replacements, list_word
from capcheck.launch import Started, command_of
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, Scalar
from capcheck.unrendered import marked, script_commands
from capcheck_kubernetes.config_maps import mounted_file
from capcheck_kubernetes.environment import Environment
from capcheck_kubernetes.nodes import child, items, scalar
from capcheck_kubernetes.surroundings import Surroundings
from capcheck_kubernetes.workloads import Workload

SHELLS = frozenset({"sh", "bash", "dash", "ash", "zsh", "ksh"})
BEFORE_A_SHELL = frozenset({"env", "tini", "dumb-init", "exec", "nohup", "--", "-g", "-s"})
_SCRIPT_OPTION = re.compile(r"-[a-zA-Z]*c[a-zA-Z]*")
_VALUE_OPTION = re.compile(r"[-+][a-zA-Z]*[oO]|--rcfile|--init-file")


class Container(NamedTuple):
    """A container with the pod it is in."""

    node: MappingNode
    pod: MappingNode
    workload: Workload
    environment: Environment


def _base(text: str) -> str:
    return text.rpartition("/")[2]


def image_word(container: Node, source: str) -> Word | None:
    """The image as a word; templates in it are unresolved."""
    image = scalar(child(container, "image"))
    return None if image is None or not image.text else marked(list_word(image, source, {}))


def _script_at(words: Sequence[Word]) -> tuple[int, bool] | None:
    """The index of a shell's script, and whether it is the script itself or a file's path."""
    at = 0
    while at < len(words) and _base(words[at].text) in BEFORE_A_SHELL:
        at += 1
    if at == len(words):
        return None
    if _base(words[at].text) not in SHELLS:
        return at, False
    at += 1
    while at < len(words) and words[at].text[:1] in ("-", "+"):
        text = words[at].text
        if _SCRIPT_OPTION.fullmatch(text):
            return (at + 1, True) if at + 1 < len(words) else None
        at += 2 if _VALUE_OPTION.fullmatch(text) else 1
    return (at, False) if at < len(words) else None


def commands(
    container: Container, around: Surroundings, *parts: str
) -> tuple[tuple[Command, ...], bool]:
    """The commands that `parts` (command, args) of a container run; True: those of a script."""
    texts = container.environment.texts
    written = [one for part in parts for one in map(scalar, items(child(container.node, part)))]
    scalars = [one for one in written if one is not None]
    source = around.desk.document.text
    words = [marked(list_word(one, source, texts)) for one in scalars]
    found = _script_at(words)
    if found is not None and found[1]:
        script = scalars[found[0]]
        before = kubernetes_replacements(script.text, texts)
        return script_commands(script, source, texts, before), True
    if found is not None:
        inside = _script_file(container, around, words[found[0] :])
        if inside:
            return inside, True
    return ((command_of(words, words[0].place),) if words else ()), False


def _script_file(
    container: Container, around: Surroundings, words: Sequence[Word]
) -> tuple[Command, ...]:
    """The commands of a script that a ConfigMap of the run holds."""
    path = words[0].text
    if not path.startswith("/") or words[0].unresolved:
        return ()
    found = mounted_file(path, container.node, container.pod, container.workload, around)
    if found is None:
        return ()
    variables: dict[str, str | None] = dict(container.environment.texts)
    for number, word in enumerate(words):
        variables[str(number)] = None if word.unresolved else word.text
    return script_commands(found.content, found.document.text, variables)


def word_problems(container: Node) -> Iterator[tuple[str, str, Place]]:
    """Items of command and args that are no strings: Kubernetes refuses the whole manifest."""
    for part in ("command", "args"):
        for item in items(child(container, part)):
            if isinstance(item, Scalar):
                if item.type in ("text", "null"):
                    continue
                kind = f"the {item.type} {item.text}"
            else:
                kind = "a mapping" if isinstance(item, MappingNode) else "a list"
            yield "spec/schema", f"{part} takes strings, not {kind}: quote it", item.place


class Run(NamedTuple):
    """The server that a container starts, and all commands on the way there."""

    started: Started
    commands: tuple[Command, ...]


def run(container: Container, around: Surroundings) -> Run | None:
    """The known server that a container starts; None when it starts something else."""
    image = image_word(container.node, around.desk.document.text)
    if items(child(container.node, "command")):
        found, _ = commands(container, around, "command", "args")
        started = around.desk.started(found, image)
    else:
        found, is_script = commands(container, around, "args")
        started = None if is_script else around.desk.started(found, image, whole=False)
        # Images without an entry point run their arguments as the command.
        started = started or around.desk.started(found, image)
    return Run(started, found) if started is not None else None
