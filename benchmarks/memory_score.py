"""How far predictions of start-up memory are from what engines logged, by class of case."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from statistics import median, median_low
from typing import Any, NamedTuple

from capcheck.case import Case
from capcheck.quantity import GIB, MIB, Band
from capcheck.values import Unknown

RULES = ("weights/fit", "weights/load-peak", "kv-cache/one-request", "kv-cache/startup-peak")
ORDER = ("skip", "pass", "at risk", "fail")
PEAK_WITH_GRAPHS = (0, 26, 1)
# Asks for a measurement, or for an objective: it stops no engine.
NOT_OF_START = frozenset({"quantization/evidence", "workload/tail-objective"})

# A device's figures in a case, and the case's own name for each.
DEVICE_KEYS = {
    "model_mib": "model_buffer_mib", "kv_mib": "kv_mib", "compute_mib": "compute_buffer_mib",
}  # fmt: skip


class Quantity(NamedTuple):
    """What is compared: an estimate, where the case has it, and in what the error is told."""

    name: str
    estimate: str
    keys: tuple[tuple[str, float], ...]  # of `measured`, with their unit in SI
    absolute: bool = False  # error in GiB, else relative


QUANTITIES = (
    Quantity("weights", "weights_bytes", (("weights_gib", GIB), ("model_buffer_mib", MIB))),
    Quantity(
        "KV pool",
        "kv_cache_bytes",
        (("kv_available_gib", GIB), ("kv_gib", GIB), ("kv_mib", MIB)),
        absolute=True,
    ),
    Quantity("KV tokens", "kv_cache_tokens", (("kv_tokens", 1.0),)),
    Quantity("concurrency", "max_concurrency", (("max_concurrency", 1.0),)),
    Quantity(
        "activation",
        "activation_bytes",
        (("activation_peak_gib", GIB), ("compute_buffer_mib", MIB)),
        absolute=True,
    ),
)


class Compared(NamedTuple):
    """One prediction beside what was measured, both in SI units."""

    band: Band
    truth: float
    budget: float | None  # of the device, for the KV pool's width

    @property
    def error(self) -> float:
        """Predicted less measured."""
        return self.band.mid - self.truth

    @property
    def relative(self) -> float:
        """The error as a share of what was measured."""
        return self.error / self.truth if self.truth else math.inf

    @property
    def inside(self) -> bool:
        """Whether the band holds what was measured; logs round to hundredths."""
        return self.band.low <= self.truth * 1.001 and self.band.high >= self.truth * 0.999


class Scored(NamedTuple):
    """One case: its classes, verdicts and compared quantities."""

    id: str
    row: Mapping[str, Any]
    classes: tuple[str, ...]
    verdicts: Mapping[str, str]
    errors: tuple[str, ...]  # rules that give an error and speak of starting
    warnings: tuple[str, ...]
    compared: Mapping[str, Compared]
    reason: str  # why kv-cache/one-request was not judged

    @property
    def worked(self) -> bool:
        """Whether the engine came up."""
        stated = self.row.get("outcome")
        return self.row.get("measured") is not None and stated in (None, "ok")

    @property
    def memory(self) -> str:
        """The worst verdict of the memory rules."""
        return max((self.verdicts.get(rule, "skip") for rule in RULES), key=ORDER.index)

    @property
    def one_request(self) -> str:
        """The verdict of kv-cache/one-request; settled where weights or start-up fail before."""
        stated = self.verdicts.get("kv-cache/one-request", "skip")
        return self.memory if stated == "skip" and self.memory == "fail" else stated


def band_over(cases: Sequence[Case], name: str) -> Band | None:
    """The widest band over the alternatives, around their median; None when one is unknown."""
    try:
        bands = [case.estimate(name) for case in cases]
    except Unknown:
        return None
    middle = median_low(band.mid for band in bands)
    return Band(min(b.low for b in bands), middle, max(b.high for b in bands))


def _budget(case: Case) -> float | None:
    try:
        return case.ledger(case.terms()).budget
    except Unknown:
        return None


def _predicted(cases: Sequence[Case], quantity: Quantity) -> Band | None:
    """The estimate as the release logs it: from 0.26.1 on vLLM's peak holds the graphs, too."""
    band = band_over(cases, quantity.estimate)
    release = cases[0].release.version
    if band is None or quantity.name != "activation" or cases[0].engine.name != "vllm":
        return band
    graphs = band_over(cases, "cuda_graph_bytes") if release >= PEAK_WITH_GRAPHS else None
    if graphs is None:
        return band
    return Band(*(own + more for own, more in zip(band, graphs, strict=True)))


def _measured(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """What was measured on the fullest device: some logs give each, and the case their sum."""
    measured: Mapping[str, Any] = row.get("measured") or {}
    more: Mapping[str, Any] = row.get("measured_extra") or {}
    each: Mapping[str, Any] = more.get("per_device", {})
    devices = [
        {own: device[key] for key, own in DEVICE_KEYS.items() if key in device}
        for device in each.values()
    ]
    if len(devices) < 2:
        return measured
    fullest = max(devices, key=lambda device: sum(device.values()))
    return {**measured, **fullest}


def _compared(cases: Sequence[Case], row: Mapping[str, Any]) -> Iterator[tuple[str, Compared]]:
    measured = _measured(row)
    for quantity in QUANTITIES:
        found = [(measured[key], unit) for key, unit in quantity.keys if measured.get(key)]
        band = _predicted(cases, quantity) if found and cases else None
        if band is not None:
            value, unit = found[0]
            yield quantity.name, Compared(band, float(value) * unit, _budget(cases[0]))


def _severity(one: Any) -> str:
    if one.result.verdict == "fail":
        return str(one.result.severity or one.result.rule.severity)
    return "warning" if one.result.verdict == "at risk" else ""


def _told(outcome: Any, severity: str) -> tuple[str, ...]:
    return tuple(
        sorted(
            rule
            for rule, ones in outcome.judged.items()
            if rule not in NOT_OF_START and any(_severity(one) == severity for one in ones)
        )
    )


def score(row: Mapping[str, Any], outcome: Any) -> Scored:
    """One case against its outcome."""
    cases = outcome.resolved.cases
    verdicts = {
        rule: max((one.result.verdict for one in ones), key=ORDER.index)
        for rule, ones in outcome.judged.items()
    }
    found = outcome.judged.get("kv-cache/one-request")
    skipped = verdicts.get("kv-cache/one-request", "skip") == "skip"
    reason = (found[0].result.reason if found else "no result") if skipped else ""
    return Scored(
        row["id"], row, tuple(_classes(row, cases)), verdicts, _told(outcome, "error"),
        _told(outcome, "warning"), dict(_compared(cases, row)), reason,
    )  # fmt: skip


def _classes(row: Mapping[str, Any], cases: Sequence[Case]) -> Iterator[str]:
    yield "all"
    if not cases:
        return
    case = cases[0]
    part = case.accelerator.either(None)
    if len({one.accelerator.get().id for one in cases if one.accelerator.known}) > 1:
        part = None
    model = case.model.either(None)
    known = all(one.release.known and not one.release.foreign for one in cases)
    if row["engine"] == "vllm":
        discrete = part is not None and part.vendor == "nvidia" and part.memory_class != "unified"
        if known and discrete and model is not None:
            yield "core"
        yield f"release {_era(case.release.version) if known else 'unknown'}"
    if part is not None:
        yield f"memory {_memory(part)}"
    if model is not None and "weights_gib" in (row.get("measured") or {}):
        scheme = model.scheme.either(None)
        seen = scheme.seen if scheme is not None else "config"
        yield "official checkpoint" if seen in ("config", "written") else "third-party packing"
        if model.architecture.vision is not None:
            yield "with image encoder"
    tensor = case.plan.tensor.either(None)
    yield f"tensor parallel {tensor if tensor in (1, 2, 4, 8) else 'other'}"


def _era(version: tuple[int, ...]) -> str:
    for end, name in (
        ((0, 8), "0.5 to 0.7"), ((0, 11), "0.8 to 0.10"), ((0, 17), "0.11 to 0.16"),
        ((0, 20), "0.17 to 0.19"), ((0, 26, 1), "0.20 to 0.26"),
    ):  # fmt: skip
        if version < end:
            return name
    return "0.26.1 and later"


def _memory(part: Any) -> str:
    if part.memory_class == "unified":
        return "unified"
    if part.vendor != "nvidia":
        return str(part.vendor)
    size = part.visible_bytes or part.nominal_bytes
    if part.memory_class == "hbm":
        return "HBM of 70 GiB and more" if size >= 70 * GIB else "HBM below 70 GiB"
    return "GDDR"


def quantile(values: Iterable[float], share: float) -> float:
    """The value that so large a share does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else math.nan


class Line(NamedTuple):
    """One quantity in one class."""

    name: str
    quantity: str
    cases: int
    median: float
    ninety: float
    bias: float
    coverage: float
    width: float  # median; of the budget for the KV pool, else of the value
    unit: str


def line_of(name: str, quantity: Quantity, found: Sequence[Compared]) -> Line:
    """Median, 90th percentile, bias, coverage and width of one class."""
    pick: Callable[[Compared], float] = (
        (lambda one: one.error / GIB) if quantity.absolute else (lambda one: one.relative * 100)
    )
    widths = [
        (one.band.high - one.band.low)
        / ((one.budget if quantity.absolute and one.budget else one.truth) or 1.0)
        for one in found
    ]
    return Line(
        name, quantity.name, len(found), median(abs(pick(one)) for one in found),
        quantile((abs(pick(one)) for one in found), 0.9), median(pick(one) for one in found),
        sum(one.inside for one in found) / len(found), median(widths),
        "GiB" if quantity.absolute else "%",
    )  # fmt: skip
