"""Refits vLLM's fitted constants of memory on start-ups that were logged.

    python benchmarks/calibrate.py CASES.jsonl [CASES.jsonl ...] [--write]

For each constant every case implies one value: what it would have to be for the prediction to
meet the log. Of the values under one condition the median becomes the middle; the spread is pooled
over all conditions of the same kind, since few of them have cases enough for one of their own.
The closing figures leave one source out at a time: the middles are refitted without it, and it is
predicted. `--write` changes the terms file.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from memory_score import Scored, quantile
from startup_cases import rows, source_of, spec_of

from capcheck.case import Case
from capcheck.engine import OTHER
from capcheck.quantity import GIB, Band
from capcheck.terms import Term
from capcheck.testing import Bench
from capcheck.values import Unknown

TERMS = Path(str(files("capcheck_vllm"))) / "terms.jsonl"
WITH_GRAPHS = (0, 26, 1)  # from here on the logged peak holds the graphs' estimate
FEWEST = 2  # cases that may move a middle
LOW, HIGH = 0.05, 0.95
Row = Mapping[str, Any]


class Implied(NamedTuple):
    """What one case says about one constant."""

    term: Term
    value: float
    source: str
    id: str


Implies = Callable[[Case, Row], float | None]


def _lines(case: Case, *names: str) -> float:
    return sum(line.bytes for line in case.ledger(case.terms()).lines if line.name in names)


def _measured(row: Row, key: str) -> float | None:
    value = (row["measured"] or {}).get(key)
    return None if value is None else float(value) * GIB


def non_torch(case: Case, row: Row) -> float | None:
    """What the logged pool leaves for it; what the log tells of the other lines counts as told."""
    pool, ledger = _measured(row, "kv_available_gib"), case.ledger(case.terms())
    policy = case.plan.memory.get("gpu_memory_utilization")
    if pool is None or policy.kind != "fraction of total":
        return None
    told = {"load": _measured(row, "weights_gib")}
    if case.release.version < WITH_GRAPHS:
        told["profile"] = _measured(row, "activation_peak_gib")
    graphs = (row.get("measured_extra") or {}).get("cuda_graph_estimated_gib")
    told["capture"] = float(graphs) * GIB if graphs is not None else None
    rest = 0.0
    for phase in ("load", "profile", "capture"):
        lines = [one for one in ledger.lines if one.phase == phase and one.inside_budget]
        own = sum(one.bytes for one in lines if one.name != OTHER)
        stated = told.get(phase)
        rest += stated if stated is not None and lines else own
    total = _measured(row, "total_gpu_gib") or ledger.visible
    return total * policy.amount - rest - pool


def sampler(case: Case, row: Row) -> float | None:
    """Bytes per logit, where sampling makes the peak."""
    return _of_peak(case, row, "sampler", "vllm.sampler_bytes_per_logit")


def forward(case: Case, row: Row) -> float | None:
    """The factor on the forward pass, where it makes the peak."""
    return _of_peak(case, row, "activations", "vllm.forward_factor")


def _of_peak(case: Case, row: Row, note: str, term: str) -> float | None:
    peak, t = _measured(row, "activation_peak_gib"), case.terms()
    if peak is None or case.release.version >= WITH_GRAPHS:
        return None
    line = next((one for one in case.ledger(t).lines if one.name == "activation"), None)
    if line is None or not line.note.startswith(note) or not line.bytes:
        return None
    return t.read(term) * peak / line.bytes


def collectives(case: Case, row: Row) -> float | None:
    """Bytes per graph that several devices add to the logged estimate."""
    logged = (row.get("measured_extra") or {}).get("cuda_graph_estimated_gib")
    t = case.terms()
    line = next((one for one in case.ledger(t).lines if one.phase == "capture"), None)
    if logged is None or line is None or not line.inside_budget or case.plan.tensor.get() == 1:
        return None
    count = float(line.note.split()[0])
    mid = t.read("vllm.graph_bytes_of_collectives")
    own = line.bytes
    return mid + (float(logged) * GIB - own) / count


def per_layer(case: Case, row: Row) -> float | None:
    """Bytes per layer and graph of the logged estimate on one device."""
    logged = (row.get("measured_extra") or {}).get("cuda_graph_estimated_gib")
    t = case.terms()
    line = next((one for one in case.ledger(t).lines if one.phase == "capture"), None)
    if logged is None or line is None or case.plan.tensor.get() > 1:
        return None
    layers = len(case.model.get().architecture.layers) * float(line.note.split()[0])
    return (float(logged) * GIB - t.read("vllm.graph_base_bytes")) / layers


FITS: Mapping[str, Implies] = {
    "vllm.non_torch_bytes": non_torch,
    "vllm.sampler_bytes_per_logit": sampler,
    "vllm.forward_factor": forward,
    "vllm.graph_bytes_of_collectives": collectives,
    "vllm.graph_bytes_per_layer": per_layer,
}


def implied(paths: Sequence[Path]) -> dict[str, list[Implied]]:
    """Every value that a case implies, by constant."""
    bench, found = Bench(), defaultdict(list)
    for row in rows(paths):
        if row["engine"] != "vllm" or not row.get("measured"):
            continue
        cases = bench.cases(spec_of(row), f"{row['id']}.yaml")
        if len(cases) != 1:
            continue  # the release or the part is not known
        case = cases[0]
        for name, implies in FITS.items():
            try:
                value, t = implies(case, row), case.terms()
                t.read(name)
            except Unknown:
                continue
            if value is not None:
                found[name].append(Implied(t.reads[name], value, source_of(row), row["id"]))
    return found


def by_condition(found: Sequence[Implied]) -> dict[tuple[Any, ...], list[Implied]]:
    """The values under each condition."""
    groups: dict[tuple[Any, ...], list[Implied]] = defaultdict(list)
    for one in found:
        groups[_key(one.term.when)].append(one)
    return groups


def _key(when: Any) -> tuple[Any, ...]:
    return tuple((name, json.dumps(value)) for name, value in when)


def middle(values: Sequence[Implied]) -> float:
    """The median over sources, each with its own median: one loud source counts once."""
    sources: dict[str, list[float]] = defaultdict(list)
    for one in values:
        sources[one.source].append(one.value)
    return median(median(own) for own in sources.values())


def left_out(values: Sequence[Implied]) -> list[float]:
    """Each value less the middle of its condition's other sources; nothing where there is none."""
    gaps = []
    for one in values:
        others = [other for other in values if other.source != one.source]
        if others:
            gaps.append(one.value - middle(others))
    return gaps


def show(name: str, found: Sequence[Implied]) -> dict[tuple[Any, ...], dict[str, float]]:
    """Prints one constant's conditions; gives what they should be."""
    scale, unit = (GIB, "GiB") if name.endswith("non_torch_bytes") else (1.0, found[0].term.unit)
    groups = by_condition(found)
    gaps = [
        one.value - middle(values)
        for values in groups.values()
        if len(values) >= FEWEST
        for one in values
    ]
    below, above = (quantile(gaps, LOW), quantile(gaps, HIGH)) if gaps else (0.0, 0.0)
    print(f"\n{name} [{unit}], pooled spread {below / scale:+.2f} {above / scale:+.2f}")
    fitted = {}
    for key, values in sorted(groups.items()):
        term, mid = values[0].term, middle(values)
        own = [one.value for one in values]
        print(
            f"  {json.dumps(dict(term.when)):75} n {len(values):3} of "
            f"{len({one.source for one in values}):2} sources: {min(own) / scale:.2f} … "
            f"{mid / scale:.2f} … {max(own) / scale:.2f}; now {term.low / scale:.2f} "
            f"{term.mid / scale:.2f} {term.high / scale:.2f}"
        )
        if len(values) >= FEWEST:
            fitted[key] = {"mid": mid, "low": mid + below, "high": mid + above,
                           "cases": len(values)}  # fmt: skip
    gaps = [gap for values in groups.values() for gap in left_out(values)]
    if gaps:
        sizes = [abs(gap) / scale for gap in gaps]
        print(
            f"  leaving one source out: n {len(gaps)}, median {median(sizes):.2f}, "
            f"90 % {quantile(sizes, 0.9):.2f}"
        )
    return fitted


def pools_left_out(found: Sequence[Implied], cases: Sequence[Scored]) -> list[tuple[float, bool]]:
    """(error of the KV pool in GiB, in its band) with each case's source left out of the fit.

    The constant is what the other sources of its condition say, or where there are none what all
    others say; everything else stays.
    """
    pools = {case.id: case.compared["KV pool"] for case in cases if "KV pool" in case.compared}
    errors = []
    for one in found:
        pool = pools.get(one.id)
        if pool is None:
            continue
        others = [other for other in found if other.source != one.source]
        alike = [other for other in others if other.term.when == one.term.when]
        moved = one.term.mid - middle(alike or others)
        low, mid, high = (end + moved for end in pool.band)
        shifted = pool._replace(band=Band(low, mid, high))
        errors.append((shifted.error / GIB, shifted.inside))
    return errors


def write(name: str, fitted: Mapping[tuple[Any, ...], Mapping[str, float]]) -> None:
    """The fitted middles and spreads into the terms file."""
    lines = []
    for line in TERMS.read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        when = tuple(sorted(record["when"].items()))
        if record["name"] == name and _key(when) in fitted:
            record |= fitted[_key(when)]
        lines.append(json.dumps(record, ensure_ascii=False))
    TERMS.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--write", metavar="TERM", nargs="*", help="constants to write back")
    parser.add_argument("--verbose", action="store_true", help="each case's value")
    arguments = parser.parse_args()
    for name, found in implied(arguments.cases).items():
        fitted = show(name, found)
        if arguments.verbose:
            for one in found:
                print(f"    {one.id} {one.value:.4g} {dict(one.term.when)}")
        if name in (arguments.write or ()):
            write(name, fitted)


if __name__ == "__main__":
    main()
