"""Files that deployments build on: followed below the root, merged layer by layer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from capcheck import deployment as drafts
from capcheck import files
from capcheck.checkpoint_files import CheckpointError, is_checkpoint, read_checkpoint
from capcheck.deployment import Deployment, Draft, LinkTo
from capcheck.engine import Engine
from capcheck.formats import Document, Format
from capcheck.launch import OPEN_ARGS
from capcheck.library import Library
from capcheck.problems import Problem
from capcheck.source import Scalar
from capcheck.values import Origin, Place, Value, unknown

MODEL_CONFIG, ENGINE_CONFIG = "model config", "engine config"
MOST_LINKS = 8  # files behind each other
MOST_NAMED = 3

Reader = Callable[[Document, Sequence[Document], Format | None], tuple[list[Draft], str]]


def _open(draft: Draft, link: LinkTo) -> Draft:
    """The draft without what could not be read: options that it lacks may stand there."""
    lost: Value[Any] = unknown(link.place, f"{link.target} could not be read")
    return draft._replace(fields={OPEN_ARGS: lost, **draft.fields})


class Links:
    """Follows the links of drafts. What cannot be followed is a problem at the link."""

    def __init__(
        self,
        library: Library,
        formats: Sequence[Format],
        engines: Sequence[Engine],
        read: Reader,
    ) -> None:
        self.problems: list[Problem] = []
        self.included: dict[str, Place] = {}  # file -> where it was first included
        self.taken: dict[str, str] = {}  # file -> the format it was read as
        self.bases: set[Place] = set()  # headers of deployments that others build on
        self._library = library
        self._formats = formats
        self._engines = engines
        self._read = read
        self._configs: dict[str, Value[Any]] = {}
        self._made: dict[tuple[str, str], list[Draft]] = {}

    def follow(self, draft: Draft) -> Draft:
        """The draft over everything that it links to; links to model configurations stay."""
        return self._linked(draft, (draft.place,))

    def _linked(self, draft: Draft, chain: tuple[Place, ...]) -> Draft:
        for link in draft.links:
            if link.kind == MODEL_CONFIG:
                path = self._path_of(link)
                if path is not None:
                    self._include(self._library.name(path), link)
                continue
            lower = self._target(draft, link, chain)
            if lower is None:
                draft = _open(draft, link)
                continue
            reader = self._config_format(draft) if link.kind == ENGINE_CONFIG else None
            draft = _over(lower, draft, link)
            if reader is not None and reader.overrules:
                draft = drafts.overruled(draft, drafts.through(lower, link.place))
        return draft._replace(links=tuple(one for one in draft.links if one.kind == MODEL_CONFIG))

    def _lost(self, link: LinkTo, why: str, help: str = "", rule: str = "spec/link") -> None:
        problem = Problem(rule, f"{link.target}: {why}", link.place, help)
        if problem not in self.problems:
            self.problems.append(problem)

    def _include(self, name: str, link: LinkTo) -> None:
        self.included.setdefault(name, link.place)

    def _path_of(self, link: LinkTo) -> Path | None:
        """The file that a link names; for a model's configuration also in the folder it names."""
        target = link.target.partition("#")[0]
        root = self._library.root
        here = root / link.place.file
        path = here.parent / target if target else here
        if not files.inside(path, root):
            help = "a capcheck.toml or .git further up makes more of the tree readable"
            self._lost(link, "leads out of the checked tree", help)
            return None
        try:
            if path.is_file() or (link.kind == MODEL_CONFIG and path.is_dir()):
                return path
            why = "neither a regular file nor a folder" if path.exists() else "no such file"
        except (OSError, ValueError) as wrong:
            why = getattr(wrong, "strerror", None) or str(wrong)
        self._lost(link, why)
        return None

    def _target(self, draft: Draft, link: LinkTo, chain: tuple[Place, ...]) -> Draft | None:
        """The draft that a link names, itself linked."""
        path = self._path_of(link)
        if path is None:
            return None
        made = self._drafts(
            path, self._config_format(draft) if link.kind == ENGINE_CONFIG else None
        )
        wanted = link.target.partition("#")[2]
        found = [one for one in made if not wanted or one.name in (wanted, _short(wanted))]
        if len(found) != 1:
            self._lost(link, *_which(made, found, wanted))
            return None
        lower = found[0]
        if lower.place in chain:
            self._lost(link, "includes itself")
            return None
        if len(chain) > MOST_LINKS:
            self._lost(link, f"more than {MOST_LINKS} files behind each other")
            return None
        self._include(lower.place.file, link)
        self.bases.add(lower.place)
        return self._linked(lower, (*chain, lower.place))

    def _drafts(self, path: Path, format: Format | None) -> list[Draft]:
        """The deployments of a file, read once in each way."""
        documents = self._library.load(path)
        name = self._library.name(path)
        key = (name, format.name if format is not None else "")
        if key not in self._made:
            found: list[Draft] = []
            for document in documents:
                made, taken = self._read(document, documents, format)
                found += made
                if taken:
                    self.taken.setdefault(name, taken)
            self._made[key] = found
        return self._made[key]

    def _config_format(self, draft: Draft) -> Format | None:
        """The reader of the named engine's own configuration files."""
        named = draft.fields.get(("engine", "name"))
        node = named.either(None) if named is not None else None
        if not isinstance(node, Scalar):
            return None
        word = node.text.lower()
        spelled = (one.name for one in self._engines if word in (one.name, *one.names))
        word = next(spelled, word)
        return next((one for one in self._formats if word and one.engine_config == word), None)

    def model_config(self, deployment: Deployment) -> Value[Any] | None:
        """The config.json that the deployment links to, read once; None when it links to none."""
        link = next((one for one in deployment.draft.links if one.kind == MODEL_CONFIG), None)
        if link is None:
            return None
        path = self._path_of(link)
        if path is None:
            return Value((), _config_origin(link, f"{link.target} cannot be read"))
        name = self._library.name(path)
        if name not in self._configs:
            self._configs[name] = self._parse(path, link)
        config = self._configs[name]
        return Value(config.options, _config_origin(link, config.origin.why))

    def _parse(self, path: Path, link: LinkTo, rule: str = "spec/link") -> Value[Any]:
        try:
            found = read_checkpoint(path, lambda file: files.inside(file, self._library.root))
        except CheckpointError as wrong:
            self._lost(link, str(wrong), rule=rule)
            return Value((), _config_origin(link, f"{link.target}: {wrong}"))
        for file in found.files:
            self._include(self._library.name(file), link)
        return Value((found.config,), _config_origin(link, ""))

    def local_model(self, named: Value[str]) -> Value[Any] | None:
        """The configuration of the folder or file of the tree that a model's name leads to.

        None when it leads to none: then it is a name, or a path of another machine. A name that
        does not begin as a path does must lead to a checkpoint: `acme/chat` is a hub's as well.
        """
        name = named.either("")
        path = self._local_path(name, named.place)
        if path is None:
            return None
        link = LinkTo(MODEL_CONFIG, name, named.place)
        key = self._library.name(path)
        if key not in self._configs:
            # What the folder lacks here may be there where the engine runs: no error.
            self._configs[key] = self._parse(path, link, "spec/model-config")
        config = self._configs[key]
        return Value(config.options, named.origin._replace(why=config.origin.why))

    def _local_path(self, name: str, place: Place) -> Path | None:
        root = self._library.root
        if not name or name.startswith(("/", "~")) or "://" in name:
            return None
        here = root if place.file.startswith("<") else (root / place.file).parent
        try:
            path = here / name
            if not files.inside(path, root) or not path.exists():
                return None
        except (OSError, ValueError):
            return None
        as_path = name in (".", "..") or name.startswith(("./", "../"))
        return path if is_checkpoint(path) or (as_path and path.is_dir()) else None


def _over(lower: Draft, higher: Draft, link: LinkTo) -> Draft:
    """`higher` over what it links to. The nearest configuration of a model is the one that counts:
    none, when the higher layer names another model without one."""
    merged = drafts.merge(drafts.through(lower, link.place), higher)
    own = tuple(one for one in higher.links if one is not link)
    named = ("model", "id") in higher.fields
    return merged._replace(links=own if named else (*own, *lower.links))


def _short(wanted: str) -> str:
    return wanted.rpartition("/")[2]


def _which(made: Sequence[Draft], found: Sequence[Draft], wanted: str) -> tuple[str, str]:
    """What is wrong with a link that names no single deployment, and what helps."""
    if not made:
        return "holds no deployment", ""
    names = [one.name for one in made]
    shown = ", ".join(names[:MOST_NAMED]) + (", …" if len(names) > MOST_NAMED else "")
    if not found:
        return f"holds no deployment named {_short(wanted)}", f"it holds {shown}"
    if wanted:
        return f"holds {len(found)} deployments named {_short(wanted)}", ""
    return f"holds {len(made)} deployments", f"name one behind a #: {shown}"


def _config_origin(link: LinkTo, why: str) -> Origin:
    return Origin("written", link.place, word="model.config", why=why)
