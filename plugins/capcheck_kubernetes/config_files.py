"""An engine's own configuration file that a ConfigMap of the run holds."""

from __future__ import annotations

from capcheck import ARGS, Desk, Document, Draft, Format, Value
from capcheck.deployment import merge, overruled, through
from capcheck.embedded import yaml_inside
from capcheck.launch import OPEN_ARGS
from capcheck.source import Node, Scalar
from capcheck_kubernetes.commands import Container
from capcheck_kubernetes.config_maps import Mounted, mounted_file
from capcheck_kubernetes.surroundings import Surroundings

ANY_ENGINES_OPTION = "config"


def joined(draft: Draft, container: Container, engine: str, around: Surroundings) -> Draft:
    """The draft over the file that its options name; the engine tells which of them wins.

    Where the file cannot be had, options that are not on the command line are not known.
    """
    reader = around.desk.config_format(engine)
    options = reader.config_options if reader is not None else (ANY_ENGINES_OPTION,)
    for option in options:
        value = draft.fields.get((*ARGS, option))
        if value is not None:
            lower = _configuration(value, container, reader, around)
            if lower is None:
                return _open(draft, value)
            lower = through(lower, value.place)
            draft = merge(lower, draft)
            if reader is not None and reader.overrules:
                draft = overruled(draft, lower)
    return draft


def _open(draft: Draft, value: Value[Node]) -> Draft:
    why = value.origin.why or f"{value.origin.word} names a file that is not read"
    lost: Value[Node] = Value((), value.origin._replace(why=why))
    return draft._replace(fields={OPEN_ARGS: lost, **draft.fields})


def _configuration(
    value: Value[Node], container: Container, reader: Format | None, around: Surroundings
) -> Draft | None:
    """The engine's options in the file, with problems of its text."""
    node = value.either(None)
    if reader is None or not isinstance(node, Scalar):
        return None
    held = mounted_file(node.text, container.node, container.pod, container.workload, around)
    return None if held is None else _read(held, reader, around.desk)


def _read(held: Mounted, reader: Format, desk: Desk) -> Draft | None:
    documents = yaml_inside(held.content, held.document.text, held.key)
    if len(documents.roots) != 1:
        return None
    document = Document(held.document.file, 0, documents.roots[0], held.document.text)
    drafts = list(reader.read(desk._replace(document=document, documents=(document,))))
    if len(drafts) != 1:
        return None
    fields = {path: one for path, one in drafts[0].fields.items() if path[:2] == ARGS}
    problems = tuple((one.rule, one.message, one.place) for one in documents.problems)
    return drafts[0]._replace(fields=fields, places={}, problems=(*drafts[0].problems, *problems))
