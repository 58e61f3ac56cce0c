"""From paths to drafts: files read, documents claimed, links followed, assumptions made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from capcheck import deployment as drafts
from capcheck import files
from capcheck.deployment import Deployment, Draft, FieldPath, LinkTo
from capcheck.engine import Engine
from capcheck.formats import Desk, Document, Format
from capcheck.resolve import Problem, parse_config
from capcheck.source import Node, Scalar, read_documents, read_file
from capcheck.values import COMMAND_LINE, Origin, Place, Value

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
MOST_LINKS = 8
STANDARD_INPUT = "<stdin>"


class Intake:
    """Reads files below one root and gives their drafts; problems are collected."""

    def __init__(
        self,
        root: Path,
        formats: Sequence[Format],
        engines: Sequence[Engine],
        assumptions: Mapping[str, str],
        exclude: Sequence[str] = (),
    ) -> None:
        self.root = root
        self.formats = tuple(formats)
        self.engines = tuple(engines)
        self.assumptions = dict(assumptions)
        self.exclude = tuple(exclude)
        self.problems: list[Problem] = []
        self.texts: dict[str, str] = {}
        self.taken: dict[str, str] = {}  # file -> the format it was read as
        self.unclaimed: list[str] = []
        self.skip_unclaimed = False
        self._documents: dict[str, tuple[Document, ...]] = {}
        self._included: set[str] = set()

    # files and documents

    def _load(self, path: Path, name: str) -> tuple[Document, ...]:
        if name not in self._documents:
            read = read_file(path, name)
            self.texts[name] = read.text
            self.problems += [Problem(*one) for one in read.problems]
            self._documents[name] = tuple(
                Document(name, index, root, read.text) for index, root in enumerate(read.roots)
            )
        return self._documents[name]

    def read(self, paths: Iterable[Path], stdin: tuple[str, str] | None = None) -> list[Draft]:
        """Every deployment of the paths, merged with what it links to."""
        given, missing = files.collect(paths, self.root, self.exclude)
        for one in missing:
            place = Place(files.shown(one.path, self.root))
            self.problems.append(Problem("spec/unreadable", one.why, place))
        names = []
        for file in given:
            name = files.shown(file.path, self.root)
            if not files.inside(file.path, self.root):
                place = Place(name)
                message = "this link leads out of the checked tree"
                self.problems.append(Problem("spec/unreadable", message, place))
                continue
            self._load(file.path, name)
            names.append((name, file.explicit))
        if stdin is not None:
            name, text = stdin
            found = read_documents(text, name)
            self.texts[name] = found.text
            self.problems += [Problem(*one) for one in found.problems]
            self._documents[name] = tuple(
                Document(name, index, root, found.text) for index, root in enumerate(found.roots)
            )
            names.append((name, True))
        return self._drafts(names)

    def _drafts(self, names: Sequence[tuple[str, bool]]) -> list[Draft]:
        found: list[Draft] = []
        everything = [one for name, _ in names for one in self._documents[name]]
        for name, explicit in names:
            documents = self._documents[name]
            before = len(self.problems)
            claimed = False
            for document in documents:
                format = self._format_of(document)
                if format is None:
                    claimed |= self._near_miss(document)
                    continue
                claimed = True
                self.taken[name] = format.name
                others = [one for one in everything if one.file != name]
                desk = Desk(document, (*documents, *others), self.engines)
                found += self._with_links(format.read(desk), desk)
            trouble = any(one.place.file == name for one in self.problems)
            if not claimed and not (trouble or len(self.problems) > before):
                self._unclaimed(name, explicit, empty=not documents)
        return [draft for draft in found if draft.place.file not in self._only_included(names)]

    def _only_included(self, names: Sequence[tuple[str, bool]]) -> set[str]:
        """Walked files that stand in the run only as parts of others."""
        walked = {name for name, explicit in names if not explicit}
        return self._included & walked

    def _unclaimed(self, name: str, explicit: bool, *, empty: bool) -> None:
        self.unclaimed.append(name)
        if explicit and not self.skip_unclaimed:
            what = "the file is empty" if empty else "no format reads this file as a deployment"
            self.problems.append(Problem("capcheck/unclaimed", what, Place(name)))

    def _format_of(self, document: Document) -> Format | None:
        return next((one for one in self.formats if one.claims(document)), None)

    def _near_miss(self, document: Document) -> bool:
        for format in self.formats:
            miss = format.near_miss(document)
            if miss is not None:
                message, node = miss
                self.problems.append(Problem("capcheck/header", message, node.place))
                return True
        return False

    # links

    def _with_links(self, made: Iterable[Draft], desk: Desk) -> list[Draft]:
        return [self._assumed(self._linked(draft, (draft.place.file,))) for draft in made]

    def _linked(self, draft: Draft, chain: tuple[str, ...]) -> Draft:
        for link in draft.links:
            if link.kind == "model config":
                continue
            lower = self._target(draft, link, chain)
            if lower is not None:
                links = tuple(one for one in draft.links if one is not link)
                higher = draft._replace(links=links)
                draft = drafts.merge(drafts.through(lower, link.place), higher)
        return draft

    def _lost(self, link: LinkTo, why: str) -> None:
        self.problems.append(Problem("spec/link", f"{link.target}: {why}", link.place))

    def _path_of(self, link: LinkTo, base: str) -> Path | None:
        target = link.target.partition("#")[0]
        path = (self.root / base).parent / target
        if not files.inside(path, self.root):
            self._lost(link, "leads out of the checked tree")
        elif not path.is_file():
            self._lost(link, "no such file")
        else:
            return path
        return None

    def _target(self, draft: Draft, link: LinkTo, chain: tuple[str, ...]) -> Draft | None:
        """The draft that a link names, itself linked."""
        path = self._path_of(link, link.place.file)
        if path is None:
            return None
        name = files.shown(path, self.root)
        if name in chain or len(chain) > MOST_LINKS:
            self._lost(link, "includes itself")
            return None
        self._included.add(name)
        documents = self._load(path, name)
        made: list[Draft] = []
        for document in documents:
            format = self._config_format(draft) if link.kind == "engine config" else None
            format = format or self._format_of(document)
            if format is None:
                continue
            self.taken[name] = format.name
            made += format.read(Desk(document, documents, self.engines))
        wanted = link.target.partition("#")[2]
        if wanted:
            short = wanted.rpartition("/")[2]
            made = [one for one in made if one.name in (wanted, short)]
        if len(made) != 1:
            what = f"holds {len(made)} deployments" if made else "holds no deployment"
            self._lost(link, f"{what}{f' named {wanted}' if wanted else '; name one: #Kind/name'}")
            return None
        return self._linked(made[0], (*chain, name))

    def _config_format(self, draft: Draft) -> Format | None:
        named = draft.fields.get(("engine", "name"))
        engine = ""
        if named is not None and named.known and isinstance(named.options[0], Scalar):
            engine = named.options[0].text.lower()
        fitting = [one for one in self.formats if one.engine_config]
        if engine:
            return next((one for one in fitting if one.engine_config == engine), None)
        return None

    # assumptions and model configurations

    def _assumed(self, draft: Draft) -> Draft:
        for name, text in self.assumptions.items():
            path = ASSUMABLE[name]
            node: Node = Scalar(text, "text", "plain", Place(COMMAND_LINE))
            draft = drafts.assume(draft, path, node, f"--assume {name}={text}")
        return draft

    def model_config(self, deployment: Deployment) -> Value[Any] | None:
        """The config.json that the deployment links to, or that lies beside a local model."""
        link = next((one for one in deployment.draft.links if one.kind == "model config"), None)
        if link is None:
            return None
        path = self._path_of(link, link.place.file)
        origin = Origin("written", link.place, word="model.config")
        if path is None:
            return Value((), origin._replace(why=f"{link.target} cannot be read"))
        if path.is_dir():
            path = path / "config.json"
        try:
            if path.stat().st_size > 5_000_000:
                raise ValueError("larger than any config.json")
            config = parse_config(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as wrong:
            self._lost(link, str(wrong))
            return Value((), origin._replace(why=f"{link.target}: {wrong}"))
        self._included.add(files.shown(path, self.root))
        return Value((config,), origin)
