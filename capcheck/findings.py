"""Rules and what they say: margins, passes, fails, skips; findings for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeAlias, Union

from capcheck.quantity import Band, Severity, Verdict
from capcheck.values import Place, Value

if TYPE_CHECKING:
    from capcheck.case import Case
    from capcheck.terms import Terms

Where: TypeAlias = Union[Place, "Value[Any]"]
Scope = Literal["deployment", "fleet"]


class Words(NamedTuple):
    """What a finding says: one sentence, its arithmetic in one line, changes that help."""

    message: str
    arithmetic: str = ""
    help: tuple[str, ...] = ()


class Margin(NamedTuple):
    """What there is against what it takes, in `unit`; the core bands it and judges.

    `words` is called once, with the verdict and the band of (have - need).
    `doubt` names a ground that cannot carry an error: the verdict is at risk at most.
    """

    have: float
    need: float
    unit: str
    at: Where
    words: Callable[[Verdict, Band], Words]
    doubt: str = ""

    @property
    def left(self) -> float:
        """What is left over; negative when it does not suffice."""
        return self.have - self.need


class Pass(NamedTuple):
    """The rule looked and found nothing wrong."""

    reason: str = ""


class Fail(NamedTuple):
    """Something is wrong whatever the terms say. `risk`: at risk only, a warning."""

    at: Where
    message: str
    arithmetic: str = ""
    help: tuple[str, ...] = ()
    risk: bool = False
    severity: Severity | None = None  # None: the rule's


class Skip(NamedTuple):
    """The rule does not apply or lacks an input; `reason` completes "skipped because"."""

    reason: str
    at: Where | None = None


Answer: TypeAlias = Union[Margin, Pass, Fail, Skip, tuple[Fail, ...]]
Check: TypeAlias = Callable[["Case", "Terms"], Answer]


class Rule:
    """One check with its page. Calling it answers for one case at given terms."""

    __slots__ = (
        "aliases", "check", "fails", "fix", "id", "knobs", "of_plans", "passes", "plugin",
        "scope", "severity", "since", "title", "why",
    )  # fmt: skip

    def __init__(
        self,
        id: str,
        check: Check,
        *,
        title: str,
        why: str,
        fix: str,
        fails: str,
        passes: str,
        knobs: tuple[str, ...] = (),
        severity: Severity = "error",
        since: str = "0.1.0",
        aliases: tuple[str, ...] = (),
        scope: Scope = "deployment",
        of_plans: bool = True,
    ) -> None:
        self.id = id
        self.check = check
        self.title = title
        self.why = why
        self.fix = fix
        self.fails = fails
        self.passes = passes
        self.knobs = knobs
        self.severity = severity
        self.since = since
        self.aliases = aliases
        self.scope = scope  # "fleet": answered by capcheck_check_fleet, over all deployments
        self.of_plans = of_plans
        self.plugin = ""

    def __call__(self, case: Case, t: Terms) -> Answer:
        """The answer on one case at given terms."""
        return self.check(case, t)

    def __repr__(self) -> str:
        return f"Rule({self.id!r})"

    @property
    def concern(self) -> str:
        """What it is about: the part of its id before the slash."""
        return self.id.partition("/")[0]


def rule(
    id: str,
    *,
    title: str,
    why: str,
    fix: str,
    fails: str,
    passes: str,
    knobs: tuple[str, ...] = (),
    severity: Severity = "error",
    since: str = "0.1.0",
    aliases: tuple[str, ...] = (),
    scope: Scope = "deployment",
    of_plans: bool = True,
) -> Callable[[Check], Rule]:
    """Make a function over (case, terms) a rule.

    `title` is one line, `why` and `fix` are paragraphs of its page, `fails` and `passes` are
    deployments (capcheck/v1 YAML) that are its first tests. `knobs` names what remedies may turn:
    max_request_tokens, max_sequences, max_step_tokens, memory_fraction, graphs, kv_dtype, tensor,
    pipeline, devices, more_sequences, more_step_tokens, smaller_tensor, replicas. `of_plans` False:
    it asks for what only a deployment can have, as evaluations; `capcheck fit` leaves it out.
    """

    def make(check: Check) -> Rule:
        return Rule(
            id, check, title=title, why=why, fix=fix, fails=fails, passes=passes, knobs=knobs,
            severity=severity, since=since, aliases=aliases, scope=scope, of_plans=of_plans,
        )  # fmt: skip

    return make


class Result(NamedTuple):
    """One rule's verdict on one case, with all that a finding needs."""

    rule: Rule
    verdict: Verdict
    words: Words = Words("")
    at: Place | None = None
    via: tuple[Place, ...] = ()
    word: str = ""  # the name of the value that is marked
    reason: str = ""  # why skipped, why only at risk
    lack: str = ""  # the input that a skip lacks, without the field it was looked for in
    left: Band | None = None
    unit: str = ""
    severity: Severity | None = None
    assumed: tuple[str, ...] = ()  # assumptions of the deployment
    moved_by: tuple[tuple[str, float], ...] = ()  # terms by how far they move the margin


class Finding(NamedTuple):
    """What is reported: a result that is not a pass, or a problem of the input itself."""

    rule: str
    verdict: Verdict
    severity: Severity
    message: str
    place: Place
    deployment: str = ""
    arithmetic: str = ""
    help: tuple[str, ...] = ()
    note: str = ""  # what is marked
    suppressed: str = ""  # the reason of whoever suppressed it
    via: tuple[Place, ...] = ()  # the places that included the file, the outermost first


def place_of(where: Where) -> Place:
    """Where to mark: the place itself, or where a value comes from."""
    return where if isinstance(where, Place) else where.origin.place
