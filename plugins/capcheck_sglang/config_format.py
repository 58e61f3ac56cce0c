"""SGLang's own configuration file: the YAML that `--config` takes."""

from __future__ import annotations

from collections.abc import Iterable
from fnmatch import fnmatchcase
from pathlib import PurePosixPath

from capcheck import ARGS, Desk, Document, Draft, Format, Place, Value, derived, flatten, places_of
from capcheck.deployment import FieldPath
from capcheck.launch import argument_path, node_of
from capcheck.source import Mapping, Node
from capcheck.unrendered import unrendered_in, unresolved_why
from capcheck_sglang.launching import TELLING
from capcheck_sglang.table import TABLE

FILE_NAMES = "sglang*.y*ml"
OTHERS_KEYS = frozenset({"apiVersion", "kind", "services"})  # manifests, compose files
KNOWN_FOR_EACH_FOREIGN = 2

Problem = tuple[str, str, Place]


def _is_configuration(root: Mapping, file: str) -> bool:
    """Whether the keys are mostly SGLang's options; misspelt ones are nobody else's."""
    known: set[str] = set()
    foreign = 0
    for key, value in root.entries:
        if key.text in OTHERS_KEYS:
            return False
        standing = TABLE.resolve(key.text.replace("-", "_"), None, prefixes=False)
        if standing.option is not None:
            known.add(standing.option.name)
        elif not standing.candidates:
            foreign += 1
            if isinstance(value, Mapping):
                return False
    if fnmatchcase(PurePosixPath(file).name.casefold(), FILE_NAMES):
        return len(known) > 0 and len(known) >= foreign
    telling = len(known & TELLING) > 1
    return telling and len(known) >= KNOWN_FOR_EACH_FOREIGN * foreign


class SGLangConfig(Format):
    """A flat map of SGLang's options. It names no release."""

    name = "sglang-config"
    title = "SGLang's own configuration file (--config)"
    engine_config = "sglang"
    config_options = ("config",)

    def claims(self, document: Document) -> bool:
        """Whether the keys are SGLang's options."""
        root = document.root
        return isinstance(root, Mapping) and _is_configuration(root, document.file)

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The options as written; a document that is no mapping holds none."""
        document = desk.document
        root = document.root
        if not isinstance(root, Mapping):
            return ()
        fields, problems = _fields(root)
        place = root.entries[0][0].place if root.entries else root.place
        engine = derived(node_of("sglang", place), place, "the file holds SGLang's options")
        return (
            Draft(
                name=PurePosixPath(document.file).stem,
                format=self.name,
                place=place,
                fields={("engine", "name"): engine, **fields},
                places=_places(root, place),
                problems=tuple(problems),
            ),
        )


def _fields(root: Mapping) -> tuple[dict[FieldPath, Value[Node]], list[Problem]]:
    """Each option below engine.args: maps by their leaves, lists as a whole."""
    fields: dict[FieldPath, Value[Node]] = {}
    spellings: dict[str, str] = {}
    problems: list[Problem] = []
    for key, node in root.entries:
        first = spellings.setdefault(key.text.replace("-", "_"), key.text)
        if first != key.text:
            message = f"{first} and {key.text} are one option"
            problems.append(("spec/conflict", message, key.place))
        for path, value in flatten(node, argument_path(key.text), word=key.text).items():
            lost = unrendered_in(value.options[0])
            why = unresolved_why(lost) if lost else ""
            fields[path] = Value((), value.origin._replace(why=why)) if lost else value
    return fields, problems


def _places(root: Mapping, place: Place) -> dict[FieldPath, Place]:
    """Where each key stands; what is missing would be written at the top."""
    places: dict[FieldPath, Place] = {(): place, ARGS: place}
    for key, node in root.entries:
        path = argument_path(key.text)
        places[path] = key.place
        places.update({(*path, *inner): at for inner, at in places_of(node).items() if inner})
    return places
