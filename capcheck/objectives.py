"""Objectives on a latency against its estimates: which one is tightest, and how it is judged."""

from __future__ import annotations

import math
from typing import NamedTuple

from capcheck.accounts import Account, account_of, sum_words
from capcheck.case import Case
from capcheck.curves import declared_by, load_words, reach
from capcheck.findings import Margin, Skip, Words
from capcheck.measure import show_seconds
from capcheck.quantity import Band, Verdict
from capcheck.terms import Terms
from capcheck.values import Unknown
from capcheck.workload import Objective, concurrency, objectives, request_rate

ENOUGH_POINTS = 30  # of a tail term in its class, before a tail alone makes an error
ENOUGH_SOURCES = 5  # that those come from


class Tight(NamedTuple):
    """The objective that is closest to being missed, and its estimate's name."""

    objective: Objective
    estimate: str


def estimate_of(latency: str, figure: str) -> str:
    """The estimate that an objective is held against."""
    if figure == "p50":
        return f"{latency}_seconds"
    return f"{latency}_seconds_{figure}"


def tightest(case: Case, latency: str) -> Tight | Skip:
    """The declared objective that is worst off: missed for sure, missed perhaps, then by room.

    An error is not hidden behind a tail that is closer to its target but only a warning.
    Raises Unknown.
    """
    found = objectives(case.deployment, latency)
    if not found:
        return Skip(f"no {latency} objective is declared")
    judged = [one for one in found if one.figure != "p999"]
    if not judged:
        return Skip("p999: no measurements stand behind it", found[0].seconds)

    def standing(one: Objective) -> tuple[int, float]:
        target = one.seconds.get(f"the {latency} objective")
        band = case.estimate(estimate_of(latency, one.figure))
        return _rank(case, latency, one.figure, target), band.mid / target

    worst = max(judged, key=standing)
    return Tight(worst, estimate_of(latency, worst.figure))


def _rank(case: Case, latency: str, figure: str, target: float) -> int:
    """2: missed for sure, 1: a warning, 0: met."""
    band = case.estimate(estimate_of(latency, figure))
    if band.high <= target:
        return 0
    certain = band.low > target and not _tail_doubt(case, latency, figure, target)
    return 2 if certain else 1


def _overloaded(case: Case) -> bool:
    """Whether requests arrive faster than a replica completes them, for sure."""
    if request_rate(case.deployment) is None or concurrency(case.deployment) is not None:
        return False
    return "saturation" in case.workshop.estimates and case.estimate("saturation").low > 1.0


def _tail_doubt(case: Case, latency: str, figure: str, target: float) -> str:
    """Why a missed tail is no error: the median is met, and few measurements tell the tail."""
    if figure in ("mean", "p50"):
        return ""
    if case.estimate(f"{latency}_seconds").low > target:
        return ""
    terms = case.terms()
    case.value(estimate_of(latency, figure), terms)
    read = [term for label, term in terms.reads.items() if f"_{figure}_factor" in label]
    points = min((term.cases for term in read), default=0)
    sources = min((term.sources for term in read), default=0)
    if points >= ENOUGH_POINTS and sources >= ENOUGH_SOURCES:
        return ""
    origin = "1 source" if sources == 1 else f"{sources} sources"
    return f"the {figure} is modelled on {points} measurements of {origin}"


def objective_margin(
    case: Case, t: Terms, latency: str, help: tuple[str, ...] = ()
) -> Margin | Skip:
    """The tightest objective against its estimate, in seconds. Raises Unknown."""
    tight = tightest(case, latency)
    if isinstance(tight, Skip):
        return tight
    if _overloaded(case):
        return Skip("the offered load exceeds the capacity: decode/saturated")
    target = tight.objective.seconds.get(f"the {latency} objective")
    value = case.value(tight.estimate, t)
    figure = tight.objective.figure

    def words(verdict: Verdict, left: Band) -> Words:
        ends = Band(*(max(0.0, target - side) for side in (left.high, left.mid, left.low)))
        return _words(case, tight, verdict, ends)._replace(help=help)

    doubt = _tail_doubt(case, latency, figure, target)
    return Margin(target, value, "s", tight.objective.seconds, words, doubt)


def _words(case: Case, tight: Tight, verdict: Verdict, value: Band) -> Words:
    """The estimate against its target, what binds it, its parts, and how far the load may go."""
    latency, figure = tight.estimate.partition("_")[0], tight.objective.figure
    target = tight.objective.seconds.get()
    account = account_of(case, _middle(tight))
    binding = f": bound by {account.binding}" if account is not None and account.binding else ""
    shown, name = show_seconds(value.mid), latency.upper()
    does = {"fail": "misses", "pass": "meets"}.get(verdict, "may miss")
    message = f"{figure} {name} of {shown} {does} {show_seconds(target)}{binding}"
    ends = f"{shown} ({show_seconds(value.low)} … {show_seconds(value.high)})"
    said = (f"{ends}{_parts(case, tight, account)}", _distance(case, tight), _use(case))
    return Words(message, "; ".join(filter(None, said)))


def _middle(tight: Tight) -> str:
    """The estimate that is taken apart: a tail is a median and a factor."""
    name = tight.estimate
    return name if tight.objective.figure == "mean" else "_".join(name.split("_")[:2])


def _parts(case: Case, tight: Tight, account: Account | None) -> str:
    """` = 14.0 weights + 6.1 KV cache`, for a tail its factor over the median and the median's."""
    if account is None or not account.parts:
        return ""
    total, _, added = sum_words(account.parts).partition(" = ")
    middle = _middle(tight)
    if middle == tight.estimate:
        return f" = {added}"
    terms = case.terms()
    factor = case.value(tight.estimate, terms) / case.value(middle, terms)
    return f" = {factor:.2f} x the median; {total} = {added}"


def _distance(case: Case, tight: Tight) -> str:
    """Up to which load the middle of the estimate meets the objective."""
    target = tight.objective.seconds.get()
    by = declared_by(case)
    load = reach(case, tight.estimate, target)
    shown = show_seconds(target)
    if load == 0:
        return f"no load meets {shown}, not even one request"
    if load == math.inf:
        return f"any load meets {shown}"
    return f"meets {shown} up to {load_words(load, by)}"


def _use(case: Case) -> str:
    """The decode batch and how much of the hardware it uses, as far as they are estimated."""
    terms = case.terms()
    shown = []
    for name, words in (
        ("decode_batch", "decode batch {:.1f}"),
        ("bandwidth_share", "bandwidth {:.0%} in use"),
        ("compute_share", "compute {:.0%}"),
    ):
        try:
            shown.append(words.format(case.value(name, terms)))
        except (Unknown, KeyError):
            continue
    return ", ".join(shown)
