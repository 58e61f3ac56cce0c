"""One deployment resolved to one alternative: what rules and estimates read."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias, TypeVar

from capcheck.accounts import Accounting
from capcheck.case_facts import facts_of
from capcheck.changes import edited
from capcheck.deployment import Deployment
from capcheck.engine import (
    Change,
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
from capcheck.guard import RAISED
from capcheck.hardware import Accelerator
from capcheck.quantity import Band
from capcheck.terms import Spread, Term, TermBook, Terms, spread
from capcheck.values import Unknown, Value, unknown

if TYPE_CHECKING:
    from capcheck.architecture import Architecture
    from capcheck.models import FoundModel
    from capcheck.packing import PackingSource
    from capcheck.quantization import Scheme

T = TypeVar("T")
Least: TypeAlias = "float | Callable[[Case], float] | None"


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
        if scheme is not None and scheme.is_guess:
            return "the quantization was not read from the checkpoint's own configuration"
        return ""


class Estimate(NamedTuple):
    """A named quantity over (case, terms); one owner, everybody reads it."""

    name: str
    unit: str
    compute: Callable[[Case, Terms], float]
    basis: str = ""
    least: Least = None  # what the quantity cannot be below: its band neither
    account: Accounting | None = None  # what it is made of


def estimate(
    name: str, *, unit: str, basis: str = "", least: Least = None
) -> Callable[[Callable[[Case, Terms], float]], Estimate]:
    """Make a function over (case, terms) a shared estimate, in SI units."""

    def make(compute: Callable[[Case, Terms], float]) -> Estimate:
        return Estimate(name, unit, compute, basis, least)

    return make


class Workshop(NamedTuple):
    """What all cases of a run share: the plugins' contributions, and what is costly to redo."""

    terms: TermBook
    estimates: Mapping[str, Estimate]
    platforms: tuple[Platform, ...]
    packing: PackingSource
    find_model: Callable[[Value[str]], FoundModel | None]
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
        self._chosen: dict[str, Term] = {}  # terms that the facts select, by label
        self.platform = self._platform()
        plan = engine.plan(self.site)
        self.plan: Plan = self.platform.plan(plan, self.site) if self.platform else plan
        self.facts = facts_of(self)

    def _platform(self) -> Platform | None:
        accelerator = self.accelerator.either(None)
        vendor = accelerator.vendor if accelerator else ""
        for platform in self.workshop.platforms:
            if platform.engine == self.engine.name and platform.vendor == vendor:
                return platform
        return None

    def visible_bytes(self, t: Terms) -> float:
        """Device memory as the engine sees it. Raises Unknown.

        Measured where somebody did; else nominal bytes by the rule of thumb for the part, with
        the spread of the term `device.visible_factor`.
        """
        part = self.accelerator.get("accelerator")
        known = part.visible_bytes or part.nominal_bytes * part.visible_factor
        return known * t.read("device.visible_factor")

    @property
    def in_use_bytes(self) -> float:
        """Memory of each device that others hold, as declared. Raises Unknown."""
        stated = self.deployment.size("hardware", "in_use")
        return stated.get("hardware.in_use") if stated is not None else 0.0

    def draft_model(self) -> Model | None:
        """The draft model, when the plan names one that is known; None when it names none.

        Raises Unknown when the name is not known.
        """
        named = self.plan.draft
        if named is None:
            return None
        name = named.get("draft model")
        found = self.workshop.find_model(named)
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
        return Terms(self.workshop.terms, self.facts, chosen=self._chosen)

    def once(self, name: str, compute: Callable[[], T]) -> T:
        """`compute()` once, for what depends on no terms. What it raises Unknown for, it keeps."""
        key = (name, None)
        if key not in self._memo:
            try:
                self._memo[key] = compute()
            except Unknown as lost:
                self._memo[key] = lost
        found: T | Unknown = self._memo[key]
        if isinstance(found, Unknown):
            raise found
        return found

    def memo(self, name: str, t: Terms, compute: Callable[[Terms], T]) -> T:
        """`compute(t)` once for each point of the terms that it reads.

        Every reader's terms are told which ones were read on the way: they are in its band, too.
        """
        at_mid = self._memo.get((name, ()))
        if at_mid is not None and not any(label in at_mid[1].reads for label, _ in t.key):
            key: tuple[str, Any] = (name, ())  # what was moved is not read: nothing else differs
        else:
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
        made: T = found
        return made

    def ledger(self, t: Terms) -> Ledger:
        """The worst rank's memory. Raises Unknown."""
        return self.memo("ledger", t, self._ledger)

    def _ledger(self, t: Terms) -> Ledger:
        ledger = self.engine.ledger(self, t)
        if self.platform is not None:
            more = tuple(self.platform.lines(self, t))
            ledger = ledger._replace(lines=(*ledger.lines, *more))
        return ledger

    def kv(self) -> KvLayout:
        """Pages of the KV cache. Raises Unknown."""
        return self.once("kv", lambda: self.engine.kv(self))

    def value(self, name: str, t: Terms) -> float:
        """A shared estimate at given terms, in its unit. Raises Unknown."""
        made = self.workshop.estimates.get(name)
        if made is None:
            raise Unknown(unknown(self.deployment.place, f"no plugin estimates {name}"))
        return self.memo(f"estimate {name}", t, lambda own: float(made.compute(self, own)))

    def spread(self, name: str) -> Spread:
        """A shared estimate's band and what moves it. Raises Unknown."""
        return self.spread_of(lambda t: self.value(name, t), f"estimate {name}")

    def spread_of(self, compute: Callable[[Terms], float], name: str = "") -> Spread:
        """The band of any quantity over this case's terms, kept under `name`. Raises Unknown."""
        if not name:
            return spread(compute, self.terms())
        return self.once(f"spread {name}", lambda: spread(compute, self.terms()))

    def estimate(self, name: str) -> Band:
        """A shared estimate with its band, in its unit. Raises Unknown."""
        band, stated = self.spread(name).band, self.workshop.estimates[name].least
        least = stated(self) if callable(stated) else stated
        return band if least is None else Band(*(max(least, side) for side in band))

    def supports(self, rule: str) -> tuple[Support, ...]:
        """What the engine and the platform decide about legality for one rule."""
        return tuple(one for one in self.once("supports", self._supports) if one.rule == rule)

    def _supports(self) -> tuple[Support, ...]:
        found = list(self.engine.supports(self))
        if self.platform is not None:
            found += self.platform.supports(self)
        found += self.workshop.packing.supports(self)
        return tuple(found)

    def legality(self, rule: str, more: Iterable[Support] = ()) -> Answer:
        """The answer of a rule that only asks what is legal: fails, a skip, or a pass."""
        found = (*self.supports(rule), *more)
        fails = tuple(self._refusal(one) for one in found if one.legal is False)
        if fails:
            return fails
        lost = [one for one in found if one.legal is None]
        if not found:
            return Skip(f"{self.engine.name} decides nothing here")
        if len(lost) == len(found):
            return Skip(lost[0].message, lost[0].at)
        return Pass()

    def _refusal(self, one: Support) -> Fail:
        """What the engine refuses; a warning that says why where that is not certain."""
        doubt = one.doubt or (self.release.why if self.release.foreign else "")
        message = f"{one.message}, but {doubt}" if doubt else one.message
        return Fail(one.at, message, one.arithmetic, one.help, risk=bool(doubt))

    def run(self, *rules: Rule) -> list[Result]:
        """Each rule's answer at mid terms, guarded rule by rule."""
        results = []
        for one in rules:
            terms = self.terms()
            try:
                results.append(Result(one, one(self, terms), None, terms))
            except RAISED as error:
                results.append(Result(one, None, error, terms))
        return results

    def what_if(self, *changes: Change) -> Case | None:
        """This case with neutral changes, re-resolved; None when they cannot be written."""
        made = edited(self, changes)
        return None if made is None else self.workshop.resolve(made[0], self)
