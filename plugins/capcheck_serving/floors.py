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


def _of_devices(case: Case, floor: float, each: float | None) -> float:
    """A floor over what all devices of a replica have. Raises Unknown when nobody knows that."""
    if not each:
        place = case.accelerator.place
        raise Unknown(unknown(place, "the accelerator's figure is not known"))
    return floor / (each * case.plan.devices)


@estimate("memory_floor_share", unit="share", basis="the planner's total over all devices")
def memory_floor_share(case: Case, t: Terms) -> float:
    """The generic estimate against the memory of the named devices."""
    return _of_devices(case, case.value("generic_total_bytes", t), case.visible_bytes(t))


@estimate("bandwidth_floor_share", unit="share", basis="the floor over all devices")
def bandwidth_floor_share(case: Case, t: Terms) -> float:
    """The bandwidth floor against the peak of the named devices."""
    part = case.accelerator.get("accelerator")
    return _of_devices(case, case.value("bandwidth_floor", t), part.bandwidth)


@estimate("compute_floor_share", unit="share", basis="the floor over all devices, 16 bit")
def compute_floor_share(case: Case, t: Terms) -> float:
    """The compute floor against the 16-bit peak of the named devices."""
    flops = case.accelerator.get("accelerator").flops
    peak = flops.get("bf16") or flops.get("fp16")
    return _of_devices(case, case.value("compute_floor", t), peak)


@estimate("interconnect_floor_share", unit="share", basis="the floor over one device's link")
def interconnect_floor_share(case: Case, t: Terms) -> float:
    """The link floor against one device's fast link, else PCIe."""
    part = case.accelerator.get("accelerator")
    rate = part.link.bytes_per_second or part.pcie_bytes_per_second
    return _of_devices(case, case.value("link_floor", t) * case.plan.devices, rate)


ALL: tuple[Estimate, ...] = (
    bandwidth_floor,
    compute_floor,
    link_floor,
    memory_floor_share,
    bandwidth_floor_share,
    compute_floor_share,
    interconnect_floor_share,
)
