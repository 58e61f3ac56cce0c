"""From a merged deployment to its cases: engine, model and accelerator, and their alternatives."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from capcheck.case import Case, Model, Workshop
from capcheck.catalogue import Catalogue, CatalogueError
from capcheck.contradictions import conflicts, unresolved
from capcheck.deployment import Deployment
from capcheck.engine import Engine, Release
from capcheck.guard import RAISED, Guard
from capcheck.hardware import Accelerator, share_of
from capcheck.models import ModelSource
from capcheck.packing import PackingSource
from capcheck.problems import Problem, suggestion
from capcheck.resolve_models import Models
from capcheck.source import Node, Scalar
from capcheck.unnamed import UnnamedEngine
from capcheck.values import MOST_ALTERNATIVES, Origin, Unknown, Value, unknown

COUNT = ("hardware", "count")


class Resolved(NamedTuple):
    """A deployment's cases, one for each alternative, and what went wrong on the way."""

    deployment: Deployment
    cases: tuple[Case, ...]
    problems: tuple[Problem, ...]
    unknown: dict[str, str]  # what is not known, and why
    named: Value[str] | None = None  # the model's name as written


class Parts(NamedTuple):
    """The parts that a deployment may run on. One that nobody knows is an alternative, too."""

    alternatives: tuple[tuple[str, Value[Accelerator]], ...]  # (id or name as written, part)
    problems: tuple[Problem, ...] = ()
    devices: int | None = None  # where the name says so: an instance type
    how: str = ""


class Resolver:
    """Turns names into records. Reads no file: what reads them is given by the session."""

    def __init__(
        self,
        engines: Sequence[Engine],
        catalogue: Catalogue,
        models: Sequence[ModelSource],
        packing: PackingSource,
        guard: Guard,
        workshop: Callable[[Resolver], Workshop],
        read_config: Callable[[Deployment], Value[Any] | None],
        read_local: Callable[[Value[str]], Value[Any] | None],
    ) -> None:
        self.engines = tuple(engines)
        self.catalogue = catalogue
        self.models = Models(models, catalogue, packing, guard, read_config, read_local)
        self._guard = guard
        self.workshop = workshop(self)

    # engines

    def engine(self, deployment: Deployment) -> tuple[Engine, list[Problem]]:
        """The engine that the deployment names; the fallback when it names none."""
        named = deployment.text("engine", "name")
        if named is None:
            for engine in self.engines:
                if engine.fallback:
                    return engine, []
            place = deployment.place_for("engine")
            return UnnamedEngine(unknown(place, "no engine is named")), []
        if not named.known:
            return UnnamedEngine(named), []
        word = named.get().lower()
        for engine in self.engines:
            if word == engine.name or word in engine.names:
                return engine, []
        from difflib import get_close_matches

        known = sorted(engine.name for engine in self.engines if not engine.fallback)
        near = get_close_matches(word, known, 2)
        problem = Problem(
            "spec/unknown-engine", f"{named.get()!r} is not an engine that is known here",
            named.place, suggestion(near) or f"known are {', '.join(known)}",
        )  # fmt: skip
        return UnnamedEngine(named.because(f"engine {named.get()!r} is not known")), [problem]

    def releases(self, engine: Engine, deployment: Deployment) -> tuple[Release, ...]:
        """The release, or one for each accounting era; never none."""
        version = deployment.text("engine", "version")
        text, why = None, "the engine's version is not given"
        if version is not None:
            text = version.either(None)
            why = "" if version.known else version.origin.why or "the engine's version is not known"
        found = self._guard.call(engine, "releases", lambda: tuple(engine.releases(text, why)), ())
        return found or (Release(text or "unknown", (), known=False, why=why or "not known"),)

    # hardware

    def parts(self, deployment: Deployment) -> Parts:
        """The part, or the parts that a name or a list of names may mean."""
        named = deployment.text("hardware", "accelerator")
        if named is None:
            named = deployment.absent("hardware", "accelerator", why="no accelerator is named")
        if named.unknown:
            return Parts((("", Value((), named.origin)),))
        found: dict[str, Value[Accelerator]] = {}
        problems: list[Problem] = []
        counts: set[tuple[int | None, str]] = set()
        for name in named.options:
            one = self._part(name, named.origin)
            found.update(one.alternatives)
            problems += one.problems
            counts.add((one.devices, one.how))
        if len(found) > MOST_ALTERNATIVES:
            lost = named.origin._replace(why=f"{len(found)} accelerators are possible")
            return Parts((("", Value((), lost)),), tuple(problems))
        count, how = counts.pop() if len(counts) == 1 else (None, "")
        return Parts(tuple(found.items()), tuple(problems), count, how)

    def _part(self, name: str, origin: Origin) -> Parts:
        """The parts of one name."""

        def lost(why: str) -> tuple[tuple[str, Value[Accelerator]], ...]:
            return ((name, Value((), origin._replace(why=why))),)

        try:
            match = self.catalogue.accelerators(name)
            parts = [self.catalogue.accelerator(one) for one in match.ids]
        except CatalogueError as wrong:
            self._guard.fault("catalogue", str(wrong))
            return Parts(lost("its record cannot be read"))
        if not parts:
            message = f"the accelerator {name!r} is not in the catalogue"
            problem = Problem(
                "spec/unknown-accelerator", message, origin.place, suggestion(match.near)
            )
            return Parts(lost(f"accelerator {name!r} is not known"), (problem,))
        if match.shared and match.fraction is None:
            return Parts(lost(f"{name!r}: a share of a device, of unknown size"))
        if match.fraction:
            parts = [share_of(part, match.fraction) for part in parts]
        alternatives = tuple((part.id, Value((part,), origin)) for part in parts)
        return Parts(alternatives, (), match.count, match.how)

    # cases

    def resolve(self, deployment: Deployment) -> Resolved:
        """All cases of a deployment: its parts times its releases, at most 64."""
        engine, problems = self.engine(deployment)
        model, more = self.models.model(deployment, engine)
        parts = self.parts(deployment)
        deployment = _counted(deployment, parts)
        releases = self.releases(engine, deployment)
        several, eras = len(parts.alternatives) > 1, len(releases) > 1
        cases = []
        for name, part in parts.alternatives:
            for release in releases:
                words = [f"on {name}"] if several else []
                words += [f"with {engine.name} {release.text}"] if eras else []
                label = " ".join(words)
                cases.append(self._case(deployment, engine, release, model, part, label))
        lost = _unknowns(engine, releases, model, parts)
        named = self.models.named(deployment, engine)
        found = [*problems, *more, *parts.problems, *unresolved(deployment, named)]
        found += self._guard.call(
            engine, "options", lambda: tuple(conflicts(deployment, engine)), ()
        )
        return Resolved(deployment, tuple(cases), tuple(found), lost, named)

    def _case(
        self,
        deployment: Deployment,
        engine: Engine,
        release: Release,
        model: Value[Model],
        part: Value[Accelerator],
        label: str,
    ) -> Case:
        """One alternative; where the engine cannot plan, everything of the engine is unknown."""
        try:
            return Case(deployment, engine, release, model, part, self.workshop, label)
        except Unknown as missing:
            lost = missing.value
        except RAISED as error:
            self._guard.failed(engine, f"planning {deployment.name}", error)
            lost = unknown(deployment.place, f"the plugin of {engine.name} failed")
        engine = UnnamedEngine(lost)
        return Case(deployment, engine, release, model, part, self.workshop, label)

    def again(self, deployment: Deployment, case: Case) -> Case:
        """The same alternative of a changed deployment."""
        model, _ = self.models.model(deployment, case.engine)
        return Case(
            deployment, case.engine, case.release, model, case.accelerator, self.workshop,
            case.label,
        )  # fmt: skip


def _counted(deployment: Deployment, parts: Parts) -> Deployment:
    """An instance type's devices, when nobody counted them: an assumption is no count."""
    named = deployment.fields.get(("hardware", "accelerator"))
    have = deployment.fields.get(COUNT)
    told = have is not None and have.origin.kind != "assumed"
    if not parts.devices or told or named is None:
        return deployment
    node: Node = Scalar(str(parts.devices), "integer", "plain", named.place)
    value: Value[Node] = Value((node,), Origin("derived", named.place, why=parts.how))
    return deployment.with_fields([(COUNT, value)])


def _unknowns(
    engine: Engine, releases: Sequence[Release], model: Value[Model], parts: Parts
) -> dict[str, str]:
    """What is not known and why, for the report."""
    lost = {}
    if not model.known:
        lost["model"] = model.origin.why or "not known"
    if len(parts.alternatives) > 1:
        lost["accelerator"] = "one of " + ", ".join(name for name, _ in parts.alternatives)
    elif parts.alternatives[0][1].unknown:
        lost["accelerator"] = parts.alternatives[0][1].origin.why or "not known"
    if len(releases) != 1 or not releases[0].known:
        lost["engine_version"] = releases[0].why or "not known"
    if isinstance(engine, UnnamedEngine):
        lost["engine"] = engine.why
    return lost
