"""One deployment resolved to one alternative: what rules and estimates read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from capcheck.deployment import Deployment
from capcheck.engine import (
    Change,
    Edit,
    Engine,
    KvLayout,
    Ledger,
    Plan,
    Platform,
    Release,
    Site,
    Support,
)
from capcheck.findings import Answer, Fail, Pass, Rule, Skip
from capcheck.hardware import Accelerator
from capcheck.quantity import Band
from capcheck.source import Scalar
from capcheck.terms import Spread, TermBook, Terms, spread
from capcheck.values import Origin, Unknown, Value

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.models import FoundModel
    from capcheck.packing import PackingSource
    from capcheck.quantization import Scheme


class Model(NamedTuple):
    """A model name resolved: what it is built like and how its weights are packed."""

    name: str  # as written
    architecture: Architecture
    how: str  # "exact", "config.json", "quantized upload of X" ...
    scheme: Value[Scheme | None]  # None: unquantized; unknown: nobody told
    may_differ: tuple[str, ...] = ()
    parameters: float | None = None  # exact count of the catalogue

    @property
    def doubt(self) -> str:
        """Why memory figures of this model cannot carry an error; "" when they can."""
        scheme = self.scheme.either(None)
        if scheme is not None and scheme.seen not in ("config", "written", "online"):
            return "the quantization was not read from the checkpoint's own configuration"
        return ""


class Estimate(NamedTuple):
    """A named quantity over (case, terms); one owner, everybody reads it."""

    name: str
    unit: str
    compute: Callable[[Case, Terms], float]
    basis: str = ""


def estimate(
    name: str, *, unit: str, basis: str = ""
) -> Callable[[Callable[[Case, Terms], float]], Estimate]:
    """Make a function over (case, terms) a shared estimate, in SI units."""

    def make(compute: Callable[[Case, Terms], float]) -> Estimate:
        return Estimate(name, unit, compute, basis)

    return make


class Workshop(NamedTuple):
    """What all cases of a run share: the plugins' contributions, and what is costly to redo."""

    terms: TermBook
    estimates: Mapping[str, Estimate]
    platforms: tuple[Platform, ...]
    packing: PackingSource
    find_model: Callable[[str], FoundModel | None]
    stored_scheme: Callable[[FoundModel, Value[Any]], Value[Scheme | None]]
    resolve: Callable[[Deployment, Case], Case | None]  # the same alternative after a change
    cache: dict[Any, Any]


class Result(NamedTuple):
    """One rule's answer on one case, before it is judged."""

    rule: Rule
    answer: Answer | None
    error: BaseException | None
    terms: Terms


class Case:
    """One deployment with one accelerator and one release. Memoizes what it computes."""

    def __init__(
        self,
        deployment: Deployment,
        engine: Engine,
        release: Release,
        model: Value[Model],
        accelerator: Value[Accelerator],
        workshop: Workshop,
        label: str = "",
    ) -> None:
        self.deployment = deployment
        self.engine = engine
        self.release = release
        self.model = model
        self.accelerator = accelerator
        self.workshop = workshop
        self.label = label  # "on nvidia/h100-pcie-80gb", "with vLLM 0.20 to 0.26"
        self.site = Site(deployment, release, model, accelerator)
        self._memo: dict[tuple[str, Any], Any] = {}
        self.platform = self._platform()
        plan = engine.plan(self.site)
        self.plan: Plan = self.platform.plan(plan, self.site) if self.platform else plan
        self.facts = self._facts()

    def _platform(self) -> Platform | None:
        accelerator = self.accelerator.either(None)
        vendor = accelerator.vendor if accelerator else ""
        for platform in self.workshop.platforms:
            if platform.engine == self.engine.name and platform.vendor == vendor:
                return platform
        return None

    def _facts(self) -> dict[str, Any]:
        facts: dict[str, Any] = {"engine": self.engine.name, "release": self.release.version}
        accelerator = self.accelerator.either(None)
        if accelerator is not None:
            facts |= {
                "vendor": accelerator.vendor,
                "memory_class": accelerator.memory_class,
                "architecture": accelerator.architecture,
                "capability": accelerator.capability,
                "accelerator": accelerator.id,
                "link": accelerator.link.kind,
                "visible": "measured" if accelerator.visible_bytes else "nominal",
            }
        for name in ("tensor", "pipeline", "data", "expert"):
            value: Value[int] = getattr(self.plan, name)
            facts[name] = value.either(None)
        model = self.model.either(None)
        if model is not None:
            facts |= {
                "family": model.architecture.family,
                "moe": model.architecture.experts > 0,
            }
        return {**facts, **self.engine.facts(self)}

    def visible_bytes(self, t: Terms) -> float:
        """Device memory as the engine sees it. Raises Unknown.

        Measured where somebody did; else nominal bytes by the rule of thumb for the part, with
        the spread of the term `device.visible_factor`.
        """
        part = self.accelerator.get("accelerator")
        known = part.visible_bytes or part.nominal_bytes * part.visible_factor
        return known * t.read("device.visible_factor")

    def draft_model(self) -> Model | None:
        """The draft model, when the plan names one that is known; None when it names none.

        Raises Unknown when the name is not known.
        """
        named = self.plan.draft
        if named is None:
            return None
        name = named.get("draft model")
        found = self.workshop.find_model(name)
        if found is None:
            raise Unknown(named.because(f"the draft model {name!r} is not in the catalogue"))
        scheme = self.workshop.stored_scheme(found, named)
        return Model(name, found.architecture, found.how, scheme, found.may_differ)

    @property
    def doubt(self) -> str:
        """Why no memory figure of this case can carry an error; "" when they can."""
        model = self.model.either(None)
        return model.doubt if model else ""

    def terms(self) -> Terms:
        """This case's constants at mid; notes what is read."""
        return Terms(self.workshop.terms, self.facts)

    def memo(self, name: str, t: Terms, compute: Callable[[Terms], Any]) -> Any:
        """`compute(t)` once for each point of the terms that it reads."""
        key = (name, t.key)
        if key not in self._memo:
            self._memo[key] = compute(t)
        return self._memo[key]

    def ledger(self, t: Terms) -> Ledger:
        """The worst rank's memory. Raises Unknown."""
        found: Ledger = self._shared("ledger", t, self._ledger)
        return found

    def _ledger(self, t: Terms) -> Ledger:
        ledger = self.engine.ledger(self, t)
        if self.platform is not None:
            more = tuple(self.platform.lines(self, t))
            ledger = ledger._replace(lines=(*ledger.lines, *more))
        return ledger

    def kv(self) -> KvLayout:
        """Pages of the KV cache. Raises Unknown."""
        key = ("kv", None)
        if key not in self._memo:
            try:
                self._memo[key] = self.engine.kv(self)
            except Unknown as lost:
                self._memo[key] = lost
        found: KvLayout | Unknown = self._memo[key]
        if isinstance(found, Unknown):
            raise found
        return found

    def _shared(self, name: str, t: Terms, compute: Callable[[Terms], Any]) -> Any:
        """Memoize and let every reader's Terms know the terms that were read on the way."""
        key = (name, t.key)
        if key not in self._memo:
            own = t.moved(dict(t.key))
            try:
                found: Any = compute(own)
            except Unknown as lost:
                found = lost
            self._memo[key] = (found, own)
        found, own = self._memo[key]
        t.note(own)
        if isinstance(found, Unknown):
            raise found
        return found

    def value(self, name: str, t: Terms) -> float:
        """A shared estimate at given terms, in its unit. Raises Unknown, KeyError."""
        made = self.workshop.estimates[name]
        return float(self._shared(f"estimate {name}", t, lambda own: made.compute(self, own)))

    def spread(self, name: str) -> Spread:
        """A shared estimate's band and what moves it. Raises Unknown, KeyError."""
        return self.spread_of(lambda t: self.value(name, t), name)

    def spread_of(self, compute: Callable[[Terms], float], name: str = "") -> Spread:
        """The band of any quantity over this case's terms. Raises Unknown."""
        key = (f"spread {name}", None)
        if name and key in self._memo:
            found: Spread = self._memo[key]
            return found
        terms = self.terms()
        compute(terms)
        made = spread(compute, terms)
        if name:
            self._memo[key] = made
        return made

    def estimate(self, name: str) -> Band:
        """A shared estimate with its band, in its unit. Raises Unknown, KeyError."""
        return self.spread(name).band

    def supports(self, rule: str) -> tuple[Support, ...]:
        """What the engine and the platform decide about legality for one rule."""
        key = ("supports", None)
        if key not in self._memo:
            found = list(self.engine.supports(self))
            if self.platform is not None:
                found += self.platform.supports(self)
            found += self.workshop.packing.supports(self)
            self._memo[key] = found
        return tuple(one for one in self._memo[key] if one.rule == rule)

    def legality(self, rule: str, more: Iterable[Support] = ()) -> Answer:
        """The answer of a rule that only asks what is legal: fails, a skip, or a pass."""
        found = (*self.supports(rule), *more)
        fails = tuple(
            Fail(one.at, one.message, one.arithmetic, one.help, risk=bool(one.doubt))
            for one in found
            if one.legal is False
        )
        if fails:
            return fails
        lost = [one for one in found if one.legal is None]
        if not found:
            return Skip(f"{self.engine.name} decides nothing here")
        if len(lost) == len(found):
            return Skip(lost[0].message, lost[0].at)
        return Pass()

    def run(self, *rules: Rule) -> list[Result]:
        """Each rule's answer at mid terms, guarded rule by rule."""
        results = []
        for one in rules:
            terms = self.terms()
            try:
                results.append(Result(one, one(self, terms), None, terms))
            except Exception as error:
                results.append(Result(one, None, error, terms))
        return results

    def what_if(self, *changes: Change) -> Case | None:
        """This case with neutral changes, re-resolved; None when they cannot be written."""
        deployment = self.deployment
        for change in changes:
            edited = apply(self.engine, change, deployment)
            if edited is None:
                return None
            deployment = edited
        if any(change.field in ("tensor", "pipeline") for change in changes):
            deployment = grown(self, deployment)
        return self.workshop.resolve(deployment, self)


def apply(engine: Engine, change: Change, deployment: Deployment) -> Deployment | None:
    """The deployment with a change in the user's own words; None when there are none."""
    edit = edit_of(engine, change, deployment)
    return set_field(deployment, edit.path, edit.text) if edit is not None else None


def edit_of(engine: Engine, change: Change, deployment: Deployment) -> Edit | None:
    """A change in the user's words: the engine's options, or the hardware that is declared."""
    if change.field == "devices":
        return Edit(("hardware", "count"), str(change.to), f"count: {change.to}")
    return engine.write(change, deployment)


def set_field(deployment: Deployment, path: tuple[str, ...], text: str) -> Deployment:
    """A copy with one field set to `text`, at the place where it is or would be written."""
    at = deployment.place_for(*path)
    node = Scalar(text, "text", "plain", at)
    have = deployment.fields.get(path)
    origin = have.origin if have else Origin("written", at, word=path[-1])
    return deployment.with_fields([(path, Value((node,), origin))])


def grown(case: Case, deployment: Deployment) -> Deployment:
    """The deployment with as many devices as its parallel sizes take; never fewer."""
    count = deployment.count("hardware", "count")
    if count is None or not count.known:
        return deployment
    nodes = deployment.count("hardware", "nodes")
    per_node = max(1, (nodes.either(1) if nodes else 1) or 1)
    try:
        needed = -(-case.engine.plan(case.site._replace(deployment=deployment)).devices // per_node)
    except Unknown:
        return deployment
    if needed <= count.get():
        return deployment
    return set_field(deployment, ("hardware", "count"), str(needed))


def unknown_inputs(values: Iterable[Value[Any]]) -> list[Value[Any]]:
    """Those of `values` that are not known."""
    return [value for value in values if not value.known]
