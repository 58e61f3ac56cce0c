"""How long the orchestrator waits for a server against how long it takes to load its weights.

The constants are rules of thumb: certain is only what fails with both at their favourable ends.
"""

from __future__ import annotations

from capcheck import Case, Fail, Pass, Terms, Unknown
from capcheck.measure import show_bytes

START, RATE = "options.start_seconds", "options.load_bytes_per_second"


def _weights(case: Case, t: Terms) -> float:
    """Bytes of weights that one node reads: its devices share the files. Raises Unknown."""
    plan = case.plan
    devices = plan.tensor.get("tensor parallel size") * plan.pipeline.get("pipeline parallel size")
    nodes = case.deployment.count("hardware", "nodes")
    return case.value("weights_bytes", t) * devices / (nodes.get("nodes") if nodes else 1)


def patience(case: Case) -> Fail | Pass | None:
    """A start-up budget that is too short; None when there is none, or the weights are unknown."""
    budget = case.deployment.seconds("runtime", "startup_seconds")
    if budget is None or not budget.known:
        return None
    seconds = budget.get()

    def takes(t: Terms) -> float:
        return t.read(START) + _weights(case, t) / t.read(RATE)

    try:
        t = case.terms()
        weights, _ = _weights(case, t), takes(t)
        band = case.spread_of(takes, "start-up seconds").band
        fastest = takes(t.moved({START: t.reads[START].low, RATE: t.reads[RATE].high}))
    except Unknown:
        return None
    if band.high <= seconds:
        return Pass()
    certain = fastest > seconds
    return Fail(
        budget,
        f"the server {'is' if certain else 'may be'} restarted while it loads: it has "
        f"{seconds:.0f} s",
        f"start and {show_bytes(weights)} of weights: {band.mid:.0f} s "
        f"({band.low:.0f} … {band.high:.0f}), {fastest:.0f} s at the fastest",
        (f"a startupProbe that allows {-(-band.high // 60) * 60:.0f} s",),
        risk=not certain,
    )
