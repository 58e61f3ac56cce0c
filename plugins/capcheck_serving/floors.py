"""Hardware floors that objectives set, one constraint after the other: memory, bandwidth,
compute, interconnect. Of the whole replica."""

from __future__ import annotations

from capcheck import Case, Estimate, Terms, Unknown, estimate
from capcheck.physics.roofline import bandwidth_floor as least_bandwidth
from capcheck.physics.roofline import flops_floor as least_flops
from capcheck.values import unknown
from capcheck.workload import lengths, objectives

UTILIZATION = 0.6  # of the peak FLOP/s while prefilling: sizing guides say 0.5 to 0.7
BYTES = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0}
NO_ENGINE_NEEDED = "of the whole replica"


def _target(case: Case, latency: str) -> float:
    found = objectives(case.deployment, latency)
    if not found:
        place = case.deployment.place_for("objectives")
        raise Unknown(unknown(place, f"no {latency} objective is declared"))
    return found[0].seconds.get(f"the {latency} objective")


def _active_bytes(case: Case) -> float:
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    width = BYTES.get(case.plan.weight_dtype.get("dtype"), 2.0)
    return model.architecture.active_parameters * (scheme.bits / 8 if scheme else width)


def _prompt(case: Case) -> float:
    figures = lengths(case.deployment, "prompt_tokens")
    if figures is None:
        place = case.deployment.place_for("workload")
        raise Unknown(unknown(place, "no prompt_tokens are declared"))
    order = ("constant", "p50", "mean", "p90", "p95", "p99", "max")
    return next(figures[key] for key in order if key in figures)


@estimate("bandwidth_floor", unit="B/s", basis=f"the tpot objective, {NO_ENGINE_NEEDED}")
def bandwidth_floor(case: Case, t: Terms) -> float:
    """Active weights read once for each token."""
    del t
    return least_bandwidth(_active_bytes(case), _target(case, "tpot"))


@estimate("compute_floor", unit="FLOP/s", basis=f"the ttft objective, {NO_ENGINE_NEEDED}")
def compute_floor(case: Case, t: Terms) -> float:
    """Two FLOP for each active parameter and prompt token, at 0.6 of the peak."""
    del t
    active = case.model.get("model").architecture.active_parameters
    return least_flops(active, _prompt(case), _target(case, "ttft"), UTILIZATION)


@estimate("link_floor", unit="B/s", basis="the ttft objective, one way for each device")
def link_floor(case: Case, t: Terms) -> float:
    """Two all-reduces a layer over the prompt's hidden states; 0 on one device."""
    del t
    tensor = case.plan.tensor.get("tensor_parallel_size")
    if tensor < 2:
        return 0.0
    model = case.model.get("model").architecture
    hidden = 2.0 * len(model.layers) * _prompt(case) * model.hidden * 2.0
    return hidden * 2.0 * (tensor - 1) / tensor / _target(case, "ttft")


ALL: tuple[Estimate, ...] = (bandwidth_floor, compute_floor, link_floor)
