"""From a model's name or config.json to what it is built like and how its weights are packed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from capcheck.case import Model
from capcheck.catalogue import Catalogue, CatalogueError
from capcheck.deployment import Deployment
from capcheck.engine import Engine
from capcheck.guard import RAISED, Guard
from capcheck.models import FoundModel, ModelSource
from capcheck.packing import PackingSource
from capcheck.problems import Problem, suggestion
from capcheck.values import Value, derived

if TYPE_CHECKING:
    from capcheck.quantization import Scheme

UNQUANTIZED = frozenset({
    "bf16", "fp16", "fp32", "bfloat16", "float16", "float32", "half", "f16", "f32", "auto",
})  # fmt: skip
Found = tuple[Value[Model], list[Problem]]
_LACKING = "give model.config: the path of its config.json; or `capcheck models add` it once"


class Models:
    """Asks every plugin that knows models. What goes wrong on the way is a problem at its place."""

    def __init__(
        self,
        sources: Sequence[ModelSource],
        catalogue: Catalogue,
        packing: PackingSource,
        guard: Guard,
        read_config: Callable[[Deployment], Value[Any] | None],
        read_local: Callable[[Value[str]], Value[Any] | None],
    ) -> None:
        self._sources = tuple(sources)
        self._catalogue = catalogue
        self._packing = packing
        self._guard = guard
        self._read_config = read_config
        self._read_local = read_local
        self._found: dict[str, FoundModel | None] = {}

    def find(self, name: str) -> FoundModel | None:
        """The model of a name, from whichever source knows it."""
        if name not in self._found:
            self._found[name] = self._find(name)
        return self._found[name]

    def of_name(self, named: Value[str]) -> FoundModel | None:
        """The model that a known name means: one of the tree, else of the catalogue."""
        config = self._read_local(named)
        if config is None:
            return self.find(named.get())
        built = self.build(config.get(), named.get()) if config.known else ""
        return built if isinstance(built, FoundModel) else None

    def _find(self, name: str) -> FoundModel | None:
        for source in self._sources:

            def ask(one: ModelSource = source) -> FoundModel | None:
                try:
                    return one.find(name, self._catalogue)
                except CatalogueError as wrong:
                    self._guard.fault("catalogue", str(wrong))
                    return None

            found = self._guard.call(source, f"looking for the model {name!r}", ask, None)
            if found is not None:
                return found
        return None

    def _near(self, name: str) -> list[str]:
        near: list[str] = []
        for source in self._sources:

            def ask(one: ModelSource = source) -> list[str]:
                try:
                    return list(one.near(name, self._catalogue))
                except CatalogueError as wrong:
                    self._guard.fault("catalogue", str(wrong))
                    return []

            near += self._guard.call(source, f"looking for models like {name!r}", ask, [])
        return near

    def named(self, deployment: Deployment, engine: Engine) -> Value[str] | None:
        """The model's name: the deployment's, or the engine's own option before an assumption."""
        name = deployment.text("model", "id")
        if name is not None and name.known and name.origin.kind != "assumed":
            return name
        what = "reading the model's name"
        own = self._guard.call(engine, what, lambda: engine.model_name(deployment), None)
        if own is None or (name is not None and not own.known):
            return name if name is not None else own
        return own if name is None or name.origin.kind == "assumed" else name

    def model(self, deployment: Deployment, engine: Engine) -> Found:
        """The model, its architecture and scheme; unknown with a reason and a suggestion."""
        named = self.named(deployment, engine)
        config = self._read_config(deployment)
        if config is not None:
            return self._from_config(deployment, engine, named, config)
        if named is None:
            return deployment.absent("model", "id", why="no model is named"), []
        if not named.known:
            why = named.origin.why or f"one of {', '.join(named.options)}"
            return Value((), named.origin._replace(why=why)), []
        config = self._read_local(named)
        if config is not None:
            return self._from_config(deployment, engine, named, config)
        name = named.get()
        found = self.find(engine.known_as(name))
        if found is not None:
            return self._settled(deployment, engine, named, name, found)
        help = suggestion(self._near(name)) or _LACKING
        why = f"the model {name!r} is not in the catalogue"
        problem = Problem("spec/unknown-model", why, named.place, help)
        lost = named.origin._replace(why=f"model {name!r} is not in the catalogue")
        return Value((), lost), [problem]

    def _from_config(
        self, deployment: Deployment, engine: Engine, named: Value[str] | None, config: Value[Any]
    ) -> Found:
        if not config.known:
            return Value((), config.origin), []
        what = "the GGUF file" if "gguf" in config.get() else "config.json"
        told = config.get().get("_name_or_path") or what
        name = (named.either(None) if named else None) or str(told)
        built = self.build(config.get(), name)
        if isinstance(built, FoundModel):
            return self._settled(deployment, engine, config, name, built)
        problem = Problem("spec/model-config", f"{what} cannot be used: {built}", config.place)
        return Value((), config.origin._replace(why=f"{what}: {built}")), [problem]

    def build(self, config: Mapping[str, Any], name: str) -> FoundModel | str:
        """The model of a checkpoint's configuration, or why no source can build it."""
        reasons: list[str] = []
        for source in self._sources:
            try:
                return source.build(config, name)
            except ValueError as wrong:
                reasons.append(str(wrong))
            except RAISED as error:
                self._guard.failed(source, "reading config.json", error)
                reasons.append("its reader failed")
        return "; ".join(dict.fromkeys(reasons)) or "no source of models reads it"

    def _settled(
        self,
        deployment: Deployment,
        engine: Engine,
        named: Value[Any],
        name: str,
        found: FoundModel,
    ) -> Found:
        try:
            scheme, problems = self._scheme(deployment, engine, named, found)
        except RAISED as error:
            self._guard.failed(self._packing, "reading the quantization", error)
            origin = named.origin._replace(why="the reader of its quantization failed")
            scheme, problems = Value((), origin), []
        model = Model(
            name, found.architecture, found.how, scheme, found.may_differ, found.parameters
        )
        return Value((model,), named.origin), problems

    # how the weights are packed

    def _scheme(
        self, deployment: Deployment, engine: Engine, named: Value[Any], found: FoundModel
    ) -> tuple[Value[Scheme | None], list[Problem]]:
        """How the weights are packed: declared, the checkpoint's own, or done while loading."""
        online = engine.online_quantization(deployment)
        declared = deployment.text("model", "weights", "precision")
        if declared is None:
            declared = engine.precision(deployment)
            if declared is None or (declared.known and not self._is_word(declared.get())):
                return self.stored(found, named, online), []
        if not declared.known:
            why = declared.origin.why or f"one of {', '.join(declared.options)}"
            return Value((), declared.origin._replace(why=why)), []
        word = declared.get().lower()
        if word in UNQUANTIZED:
            return self._online(online) or Value((None,), declared.origin), []
        scheme = self._packing.from_words(word)
        if scheme is not None:
            problems = self._conflict(declared, scheme, online)
            return self._fitted(Value((scheme,), declared.origin), found), problems
        from difflib import get_close_matches

        known = self._packing.precisions()
        near = get_close_matches(word, known, 3)
        problem = Problem(
            "spec/schema", f"{declared.get()!r} is not a precision of weights", declared.place,
            suggestion(near) or f"known are {', '.join(known)}",
        )  # fmt: skip
        return Value((), declared.origin._replace(why="precision is not known")), [problem]

    def _is_word(self, precision: str) -> bool:
        word = precision.lower()
        return word in UNQUANTIZED or self._packing.from_words(word) is not None

    def _fitted(self, scheme: Value[Scheme | None], found: FoundModel) -> Value[Scheme | None]:
        """The scheme with what its method decides by the model."""
        return scheme.map(
            lambda one: self._packing.for_model(one, found.architecture) if one else one
        )

    def _online(self, online: Value[str] | None) -> Value[Scheme | None] | None:
        """What loading makes of plain weights; None when it leaves them as they are."""
        if online is None:
            return None
        if not online.known:
            return Value((), online.origin)
        made = self._packing.online(online.get())
        return None if made is None else Value((made,), online.origin)

    def _conflict(
        self, declared: Value[str], scheme: Scheme, online: Value[str] | None
    ) -> list[Problem]:
        """The declared precision against the engine's own option: two words for one thing."""
        word = online.either(None) if online is not None else None
        if word is None or online is None or online.origin.kind != "written":
            return []
        other = self._packing.online(word) or self._packing.from_words(word)
        if other is None or other.weight == scheme.weight:
            return []
        message = (
            f"{online.origin.word or 'quantization'} is {word}, but model.weights.precision is "
            f"{declared.get()}: weights stored as {scheme.weight} are not {other.weight}"
        )
        return [Problem("spec/conflict", message, online.place)]

    def stored(
        self, found: FoundModel, named: Value[Any], online: Value[str] | None = None
    ) -> Value[Scheme | None]:
        """The scheme of a found model's checkpoint, or what loading makes of a plain one."""
        if found.stored == "unknown":
            told = online.either(None) if online is not None else None
            scheme = self._packing.online(told) or self._packing.from_words(told) if told else None
            if scheme is not None and online is not None:
                stated: Value[Scheme | None] = Value(
                    (scheme._replace(seen="written"),), online.origin
                )
                return self._fitted(stated, found)
            return Value((), named.origin._replace(why=found.why))
        if found.stored == "scheme":
            return self._fitted(derived(found.scheme, named.place, found.how), found)
        if found.stored == "config":
            return self._of_checkpoint(found, named)
        return self._online(online) or derived(None, named.place, found.how)

    def _of_checkpoint(self, found: FoundModel, named: Value[Any]) -> Value[Scheme | None]:
        """The scheme of the quantization configuration that the checkpoint carries."""
        architecture = found.architecture
        config: dict[str, Any] = {**_mapping(architecture.quantization)}
        if "expert_dtype" in architecture.config:
            config["expert_dtype"] = architecture.config["expert_dtype"]
        scheme = self._packing.from_config(config)
        if scheme is None:
            method = config.get("quant_method", "of no named method")
            why = f"the quantization {method!r} is not understood"
            return Value((), named.origin._replace(why=why))
        if not found.own:
            scheme = scheme._replace(seen="name")
        return derived(scheme, named.place, found.how)


def _mapping(found: object) -> Mapping[str, Any]:
    return found if isinstance(found, Mapping) else {}
