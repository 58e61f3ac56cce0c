"""Reads small files the way a run does, with vLLM's command lines and option table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

from capcheck import (
    Catalogue,
    Desk,
    Document,
    Draft,
    Engine,
    Format,
    Image,
    Launch,
    OptionTable,
    Release,
)
from capcheck.options import parse_release
from capcheck.source import read_documents, to_plain
from capcheck.words import Word
from capcheck_kubernetes.manifests import Kubernetes
from capcheck_vllm import launching
from capcheck_vllm.config_format import VllmConfig
from capcheck_vllm.table import TABLE

HOME = "k8s/app.yaml"


class StartsVllm(Engine):
    """Only what formats ask an engine."""

    name = "vllm"

    @property
    def options(self) -> OptionTable:
        return TABLE

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        parsed = parse_release(text or "")
        if parsed is None:
            return (Release("unknown", (), known=False, why=why),)
        return (Release(text or "", parsed.version),)

    def launch(self, words: Sequence[Word], image: Image | None) -> Launch | None:
        return launching.launch(words, image)

    def image(self, reference: str) -> Image | None:
        return launching.image(reference)


ENGINES = (StartsVllm(),)
FORMATS: tuple[Format, ...] = (Kubernetes(), VllmConfig())


@cache
def catalogue() -> Catalogue:
    """The parts and names that are shipped."""
    from capcheck_google import capcheck_catalogues as google
    from capcheck_nvidia import capcheck_catalogues as nvidia

    return Catalogue((*nvidia(), *google()))


def documents_of(text: str, file: str = HOME) -> tuple[Document, ...]:
    read = read_documents(text, file)
    return tuple(Document(file, number, root, read.text) for number, root in enumerate(read.roots))


def read_all(
    text: str,
    *,
    file: str = HOME,
    others: Mapping[str, str] | None = None,
    formats: Sequence[Format] = FORMATS,
    shelves: Catalogue | None = None,
) -> list[Draft]:
    """Every draft of the file; `others` are further files of the run."""
    own = documents_of(text, file)
    more = tuple(one for name, other in (others or {}).items() for one in documents_of(other, name))
    found: list[Draft] = []
    for document in own:
        reader = next((one for one in formats if one.claims(document)), None)
        if reader is not None:
            desk = Desk(document, (*own, *more), ENGINES, shelves, tuple(formats))
            found += reader.read(desk)
    return found


def read_one(text: str, **more: Any) -> Draft:
    drafts = read_all(text, **more)
    assert len(drafts) == 1, [draft.name for draft in drafts]
    return drafts[0]


def plain(draft: Draft, *path: str) -> Any:
    """A field as plain data; a list of alternatives; None when absent; "?" when unknown."""
    value = draft.fields.get(path)
    if value is None:
        return None
    options = [to_plain(option) for option in value.options]
    return options[0] if len(options) == 1 else options or "?"


def arg(draft: Draft, *names: str) -> Any:
    return plain(draft, "engine", "args", *names)


def why(draft: Draft, *path: str) -> str:
    """Why a field is not known."""
    return draft.fields[path].origin.why


def marked(draft: Draft, text: str, *path: str) -> str:
    """What the field's place marks in the file's text."""
    place = draft.fields[path].place
    assert place.line == place.end_line
    return text.splitlines()[place.line - 1][place.column - 1 : place.end_column - 1]


def words(*texts: str) -> tuple[Word, ...]:
    from capcheck import Place

    return tuple(Word(text, Place("command")) for text in texts)
