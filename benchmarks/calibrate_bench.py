"""Fits the step's constants of hardware that no serving measurements cover, and prints them.

    python benchmarks/calibrate_bench.py [CASES.jsonl] [--write]

Each constant has a prior (bench_priors.jsonl); figures marked suspect are left out. Printed are
the constants with their spread and number of figures, and the errors of each class when one
accelerator, one model or one source is left out of the fit. --write puts the constants into the
load model's terms; those that no figure reads keep their lines.
"""

from __future__ import annotations

import argparse
import json
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from math import exp, sqrt
from pathlib import Path
from statistics import median
from typing import Any

from bench_cases import points
from bench_fit import LeftOut, Sample, cases_of, error, left_out, rows, samples
from least_squares import Key, Prior, bounded, fit, key_of, priors, spreads

import capcheck_serving
from capcheck.testing import Bench

HERE = Path(__file__).parent
CASES = HERE / "cases" / "bench-points.jsonl"
PRIORS = HERE / "bench_priors.jsonl"
BANDS = HERE / "bench_bands.jsonl"
TERMS = Path(capcheck_serving.__file__).parent / "step_terms.jsonl"
RESIDUALS = TERMS.with_name("residual_terms.jsonl")
FACTS = ("accelerator", "model", "source")
NINETY = 1.645  # standard deviations on each side of 90 %
DATED = "2026-11"
SOURCE = "public batch-1 decode, prefill and throughput figures, least squares with priors"
BAND_SOURCE = (
    "measured / predicted, 5 to 95 %, one accelerator, one model or one source left out of the "
    "fit at a time: public batch-1 decode, prefill and throughput figures"
)
ROUNDS = 12
FEW = 0.25  # ln by which one figure alone would widen a band on each side


def with_terms(text: str, records: Sequence[dict[str, Any]]) -> str:
    """The terms' file with some lines replaced, new ones behind the last of their name."""
    lines = [json.loads(line) for line in text.splitlines() if line.strip()]
    for record in records:
        key = key_of(record["name"], record["when"])
        at = [n for n, one in enumerate(lines) if key_of(one["name"], one["when"]) == key]
        if at:
            lines[at[0]] = record
            continue
        named = [n for n, one in enumerate(lines) if one["name"] == record["name"]]
        lines.insert(named[-1] + 1, record)
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def record_of(prior: Prior, value: float, spread: float, cases: int) -> dict[str, Any]:
    """A constant as a line of the terms."""
    ends = [bounded(prior.key, value * exp(side * NINETY * spread)) for side in (-1.0, 0.0, 1.0)]
    low, middle, high = (float(f"{end:.4g}") for end in ends)
    return {
        "name": prior.key[0], "when": json.loads(prior.key[1]), "kind": "value", "low": low,
        "mid": middle, "high": max(high, middle), "unit": prior.unit, "cases": cases,
        "dated": DATED, "source": f"{SOURCE}: {prior.source}",
    }  # fmt: skip


def band_record(line: dict[str, Any], errors: Sequence[LeftOut]) -> dict[str, Any]:
    """A residual: measured / predicted, 5 to 95 %, each group left out; few figures widen it.

    The line's own low and high are the least: these figures are of idle servers and old releases.
    """
    found = [
        -one.error
        for one in errors
        if one.sample.group in line["classes"] and one.sample.measure == line["measure"]
    ]
    cases = len(found) // len(FACTS)
    wider = FEW / sqrt(cases)
    low = min(exp(quantile(found, 0.05) - wider), line["low"])
    high = max(exp(quantile(found, 0.95) + wider), line["high"])
    return {
        "name": line["name"], "when": line["when"], "kind": "value", "low": round(low, 2),
        "mid": 1.0, "high": round(high, 2), "unit": "measured / predicted", "cases": cases,
        "dated": DATED,
        "source": f"{BAND_SOURCE}: {', '.join(line['classes'])}",
    }  # fmt: skip


def quantile(sizes: Sequence[float], share: float) -> float:
    """The value that a share of the sorted sizes does not exceed."""
    return sorted(sizes)[min(len(sizes) - 1, int(share * len(sizes)))]


def class_lines(errors: Sequence[LeftOut]) -> Iterator[str]:
    """Errors by what was measured and by class; measured / predicted, 5 to 95 %."""
    groups: dict[tuple[str, str], list[float]] = defaultdict(list)
    for one in errors:
        first = one.sample.measure
        if first == "tpot" and one.sample.point.requests <= 1:
            groups["tpot, batch 1", " all"].append(one.error)
            groups["tpot, batch 1", one.sample.group].append(one.error)
        groups[first, " all"].append(one.error)
        groups[first, one.sample.group].append(one.error)
    for (measure, name), found in sorted(groups.items()):
        sizes = [abs(exp(value) - 1.0) for value in found]
        near = sum(size <= 0.2 for size in sizes) / len(sizes)
        low, high = (exp(-quantile(found, share)) for share in (0.95, 0.05))
        yield (
            f"{measure:13} {name:18} {len(found):4} median {median(sizes):6.1%} "
            f"90 % {quantile(sizes, 0.9):7.1%} in 20 % {near:4.0%} "
            f"bias {exp(median(found)) - 1.0:+6.1%}  {low:.2f} .. {high:.2f}"
        )


def fitted(found: Sequence[Sample], wanted: Sequence[Prior], most: int) -> dict[Key, float]:
    """The constants on all figures, and what is left of the errors, printed."""
    start = {one.key: one.middle for one in wanted}
    values = fit(lambda at, index: rows(found, at, index), wanted, start, most)
    errors = [LeftOut(one, error(one, values)) for one in found]
    print("\nfitted on all\n", *class_lines(errors), sep="\n")
    return values


def constants(
    found: Sequence[Sample],
    wanted: Sequence[Prior],
    values: Mapping[Key, float],
    fits: Sequence[Mapping[Key, float]],
) -> list[dict[str, Any]]:
    """The constants as lines of the terms, printed."""
    index = {one.key: at for at, one in enumerate(wanted)}
    spread = spreads(fits, values, wanted, rows(found, values, index))
    counts = cases_of(found)
    print("\nconstants: prior, fitted, 90 %, figures")
    made = []
    for one in wanted:
        record = record_of(one, values[one.key], spread[one.key], counts[one.key])
        made.append(record)
        print(
            f"{one.key[0][8:]:22} {one.key[1]:96} {one.middle:9.3g} {record['mid']:9.3g} "
            f"{record['low']:9.3g} .. {record['high']:9.3g} {record['cases']:4}"
        )
    return made


def bands(unseen: Sequence[LeftOut]) -> list[dict[str, Any]]:
    """The residuals as lines of the terms, printed."""
    lines = [json.loads(line) for line in BANDS.read_text(encoding="utf-8").splitlines()]
    made = [band_record(line, unseen) for line in lines]
    print("\nbands: measured / predicted")
    for one in made:
        print(
            f"{one['name'][8:]:20} {json.dumps(one['when']):70} "
            f"{one['low']:.2f} .. {one['high']:.2f} {one['cases']:4}"
        )
    return made


def put(path: Path, records: Sequence[dict[str, Any]]) -> None:
    """Lines that figures stand behind, into a terms' file."""
    chosen = [one for one in records if one["cases"]]
    path.write_text(with_terms(path.read_text(encoding="utf-8"), chosen), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=Path, nargs="?", default=CASES)
    parser.add_argument("--write", action="store_true", help="put the constants into the terms")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="steps of the fit at most")
    arguments = parser.parse_args()
    wanted = priors(PRIORS)
    clean = [one for one in points(arguments.cases) if not one.suspect]
    found = samples(clean, wanted, Bench())
    values = fitted(found, wanted, arguments.rounds)
    fits: list[dict[Key, float]] = []
    unseen: list[LeftOut] = []
    for fact in FACTS:
        errors, others = left_out(found, wanted, values, fact)
        fits += others
        unseen += errors
        print(f"\none {fact} left out at a time\n", *class_lines(errors), sep="\n")
    records, residuals = constants(found, wanted, values, fits), bands(unseen)
    if arguments.write:
        put(TERMS, records)
        put(RESIDUALS, residuals)


if __name__ == "__main__":
    main()
