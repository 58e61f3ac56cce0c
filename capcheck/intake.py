"""From paths to drafts: files read, documents claimed, links followed, assumptions made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from capcheck import deployment as drafts
from capcheck import files
from capcheck.catalogue import Catalogue
from capcheck.deployment import Deployment, Draft, FieldPath
from capcheck.engine import Engine
from capcheck.formats import Desk, Document, Format
from capcheck.guard import Guard
from capcheck.library import Library
from capcheck.links import Links
from capcheck.problems import Problem
from capcheck.source import Scalar
from capcheck.values import COMMAND_LINE, Place, Value

ASSUMABLE: Mapping[str, FieldPath] = {
    "model": ("model", "id"),
    "precision": ("model", "weights", "precision"),
    "accelerator": ("hardware", "accelerator"),
    "count": ("hardware", "count"),
    "nodes": ("hardware", "nodes"),
    "engine": ("engine", "name"),
    "engine-version": ("engine", "version"),
    "concurrency": ("workload", "concurrency"),
    "prompt-tokens": ("workload", "prompt_tokens"),
    "output-tokens": ("workload", "output_tokens"),
}
STANDARD_INPUT = "<stdin>"
INCLUDED = "included by another file"
FEW_TEMPLATES = 2
WHAT_IS_READ = "`capcheck list formats` prints what is read"
HEADER, UNCLAIMED, UNREADABLE = "capcheck/header", "capcheck/unclaimed", "spec/unreadable"


class Intake:
    """Reads files below one root and gives their drafts; problems are collected."""

    def __init__(
        self,
        root: Path,
        formats: Sequence[Format],
        engines: Sequence[Engine],
        guard: Guard,
        *,
        catalogue: Catalogue | None = None,
        assumptions: Mapping[str, str] | None = None,
        exclude: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.formats = tuple(formats)
        self.engines = tuple(engines)
        self.assumptions = dict(assumptions or {})
        self.exclude = tuple(exclude)
        self.skip_unclaimed = False
        self._guard = guard
        self._catalogue = catalogue
        self._start()

    def _start(self) -> None:
        self.taken: dict[str, str] = {}  # file -> what it was read as
        self.unclaimed: list[str] = []
        self._problems: list[Problem] = []
        self._library = Library(self.root)
        self._links = Links(self._library, self.formats, self.engines, self._drafts_of)

    @property
    def texts(self) -> Mapping[str, str]:
        """The text of every file that was read as YAML or JSON."""
        return self._library.texts

    @property
    def problems(self) -> list[Problem]:
        """What is wrong with the input, so far."""
        return [*self._library.all_problems(), *self._problems, *self._links.problems]

    @property
    def bases(self) -> frozenset[Place]:
        """The headers of deployments that others build on."""
        return frozenset(self._links.bases)

    # files

    def read(
        self, paths: Iterable[Path], stdin: tuple[str, str | bytes] | None = None
    ) -> list[Draft]:
        """Every deployment of the paths, merged with what it links to. Forgets earlier calls."""
        self._start()
        given, missing = files.collect(paths, self.root, self.exclude)
        for one in missing:
            self._unreadable(self._library.name(one.path), one.why)
        names: dict[str, bool] = {}
        for file in given:
            name = self._library.name(file.path)
            if files.inside(file.path, self.root):
                self._library.load(file.path)
                names[name] = file.explicit
            else:
                self._unreadable(name, "this link leads out of the checked tree")
        if stdin is not None:
            self._library.keep(*stdin)
            names[stdin[0]] = True
        found = self._drafts(names)
        for name, explicit in names.items():
            if name not in self.taken:
                self._left_over(name, explicit)
        self._gather([name for name, explicit in names.items() if not explicit])
        return found

    def _gather(self, walked: Sequence[str]) -> None:
        """One problem for all files of the folders that are templates: charts hold dozens."""
        templates = [name for name in walked if self._is_template(name)]
        if len(templates) < FEW_TEMPLATES:
            return
        first, *_ = [one for name in templates for one in self._library.drop(name)]
        message = f"this file and {len(templates) - 1} more are templates that nobody rendered"
        help = "render them first and check the result"
        self._problems.append(first._replace(message=message, help=help))
        self.unclaimed += templates[1:]

    def _is_template(self, name: str) -> bool:
        rules = {one.rule for one in self._library.problems(name)}
        return not self._library.documents(name) and rules == {"spec/template"}

    def _unreadable(self, name: str, why: str) -> None:
        self._problems.append(Problem(UNREADABLE, why, Place(name, 0, 0, 0, 0)))

    def _left_over(self, name: str, explicit: bool) -> None:
        """A file that no format claimed: part of another one, at fault itself, or unclaimed."""
        if name in self._links.included:
            kind = self._links.taken.get(name, "model configuration")
            self.taken[name] = f"{kind}, {INCLUDED}"
            return
        if not explicit:
            self._library.forgive(name)
        if any(one.place.file == name for one in self.problems):
            return
        self.unclaimed.append(name)
        if explicit and not self.skip_unclaimed:
            empty = not self._library.documents(name)
            what = "the file is empty" if empty else "no format reads this file as a deployment"
            self._problems.append(Problem(UNCLAIMED, what, Place(name), WHAT_IS_READ))

    # documents

    def _drafts(self, names: Iterable[str]) -> list[Draft]:
        """All drafts, without those that are only a part of others: engines' configurations."""
        everything = self._library.everything()
        found: list[tuple[Format, Draft]] = []
        for name in names:
            documents = self._library.documents(name)
            around: tuple[Document, ...] = ()
            for document in documents:
                format = self._format_of(document)
                if format is None:
                    self._near_miss(document)
                    continue
                self.taken[name] = format.name
                others = (one for one in everything if one.file != name)
                around = around or (*documents, *others)
                made = self._read(format, document, around)
                found += [(format, self._links.follow(draft)) for draft in made]
        for name in self._links.included:
            if name in self.taken:
                self.taken[name] += f", {INCLUDED}"
        return [
            self._assumed(draft)
            for format, draft in found
            if not (format.engine_config and draft.place.file in self._links.included)
        ]

    def _drafts_of(
        self, document: Document, documents: Sequence[Document], format: Format | None
    ) -> tuple[list[Draft], str]:
        """The deployments of a document that is linked to, and the format's name."""
        format = format or self._format_of(document)
        if format is None:
            return [], ""
        return self._read(format, document, tuple(documents)), format.name

    def _read(
        self, format: Format, document: Document, documents: tuple[Document, ...]
    ) -> list[Draft]:
        desk = Desk(document, documents, self.engines, self._catalogue, self.formats)
        what = f"reading {document.file}"
        made = self._guard.call(format, what, lambda: list(format.read(desk)), [])
        sound = [one for one in made if _is_sound(one)]
        if len(sound) < len(made):
            self._guard.fault(self._guard.owner(format), f"{what}: gave what is no whole Draft")
        return sound

    def _format_of(self, document: Document) -> Format | None:
        for format in self.formats:

            def claims(one: Format = format) -> bool:
                return one.claims(document)

            if self._guard.call(format, f"claiming {document.file}", claims, False):
                return format
        return None

    def _near_miss(self, document: Document) -> None:
        for format in self.formats:

            def miss(one: Format = format) -> Problem | None:
                found = one.near_miss(document)
                return None if found is None else Problem(HEADER, found[0], found[1].place)

            problem = self._guard.call(format, f"looking at {document.file}", miss, None)
            if problem is not None:
                self._problems.append(problem)
                return

    # assumptions and model configurations

    def _assumed(self, draft: Draft) -> Draft:
        for name, text in self.assumptions.items():
            node = Scalar(text, "text", "plain", Place(COMMAND_LINE))
            draft = drafts.assume(draft, ASSUMABLE[name], node, f"--assume {name}={text}")
        return draft

    def model_config(self, deployment: Deployment) -> Value[Any] | None:
        """The config.json that the deployment links to; None when it links to none."""
        return self._links.model_config(deployment)

    def local_model(self, named: Value[str]) -> Value[Any] | None:
        """The configuration in the tree that a model's name leads to; None for a mere name."""
        return self._links.local_model(named)


def _is_sound(draft: object) -> bool:
    """Whether it is a draft whose problems can be reported."""
    return isinstance(draft, Draft) and all(
        isinstance(one, tuple)
        and len(one) in (3, 4)
        and isinstance(one[2], Place)
        and all(isinstance(part, str) for part in (*one[:2], *one[3:]))
        for one in draft.problems
    )
