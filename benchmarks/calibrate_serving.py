"""Fits the constants of step and load on serving measurements, and prints them.

    python benchmarks/calibrate_serving.py [SERVING.csv] [--write]

Each constant has a prior (serving_priors.jsonl), most from tables of single kernels. Rows whose
columns do not tell what was measured are left out; throughput at full load of the same parts is
fitted along. Printed are the constants with their spread, and the errors of five folds by
configuration and of one model or one accelerator left out at a time. --write puts the constants
into the load model's terms.
"""

from __future__ import annotations

import argparse
import json
import zlib
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from math import exp
from pathlib import Path

from calibrate_bench import record_of, with_terms
from least_squares import Key, Prior, Row, fit, priors, spreads
from memory_score import quantile
from serving_cases import Row as Measurement
from serving_cases import is_clean
from serving_cases import rows as measurements
from serving_fit import Sample, Unseen, errors, full, left_out, linear, predict, served
from serving_score import figures

import capcheck_serving
from capcheck.testing import Bench

HERE = Path(__file__).parent
CASES = HERE / "cases" / "serving.csv"
POINTS = HERE / "cases" / "bench-points.jsonl"
PRIORS = HERE / "serving_priors.jsonl"
FOLDS = 5
ROUNDS = 8
DATED = "2026-12"
SOURCE = (
    "serving measurements of aiconfigurator-core 0.12.0 (Apache-2.0) and public throughput at "
    "full load, least squares; prior"
)
MODELS = ("DeepSeek", "Llama", "MiniMax", "Qwen3-32B", "Qwen3.5", "gpt-oss")


def model_of(row: Measurement) -> str:
    """The model, whatever its precision and revision."""
    return next((name for name in MODELS if name in row.model), row.model)


def fold_of(row: Measurement) -> int:
    """One of five, the same for all rows of a configuration."""
    return zlib.crc32(repr(row.configuration).encode()) % FOLDS


GROUPS: Mapping[str, Callable[[Measurement], Hashable]] = {
    "five folds by configuration": fold_of,
    "one model left out": model_of,
    "one accelerator left out": lambda row: row.accelerator,
}


def _line(name: str, pairs: Sequence[tuple[float, float]]) -> str:
    tpot, ttft = zip(*pairs, strict=True)
    shown = [" ".join(f"{cell:>7}" for cell in figures(errors)) for errors in (tpot, ttft)]
    return f"  {name[:34]:34} {len(pairs):5}  TPOT {shown[0]}   TTFT {shown[1]}"


def _signed(one: Unseen) -> tuple[float, float]:
    row = one.sample.row
    assert row is not None
    return one.tpot / row.tpot - 1.0, one.ttft / row.ttft - 1.0


def report(unseen: Sequence[Unseen]) -> Iterator[str]:
    """All, by kind of model, and by model."""
    yield _line("all", [_signed(one) for one in unseen])
    for name, moe in (("dense", False), ("experts", True)):
        yield _line(name, [_signed(one) for one in unseen if one.sample.moe == moe])
    rows = [(one, one.sample.row) for one in unseen if one.sample.row is not None]
    for model in MODELS:
        own = [_signed(one) for one, row in rows if model_of(row) == model]
        if own:
            yield _line(model, own)
    below = [_signed(one) for one in unseen if not one.sample.saturated]
    yield _line("below saturation", below)


def bands(unseen: Sequence[Unseen]) -> Iterator[str]:
    """Measured over predicted, 5 to 95 %: what the residual terms say."""
    groups: dict[str, list[Unseen]] = {"dense": [], "experts": [], "saturated": []}
    for one in unseen:
        kind = "experts" if one.sample.moe else "dense"
        groups["saturated" if one.sample.saturated else kind].append(one)
    for one in unseen:
        if one.sample.row is not None and not one.sample.saturated:
            groups.setdefault(one.sample.row.engine, []).append(one)
    for name, own in groups.items():
        shown = []
        for at in (0, 1):
            ratios = [1.0 / (1.0 + _signed(one)[at]) for one in own]
            shown.append(f"{quantile(ratios, 0.05):.2f} … {quantile(ratios, 0.95):.2f}")
        yield f"  {name:14} {len(own):5}  TPOT {shown[0]}   TTFT {shown[1]}"


def seen(found: Sequence[Sample], values: Mapping[Key, float]) -> Iterator[str]:
    """The fit on its own rows."""
    own = [Unseen(one, *predict(one, values)) for one in found if one.row is not None]
    yield "fitted on all"
    yield from report(own)
    rates = [exp(error) - 1.0 for one in found if one.row is None
             for error in errors(one, predict(one, values))]  # fmt: skip
    if rates:
        shown = " ".join(f"{cell:>7}" for cell in figures(rates))
        yield f"  {'throughput at full load':34} {len(rates):5}       {shown}"


def constants(
    found: Sequence[Sample],
    wanted: Sequence[Prior],
    values: Mapping[Key, float],
    models: Sequence[Row],
) -> list[dict[str, object]]:
    """The constants as lines of the terms, printed."""
    spread = spreads([], values, wanted, models)
    made = []
    print("\nconstants: prior, fitted, 90 %, rows")
    for one in wanted:
        cases = sum(1 for sample in found if one.key in sample.labels)
        record = record_of(one, values[one.key], spread[one.key], cases)
        record |= {"dated": DATED, "source": f"{SOURCE}: {one.source}"}
        made.append(record)
        print(
            f"{one.key[0][8:]:24} {one.key[1]:100} {one.middle:9.3g} {record['mid']:9.3g} "
            f"{record['low']:9.3g} .. {record['high']:9.3g} {cases:5}"
        )
    return made


def write(records: Sequence[dict[str, object]]) -> None:
    """Each constant into the file that has its name."""
    for part in ("step", "load"):
        path = Path(capcheck_serving.__file__).with_name(f"{part}_terms.jsonl")
        text = path.read_text(encoding="utf-8")
        names = {json.loads(line)["name"] for line in text.splitlines()}
        own = [one for one in records if one["name"] in names]
        path.write_text(with_terms(text, own), encoding="utf-8")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", type=Path, nargs="?", default=CASES)
    parser.add_argument("--write", action="store_true", help="put the constants into the terms")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="steps of the fit at most")
    arguments = parser.parse_args()
    wanted, bench = priors(PRIORS), Bench()
    clean = [row for row in measurements(arguments.cases) if is_clean(row)]
    found = served(clean, wanted, bench) + full(POINTS, wanted, bench)
    index = {one.key: at for at, one in enumerate(wanted)}

    def models(values: Mapping[Key, float], order: Mapping[Key, int]) -> list[Row]:
        return [row for own in linear(found, values, order) for row in own]

    values = fit(models, wanted, {one.key: one.middle for one in wanted}, arguments.rounds)
    print(*seen(found, values), sep="\n")
    last = linear(found, values, index)
    for name, group in GROUPS.items():
        unseen = left_out(found, last, wanted, values, group)
        print(f"\n{name}", *report(unseen), " measured / predicted", *bands(unseen), sep="\n")
    records = constants(found, wanted, values, [row for own in last for row in own])
    if arguments.write:
        write(records)


if __name__ == "__main__":
    main()
