"""From a merged deployment to its cases: engine, model and accelerator, and their alternatives."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from capcheck.case import Case, Model, Workshop
from capcheck.catalogue import Catalogue, Match
from capcheck.deployment import Deployment
from capcheck.engine import Engine, Release
from capcheck.hardware import Accelerator, share_of
from capcheck.models import FoundModel, ModelSource
from capcheck.packing import PackingSource
from capcheck.source import Node, Scalar
from capcheck.unnamed import UnnamedEngine
from capcheck.values import Origin, Place, Value, derived, unknown

if TYPE_CHECKING:
    from capcheck.quantization import Scheme

MOST_CASES = 24  # accelerators x releases of one deployment
UNQUANTIZED = frozenset({"bf16", "fp16", "fp32", "bfloat16", "float16", "float32", "auto"})


class Problem(NamedTuple):
    """Something about the input itself, at its place."""

    rule: str
    message: str
    place: Place
    help: str = ""


class Resolved(NamedTuple):
    """A deployment's cases, one for each alternative, and what went wrong on the way."""

    deployment: Deployment
    cases: tuple[Case, ...]
    problems: tuple[Problem, ...]
    unknown: dict[str, str]  # what is not known, and why


def suggestion(near: Sequence[str]) -> str:
    """"did you mean ...?" for near misses; "" without any."""
    return f"did you mean {' or '.join(near[:3])}?" if near else ""


class Resolver:
    """Turns names into records. Reads no file: `read_config` is given by the session."""

    def __init__(
        self,
        engines: Sequence[Engine],
        catalogue: Catalogue,
        models: Sequence[ModelSource],
        packing: PackingSource,
        workshop: Callable[[Resolver], Workshop],
        read_config: Callable[[Deployment], Value[Any] | None],
    ) -> None:
        self.engines = tuple(engines)
        self.catalogue = catalogue
        self.models = tuple(models)
        self.packing = packing
        self.read_config = read_config
        self.workshop = workshop(self)
        self._found: dict[str, FoundModel | None] = {}

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

        known = [engine.name for engine in self.engines if not engine.fallback]
        near = get_close_matches(word, known, 2)
        problem = Problem(
            "spec/unknown-engine", f"{named.get()!r} is not an engine that is known here",
            named.place, suggestion(near) or f"known are {', '.join(sorted(known))}",
        )  # fmt: skip
        lost = named.because(f"engine {named.get()!r} is not known")
        return UnnamedEngine(Value((), lost.origin)), [problem]

    def releases(self, engine: Engine, deployment: Deployment) -> tuple[Release, ...]:
        """The release, or one for each accounting era."""
        version = deployment.text("engine", "version")
        if version is None:
            return engine.releases(None, "the engine's version is not given")
        if not version.known:
            return engine.releases(None, version.origin.why or "the engine's version is not known")
        return engine.releases(version.get(), "")

    # models

    def find_model(self, name: str) -> FoundModel | None:
        """The model of a name, from whichever source knows it."""
        if name not in self._found:
            found = (source.find(name, self.catalogue) for source in self.models)
            self._found[name] = next((one for one in found if one is not None), None)
        return self._found[name]

    def model(self, deployment: Deployment, engine: Engine) -> tuple[Value[Model], list[Problem]]:
        """The model, its architecture and scheme; unknown with a reason and a suggestion."""
        named = deployment.text("model", "id") or engine.model_name(deployment)
        config = self.read_config(deployment)
        if config is not None:
            return self._from_config(deployment, engine, named, config)
        if named is None:
            return deployment.absent("model", "id", why="no model is named"), []
        if not named.known:
            return Value((), named.origin), []
        name = named.get()
        found = self.find_model(name)
        if found is None:
            near = [one for source in self.models for one in source.near(name, self.catalogue)]
            problem = Problem(
                "spec/unknown-model", f"the model {name!r} is not in the catalogue", named.place,
                suggestion(near) or "give model.config: the path of its config.json",
            )  # fmt: skip
            lost = named.origin._replace(why=f"model {name!r} is not in the catalogue")
            return Value((), lost), [problem]
        return self._settled(deployment, engine, named, name, found)

    def _from_config(
        self, deployment: Deployment, engine: Engine, named: Value[str] | None, config: Value[Any]
    ) -> tuple[Value[Model], list[Problem]]:
        if not config.known:
            return Value((), config.origin), []
        name = (named.either(None) if named else None) or str(
            config.get().get("_name_or_path") or "config.json"
        )
        reasons = []
        for source in self.models:
            try:
                found = source.build(config.get(), name)
            except ValueError as wrong:
                reasons.append(str(wrong))
                continue
            return self._settled(deployment, engine, config, name, found)
        why = "; ".join(dict.fromkeys(reasons)) or "no source of models reads it"
        problem = Problem("spec/model-config", f"config.json cannot be used: {why}", config.place)
        return Value((), config.origin._replace(why=f"config.json: {why}")), [problem]

    def _settled(
        self,
        deployment: Deployment,
        engine: Engine,
        named: Value[Any],
        name: str,
        found: FoundModel,
    ) -> tuple[Value[Model], list[Problem]]:
        scheme, problems = self._scheme(deployment, engine, named, found)
        model = Model(
            name, found.architecture, found.how, scheme, found.may_differ, found.parameters
        )
        return Value((model,), named.origin), problems

    def _scheme(
        self, deployment: Deployment, engine: Engine, named: Value[Any], found: FoundModel
    ) -> tuple[Value[Scheme | None], list[Problem]]:
        """How the weights are packed: declared, the checkpoint's own, or done while loading."""
        declared = deployment.text("model", "weights", "precision")
        if declared is not None and declared.known:
            word = declared.get().lower()
            if word in UNQUANTIZED:
                return Value((None,), declared.origin), []
            scheme = self.packing.from_words(word)
            if scheme is not None:
                return Value((scheme,), declared.origin), []
            from difflib import get_close_matches

            near = get_close_matches(word, self.packing.precisions(), 3)
            problem = Problem(
                "spec/schema", f"{declared.get()!r} is not a precision of weights",
                declared.place, suggestion(near) or f"known are {', '.join(self.packing.precisions())}",
            )  # fmt: skip
            return Value((), declared.origin._replace(why="precision is not known")), [problem]
        if declared is not None:
            return Value((), declared.origin), []
        online = engine.online_quantization(deployment)
        return self.stored_scheme(found, named, online), []

    def stored_scheme(
        self, found: FoundModel, named: Value[Any], online: Value[str] | None = None
    ) -> Value[Scheme | None]:
        """The scheme of a found model's checkpoint, or what loading makes of a plain one."""
        if found.stored == "unknown":
            return Value((), named.origin._replace(why=found.why))
        if found.stored == "scheme":
            return derived(found.scheme, named.place, found.how)
        if found.stored == "config":
            architecture = found.architecture
            config = {**(architecture.quantization or {})}
            if "expert_dtype" in architecture.config:
                config["expert_dtype"] = architecture.config["expert_dtype"]
            scheme = self.packing.from_config(config)
            if scheme is None:
                method = config.get("quant_method", "of no named method")
                why = f"the quantization {method!r} is not understood"
                return Value((), named.origin._replace(why=why))
            if not found.own:
                scheme = scheme._replace(seen="name")
            return derived(scheme, named.place, found.how)
        if online is not None:
            if not online.known:
                return Value((), online.origin)
            made = self.packing.online(online.get())
            if made is not None:
                return Value((made,), online.origin)
        return derived(None, named.place, found.how)

    # hardware

    def accelerator(
        self, deployment: Deployment
    ) -> tuple[Value[Accelerator], Match | None, list[Problem]]:
        """The part, or the parts that a name may mean."""
        named = deployment.text("hardware", "accelerator")
        if named is None:
            absent = deployment.absent("hardware", "accelerator", why="no accelerator is named")
            return absent, None, []
        if named.unknown:
            return Value((), named.origin), None, []
        parts: list[Accelerator] = []
        problems: list[Problem] = []
        match: Match | None = None
        for name in named.options:
            match = self.catalogue.accelerators(name)
            if not match.ids:
                problems.append(
                    Problem(
                        "spec/unknown-accelerator",
                        f"the accelerator {name!r} is not in the catalogue",
                        named.place, suggestion(match.near),
                    )
                )  # fmt: skip
            if match.shared and match.fraction is None:
                lost = named.origin._replace(why=f"{name!r}: a share of a device, of unknown size")
                return Value((), lost), match, problems
            found = [self.catalogue.accelerator(one) for one in match.ids]
            share = match.fraction
            parts += [share_of(part, share) if share else part for part in found]
        if not parts:
            lost = named.origin._replace(why=f"accelerator {named.options[0]!r} is not known")
            return Value((), lost), match, problems
        distinct = {part.id: part for part in parts}
        return Value(tuple(distinct.values()), named.origin), match, problems

    # cases

    def resolve(self, deployment: Deployment) -> Resolved:
        """All cases of a deployment."""
        engine, problems = self.engine(deployment)
        model, more = self.model(deployment, engine)
        problems += more
        accelerator, match, more = self.accelerator(deployment)
        problems += more
        deployment = self._counted(deployment, match)
        releases = self.releases(engine, deployment)
        parts: tuple[Value[Accelerator], ...] = (accelerator,)
        if len(accelerator.options) > 1:
            parts = tuple(accelerator.only(part) for part in accelerator.options)
        pairs = [(part, release) for part in parts for release in releases][:MOST_CASES]
        cases = []
        for part, release in pairs:
            label = _label(
                part if len(parts) > 1 else None,
                f"{engine.name} {release.text}" if len(releases) > 1 else None,
            )
            cases.append(
                Case(deployment, engine, release, model, part, self.workshop, label)
            )
        lost = _unknowns(engine, releases, model, accelerator)
        return Resolved(deployment, tuple(cases), tuple(problems), lost)

    def again(self, deployment: Deployment, case: Case) -> Case:
        """The same alternative of a changed deployment."""
        model, _ = self.model(deployment, case.engine)
        return Case(
            deployment, case.engine, case.release, model, case.accelerator, self.workshop,
            case.label,
        )  # fmt: skip

    def _counted(self, deployment: Deployment, match: Match | None) -> Deployment:
        """An instance type's devices, when nobody counted them."""
        named = deployment.fields.get(("hardware", "accelerator"))
        if match is None or not match.count or deployment.has("hardware", "count") or not named:
            return deployment
        node: Node = Scalar(str(match.count), "integer", "plain", named.place)
        value: Value[Node] = Value((node,), Origin("derived", named.place, why=match.how))
        return deployment.with_fields([(("hardware", "count"), value)])


def _label(part: Value[Accelerator] | None, release: str | None) -> str:
    words = []
    if part is not None:
        words.append(f"on {part.get().id}")
    if release is not None:
        words.append(f"with {release}")
    return " ".join(words)


def _unknowns(
    engine: Engine,
    releases: Sequence[Release],
    model: Value[Model],
    accelerator: Value[Accelerator],
) -> dict[str, str]:
    lost = {}
    if not model.known:
        lost["model"] = model.origin.why
    if accelerator.unknown:
        lost["accelerator"] = accelerator.origin.why
    elif not accelerator.known:
        lost["accelerator"] = "one of " + ", ".join(part.id for part in accelerator.options)
    if len(releases) != 1 or not releases[0].known:
        lost["engine_version"] = releases[0].why if releases else "not known"
    if isinstance(engine, UnnamedEngine):
        lost["engine"] = engine.why
    return lost


def parse_config(text: str) -> Any:
    """A config.json. Raises ValueError with what was expected."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise ValueError("expected a JSON object")
    return found
