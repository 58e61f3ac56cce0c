"""What a format plugin is, and the desk it reads at."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from capcheck.deployment import Draft
from capcheck.source import Node

if TYPE_CHECKING:
    from capcheck.catalogue import Catalogue
    from capcheck.engine import Engine
    from capcheck.launch import Started
    from capcheck.words import Command, Word


class Document(NamedTuple):
    """One document of one file, with the file's text for snippets and embedded places."""

    file: str  # relative to the root
    number: int  # which document of the file, from 0
    root: Node
    text: str


class Desk(NamedTuple):
    """What a format may look at besides its own document."""

    document: Document
    documents: tuple[Document, ...]  # every document of the run, this file's first
    engines: tuple[Engine, ...]
    catalogue: Catalogue | None = None  # to tell whether two names can mean one accelerator
    formats: tuple[Format, ...] = ()  # to read an engine's own configuration inside another file

    def started(
        self, commands: Iterable[Command], image: Word | None, *, whole: bool = True
    ) -> Started | None:
        """The server that a container's commands or image start; None when none is known.

        `whole` is False when the words are only the arguments of the image's entry point.
        """
        from capcheck.launch import read_commands

        return read_commands(self.engines, commands, image, whole=whole)

    def config_format(self, engine: str) -> Format | None:
        """The reader of that engine's own configuration files."""
        return next((one for one in self.formats if one.engine_config == engine), None)


class Format:
    """A format plugin: subclass, fill in, return an instance from `capcheck_formats`."""

    name: str = ""
    title: str = ""
    engine_config: str = ""  # the engine whose own configuration file this is
    config_options: tuple[str, ...] = ()  # that engine's options that name such a file
    overrules: bool = False  # whether what such a file says wins over the command line
    rank: int = 0  # of several formats that claim a document the highest reads it

    def claims(self, document: Document) -> bool:
        """Whether this document is in this format, by its content."""
        raise NotImplementedError

    def read(self, desk: Desk) -> Iterable[Draft]:
        """The deployments of the document. Bad input becomes `problems` of the drafts."""
        raise NotImplementedError

    def near_miss(self, document: Document) -> tuple[str, Node] | None:
        """What looks like this format but is not: a sentence and the node to mark."""
        del document  # most formats have no header that can be misspelt
        return None
