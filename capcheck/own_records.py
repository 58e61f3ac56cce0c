"""The repository's own records of models: which files are read, and how one gets a new record."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from capcheck.config import OWN_MODELS, Settings, UsageError
from capcheck.files import inside
from capcheck.shelf import CONFIGURATION, CatalogueError, Page, Shelf

KIND = "model"
_WIDTH = 98
_HEADING = "# Models of this repository, as `capcheck models add` writes them.\n"


def own_shelves(settings: Settings, root: Path) -> tuple[Shelf, ...]:
    """The files that the configuration names; for models, else the usual one if it is there."""
    named = tuple(Shelf(*one) for one in settings.shelves)
    usual = root / OWN_MODELS
    if any(one.kind == KIND for one in named) or not usual.is_file() or not inside(usual, root):
        return named
    return (*named, Shelf(KIND, usual, OWN_MODELS, CONFIGURATION))


def target_of(settings: Settings, root: Path, asked: Path | None) -> tuple[Path, bool]:
    """The file that a new record goes to, and whether checks below `root` read it."""
    named = [one[1] for one in settings.shelves if one[0] == KIND]
    read = named or [root / OWN_MODELS]
    target = asked if asked is not None else read[0]
    return target, any(target.resolve() == one.resolve() for one in read)


class Entry(NamedTuple):
    """One record of a YAML list, by its lines: the first, and the one behind the last."""

    id: object
    start: int
    end: int


def written(file: Path, record: Mapping[str, Any], *, force: bool) -> bool:
    """Put a record into a file: at its end, or over the one of its id. Whether one was replaced.

    Everything else in the file stays as it is. Raises UsageError, also for an id that is there
    when not forced.
    """
    ids = _ids(file)
    again = record["id"] in ids
    if again and not force:
        raise UsageError(f"{file}: {record['id']} is there already; --force replaces it")
    try:
        text = file.read_text(encoding="utf-8") if file.exists() else ""
        change = {".jsonl": _in_lines, ".json": _in_json}.get(file.suffix, _in_yaml)
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(change(text, record), encoding="utf-8")
    except OSError as wrong:
        raise UsageError(f"{file}: {wrong.strerror or wrong}") from wrong
    except (ValueError, CatalogueError) as wrong:
        raise UsageError(f"{file}: {wrong}") from wrong
    return again


def _ids(file: Path) -> frozenset[object]:
    if not file.exists() or not file.is_file():
        return frozenset()
    try:
        page = Page(Shelf(KIND, file, file.name, CONFIGURATION))
        return frozenset(one.record.get("id") for one in page.all())
    except CatalogueError as wrong:
        raise UsageError(str(wrong)) from wrong


def _in_lines(text: str, record: Mapping[str, Any]) -> str:
    kept = [one for one in text.splitlines() if one.strip() and _id(one) != record["id"]]
    return "\n".join([*kept, json.dumps(record, ensure_ascii=False)]) + "\n"


def _id(line: str) -> object:
    return json.loads(line).get("id")


def _in_json(text: str, record: Mapping[str, Any]) -> str:
    found = json.loads(text) if text.strip() else []
    records = found if isinstance(found, list) else [found]
    kept = [one for one in records if one.get("id") != record["id"]]
    return json.dumps([*kept, record], indent=2, ensure_ascii=False) + "\n"


def _in_yaml(text: str, record: Mapping[str, Any]) -> str:
    entries = list(_entries(text))
    new = yaml_of(record)
    lines = text.splitlines(keepends=True)
    if lines and not lines[-1].endswith("\n"):
        lines[-1] += "\n"
    for one in entries:
        if one.id == record["id"]:
            return "".join((*lines[: one.start], new, *lines[one.end :]))
    return "".join((*(lines or [_HEADING]), new))


def _entries(text: str) -> Iterable[Entry]:
    """The records of a list at the left edge. Raises ValueError for a file of another form."""
    import yaml

    documents = [one for one in yaml.compose_all(text, yaml.SafeLoader) if one is not None]
    empty = all(isinstance(one, yaml.ScalarNode) and not one.value for one in documents)
    if not documents or empty:
        return
    whole = documents[0]
    is_list = isinstance(whole, yaml.SequenceNode) and not whole.flow_style
    if len(documents) > 1 or not is_list or whole.start_mark.column:
        raise ValueError("its records are no YAML list at the left edge: add this one by hand")
    lines = text.splitlines()
    for node in whole.value:
        id = next((v.value for k, v in node.value if k.value == "id"), None)
        end = node.end_mark.line
        # What stands before the next record is that one's: comments, and a blank line.
        while end > node.start_mark.line and not lines[end - 1].startswith(" "):
            end -= 1
        yield Entry(id, node.start_mark.line, end)


def yaml_of(record: Mapping[str, Any]) -> str:
    """A record as an item of a YAML list: a line a fact, lists of plain values on one line."""
    import yaml

    class Dumper(yaml.SafeDumper):
        """Lists of plain values stay on one line; no anchors."""

        def ignore_aliases(self, data: object) -> bool:
            """Nothing is written as an alias."""
            return True

    def represent(dumper: Dumper, data: list[Any]) -> yaml.Node:
        flow = not any(isinstance(one, (dict, list)) for one in data)
        return dumper.represent_sequence("tag:yaml.org,2002:seq", data, flow_style=flow)

    Dumper.add_representer(list, represent)
    return yaml.dump(
        [dict(record)], Dumper=Dumper, sort_keys=False, width=_WIDTH, allow_unicode=True
    )
