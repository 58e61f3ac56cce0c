"""Latencies, throughput and utilization at the declared load, as shared estimates."""

from __future__ import annotations

from capcheck import Case, Estimate, Terms, estimate
from capcheck.physics.load import LoadState
from capcheck.workload import concurrency
from capcheck_serving.percentiles import SHARES, tail
from capcheck_serving.serving import is_burst, state, state_if

LOAD = "at the declared load"


def _loaded(case: Case, t: Terms) -> LoadState:
    """The state under the declared load. Near a rate's capacity, what that is moves it."""
    made = state(case)
    if concurrency(case.deployment) is not None:
        return made
    if made.saturation <= case.terms().read("serving.tail_load"):
        return made
    return state_if(case, t.read("serving.throughput_residual"))


def _own_prompt(case: Case) -> float:
    """No first token comes before half of what its own prompt is predicted to take."""
    return 0.5 * state(case).prefill_seconds


def _residual(case: Case, t: Terms, latency: str) -> float:
    """Measured over predicted: 1, and its band."""
    closed = concurrency(case.deployment) is not None
    kind = "saturated_" if closed and state(case).saturated else ""
    start = "burst" if is_burst(case) else "steady"
    return t.read(f"serving.{kind}{latency}_residual", start=start)


@estimate("prefill_seconds", unit="s", basis="one median prompt, idle")
def prefill_seconds(case: Case, t: Terms) -> float:
    """Seconds of one median prompt on an idle replica."""
    return state(case).prefill_seconds * t.read("serving.ttft_residual")


@estimate("ttft_seconds", unit="s", basis=f"median {LOAD}", least=_own_prompt)
def ttft_seconds(case: Case, t: Terms) -> float:
    """Median time to first token, seconds."""
    return _loaded(case, t).ttft_median_seconds * _residual(case, t, "ttft")


@estimate("ttft_seconds_mean", unit="s", basis=f"mean {LOAD}", least=_own_prompt)
def ttft_seconds_mean(case: Case, t: Terms) -> float:
    """Mean time to first token, seconds."""
    return _loaded(case, t).ttft_mean_seconds * _residual(case, t, "ttft")


@estimate("tpot_seconds", unit="s", basis=f"median {LOAD}", least=0.0)
def tpot_seconds(case: Case, t: Terms) -> float:
    """Median time per output token, seconds."""
    return _loaded(case, t).tpot_seconds * _residual(case, t, "tpot")


@estimate("tpot_seconds_mean", unit="s", basis=f"mean {LOAD}", least=0.0)
def tpot_seconds_mean(case: Case, t: Terms) -> float:
    """Mean time per output token, seconds."""
    return _loaded(case, t).tpot_seconds * _residual(case, t, "tpot")


TAILS = tuple(
    tail(latency, percentile, median.compute)
    for latency, median in (("ttft", ttft_seconds), ("tpot", tpot_seconds))
    for percentile in SHARES
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


@estimate("preemption_probability", unit="share", basis=f"of moments, {LOAD}, per rank")
def preemption_probability(case: Case, t: Terms) -> float:
    """Probability that running requests outgrow the KV cache; 0 where their output is reserved."""
    del t
    return state(case).preemption_probability


ALL: tuple[Estimate, ...] = (
    prefill_seconds, ttft_seconds, ttft_seconds_mean, tpot_seconds, tpot_seconds_mean, *TAILS,
    throughput, capacity, decode_batch, saturation, bandwidth_share, compute_share,
    interconnect_share, memory_share, preemption_probability,
)  # fmt: skip
