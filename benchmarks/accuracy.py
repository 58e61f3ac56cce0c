"""Replays start-ups that real engines logged and prints how far off the prediction is.

    python benchmarks/accuracy.py CASES.jsonl [CASES.jsonl ...] [--verbose]

Each line is a configuration and what was measured. Start-ups that worked must not be errors;
those that failed for lack of memory should be. Zero false errors on n runs only proves that the
rate is below about 3/n.
"""

from __future__ import annotations

import argparse
import statistics
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from startup_cases import rows, spec_of

from capcheck.quantity import GIB, Band
from capcheck.testing import Bench
from capcheck.values import Unknown

MEASURED = {
    "weights_bytes": "weights_gib",
    "kv_cache_bytes": "kv_available_gib",
    "activation_bytes": "activation_peak_gib",
    "kv_cache_tokens": "kv_tokens",
    "max_concurrency": "max_concurrency",
}
RULES = ("weights/fit", "kv-cache/one-request", "kv-cache/startup-peak")
ORDER = ("skip", "pass", "at risk", "fail")
NOT_OF_START = frozenset({"quantization/evidence"})  # asks for a measurement, stops no engine


def _band(cases: Sequence[Any], name: str) -> Band | None:
    try:
        bands = [case.estimate(name) for case in cases]
    except Unknown:
        return None
    return Band(min(b.low for b in bands), bands[0].mid, max(b.high for b in bands))


def _verdicts(outcome: Any) -> dict[str, str]:
    return {
        rule: max((one.result.verdict for one in ones), key=ORDER.index)
        for rule, ones in outcome.judged.items()
    }


class Tally:
    """What was predicted of the cases so far, beside what they did."""

    def __init__(self) -> None:
        self.errors: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in MEASURED}
        self.worked: Counter[str] = Counter()
        self.failed: Counter[str] = Counter()
        self.reasons: Counter[str] = Counter()
        self.false_errors: list[str] = []

    def add(self, row: Mapping[str, Any], outcome: Any) -> str:
        """Counts one case; gives a line about it."""
        verdicts = _verdicts(outcome)
        one = verdicts.get("kv-cache/one-request", "skip")
        worst = max((verdicts.get(rule, "skip") for rule in RULES), key=ORDER.index)
        figures: list[str] = []
        if row.get("measured") is not None:
            self.worked.update(("n", f"one-request {one}", f"memory {worst}"))
            figures = list(self._figures(row["measured"], outcome))
            for rule in sorted(_errors(outcome) - NOT_OF_START):
                self.false_errors.append(f"{row['id']} {rule}")
        elif row.get("predictable_by") == "memory_estimate":
            self.failed.update(("n", f"memory {worst}"))
        elif row.get("predictable_by") == "should_pass":
            self.failed[f"engine bugs: memory {worst}"] += 1
        reason = ""
        if one == "skip":
            found = outcome.judged.get("kv-cache/one-request")
            reason = found[0].result.reason if found else "no result"
            self.reasons[reason.partition(":")[0]] += 1
        start = f"{row['id']:9} {row.get('outcome', 'ok'):13} one-request {one:8}"
        return " ".join((start, f"worst {worst:8}", *figures, reason))

    def _figures(self, measured: Mapping[str, Any], outcome: Any) -> Iterator[str]:
        for name, key in MEASURED.items():
            truth = measured.get(key)
            band = _band(outcome.resolved.cases, name) if truth else None
            if band is None or not truth:
                continue
            scale = GIB if key.endswith("_gib") else 1.0
            mid, truth = band.mid / scale, float(truth)
            hit = band.low / scale <= truth * 1.001 and band.high / scale >= truth * 0.999
            width = (band.high - band.low) / scale / truth
            self.errors[name].append((mid / truth - 1, width, hit))
            yield f"{key} {mid:.2f}/{truth:.2f}{'' if hit else '!'}"

    def show(self) -> None:
        """Prints everything."""
        print("started:", dict(sorted(self.worked.items())))
        print("failed, by a memory estimate:", dict(sorted(self.failed.items())))
        print("not judged because:", dict(self.reasons.most_common()))
        _print_errors(self.errors)
        n = self.worked["n"]
        if n:
            print(
                f"errors on start-ups that worked: {len(self.false_errors)} on {n} (no more than "
                f"{3 / n:.1%} when none is seen); judged "
                f"{1 - self.worked['one-request skip'] / n:.0%}; at risk "
                f"{self.worked['one-request at risk'] / n:.0%}"
            )
        print(*self.false_errors, sep="\n", end="\n" if self.false_errors else "")


def _errors(outcome: Any) -> set[str]:
    """The rules that give an error."""
    return {
        rule
        for rule, ones in outcome.judged.items()
        for one in ones
        if one.result.verdict == "fail"
        and (one.result.severity or one.result.rule.severity) == "error"
    }


def _print_errors(errors: dict[str, list[tuple[float, float, bool]]]) -> None:
    print(f"{'quantity':18} {'n':>4} {'median':>8} {'90 %':>8} {'bias':>8} {'in band':>8}")
    for name, found in errors.items():
        if not found:
            continue
        sizes = sorted(abs(error) for error, _, _ in found)
        ninety = sizes[min(len(sizes) - 1, int(0.9 * len(sizes)))]
        bias = statistics.median(error for error, _, _ in found)
        inside = sum(1 for _, _, hit in found if hit) / len(found)
        width = statistics.median(width for _, width, _ in found)
        print(
            f"{name:18} {len(found):4} {statistics.median(sizes):8.2%} {ninety:8.2%} {bias:+8.2%} "
            f"{inside:8.0%}  median band {width:.1%} of the value"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("cases", nargs="+", type=Path)
    parser.add_argument("--verbose", action="store_true", help="a line for each case")
    arguments = parser.parse_args()
    bench, tally = Bench(), Tally()
    for row in rows(arguments.cases):
        if row["engine"] != "vllm":
            continue
        line = tally.add(row, bench.outcomes(spec_of(row), f"{row['id']}.yaml")[0])
        if arguments.verbose:
            print(line)
    tally.show()


if __name__ == "__main__":
    main()
