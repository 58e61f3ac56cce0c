"""Objectives on a latency against its estimates: which one is tightest, and how it is judged."""

from __future__ import annotations

from contextlib import suppress
from typing import NamedTuple

from capcheck.case import Case
from capcheck.findings import Margin, Skip, Words
from capcheck.measure import show_seconds
from capcheck.quantity import Band, Verdict
from capcheck.terms import Terms
from capcheck.values import Unknown
from capcheck.workload import Objective, concurrency, objectives, request_rate

ENOUGH_POINTS = 30  # of a tail term in its class, before a tail alone makes an error


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
    """The declared objective with the least room at mid. Raises Unknown."""
    found = objectives(case.deployment, latency)
    if not found:
        return Skip(f"no {latency} objective is declared")
    judged = [one for one in found if one.figure != "p999"]
    if not judged:
        return Skip("p999: no measurements stand behind it", found[0].seconds)
    terms = case.terms()

    def room(one: Objective) -> float:
        target = one.seconds.get(f"the {latency} objective")
        return case.value(estimate_of(latency, one.figure), terms) / target

    worst = max(judged, key=room)
    return Tight(worst, estimate_of(latency, worst.figure))


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
    cases = [term.cases for label, term in terms.reads.items() if f"_{figure}_factor" in label]
    if cases and min(cases) >= ENOUGH_POINTS:
        return ""
    return f"the {figure} is modelled on {min(cases, default=0)} measurements"


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
    figure, name = tight.objective.figure, latency.upper()

    def words(verdict: Verdict, left: Band) -> Words:
        does = "misses" if verdict == "fail" else "may miss"
        message = f"{figure} {name} of {show_seconds(value)} {does} {show_seconds(target)}"
        ends = " … ".join(show_seconds(max(0.0, target - side)) for side in (left.high, left.low))
        return Words(message, f"{show_seconds(value)} ({ends}); {_parts(case, latency)}", help)

    doubt = _tail_doubt(case, latency, figure, target)
    return Margin(target, value, "s", tight.objective.seconds, words, doubt)


def _parts(case: Case, latency: str) -> str:
    """What the estimate is made of, as far as the other estimates tell."""
    terms = case.terms()
    shown = []
    for name, words in (
        ("decode_batch", "decode batch {:.1f}"),
        ("bandwidth_share", "bandwidth {:.0%} in use"),
        ("compute_share", "compute {:.0%}"),
        ("interconnect_share", "interconnect {:.0%} of a step"),
    ):
        try:
            shown.append(words.format(case.value(name, terms)))
        except (Unknown, KeyError):
            continue
    if latency == "ttft":
        with suppress(Unknown, KeyError):
            shown.insert(0, f"prefill alone {show_seconds(case.value('prefill_seconds', terms))}")
    return ", ".join(shown)
