"""Latencies, throughput and utilization at the declared load, as shared estimates."""

from __future__ import annotations

from capcheck import Case, Estimate, Terms, estimate
from capcheck.physics.tails import combined, loaded
from capcheck_serving.serving import loop_facts, prompt_factor, state

LOAD = "at the declared load"
SHARES = {"p90": 0.9, "p95": 0.95, "p99": 0.99}


def _ttft_residual(case: Case, t: Terms) -> float:
    name = "saturated_ttft_residual" if state(case).saturated else "ttft_residual"
    return t.read(f"serving.{name}")


def _tpot_residual(case: Case, t: Terms) -> float:
    name = "saturated_tpot_residual" if state(case).saturated else "tpot_residual"
    return t.read(f"serving.{name}")


@estimate("prefill_seconds", unit="s", basis="one median prompt, idle")
def prefill_seconds(case: Case, t: Terms) -> float:
    """Seconds of one median prompt on an idle replica."""
    return state(case).prefill_seconds * t.read("serving.ttft_residual")


@estimate("ttft_seconds", unit="s", basis=f"median {LOAD}")
def ttft_seconds(case: Case, t: Terms) -> float:
    """Median time to first token, seconds."""
    return state(case).ttft_median_seconds * _ttft_residual(case, t)


@estimate("ttft_seconds_mean", unit="s", basis=f"mean {LOAD}")
def ttft_seconds_mean(case: Case, t: Terms) -> float:
    """Mean time to first token, seconds."""
    return state(case).ttft_mean_seconds * _ttft_residual(case, t)


@estimate("tpot_seconds", unit="s", basis=f"median {LOAD}")
def tpot_seconds(case: Case, t: Terms) -> float:
    """Median time per output token, seconds."""
    return state(case).tpot_seconds * _tpot_residual(case, t)


@estimate("tpot_seconds_mean", unit="s", basis=f"mean {LOAD}")
def tpot_seconds_mean(case: Case, t: Terms) -> float:
    """Mean time per output token, seconds."""
    return state(case).tpot_seconds * _tpot_residual(case, t)


def _tail(latency: str, percentile: str, median: Estimate) -> Estimate:
    """A percentile: the median times how lengths and load spread it."""

    def compute(case: Case, t: Terms) -> float:
        facts = loop_facts(case)
        if latency == "tpot":
            return median.compute(case, t) * t.read(f"serving.tpot_{percentile}_factor", **facts)
        # How declared prompts spread is computed; the factor of alike prompts carries the rest.
        facts.pop("lengths", None)
        factor = t.read(f"serving.ttft_{percentile}_factor", **facts)
        heavy = t.read(f"serving.ttft_{percentile}_full_factor")
        knee = t.read("serving.tail_knee")
        # A loop of so many requests has no rate that nears a capacity.
        load = 0.0 if facts.get("loop") == "closed" else state(case).saturation
        factor = loaded(load, factor, max(factor, heavy), knee)
        spread = prompt_factor(case, SHARES[percentile])
        return median.compute(case, t) * combined(factor, spread)

    return Estimate(f"{latency}_seconds_{percentile}", "s", compute, f"{percentile} {LOAD}")


TAILS = tuple(
    _tail(latency, percentile, median)
    for latency, median in (("ttft", ttft_seconds), ("tpot", tpot_seconds))
    for percentile in ("p90", "p95", "p99")
)


@estimate("output_tokens_per_second_replica", unit="tokens/s", basis=LOAD)
def throughput(case: Case, t: Terms) -> float:
    """Output tokens a second of one replica."""
    return state(case).output_tokens_per_second * t.read("serving.throughput_residual")


@estimate("requests_per_second_replica", unit="1/s", basis="most that one replica completes")
def capacity(case: Case, t: Terms) -> float:
    """Requests a second that one replica completes at most."""
    return state(case).most_requests_per_second * t.read("serving.throughput_residual")


@estimate("decode_batch", unit="requests", basis=f"{LOAD}, per data-parallel rank")
def decode_batch(case: Case, t: Terms) -> float:
    """Requests that decode at once on one data-parallel rank."""
    del t
    return state(case).decode_batch


@estimate("saturation", unit="1", basis="demand over what a replica admits or completes")
def saturation(case: Case, t: Terms) -> float:
    """Demand over what a replica admits or completes."""
    return state(case).saturation / t.read("serving.throughput_residual")


@estimate("bandwidth_share", unit="share", basis=f"of the peak, {LOAD}")
def bandwidth_share(case: Case, t: Terms) -> float:
    """Memory bandwidth in use over the peak."""
    del t
    return state(case).bandwidth_utilization


@estimate("compute_share", unit="share", basis=f"of the peak, {LOAD}")
def compute_share(case: Case, t: Terms) -> float:
    """FLOP/s in use over the peak."""
    del t
    return state(case).compute_utilization


@estimate("interconnect_share", unit="share", basis=f"of a decode step, {LOAD}")
def interconnect_share(case: Case, t: Terms) -> float:
    """Share of a decode step that communication takes."""
    del t
    parts = state(case).parts
    return parts.interconnect / parts.seconds if parts.seconds else 0.0


@estimate("memory_share", unit="share", basis="requests in flight over those the KV cache holds")
def memory_share(case: Case, t: Terms) -> float:
    """Demand over capacity where the KV cache is what limits."""
    del t
    made = state(case)
    return min(made.saturation, 1.0) if made.limited_by == "kv cache" else 0.0


ALL: tuple[Estimate, ...] = (
    prefill_seconds, ttft_seconds, ttft_seconds_mean, tpot_seconds, tpot_seconds_mean, *TAILS,
    throughput, capacity, decode_batch, saturation, bandwidth_share, compute_share,
    interconnect_share, memory_share,
)  # fmt: skip
