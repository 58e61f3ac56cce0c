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
from collections.abc import Sequence
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
MEMORY_OUTCOMES = ("kv_too_small", "oom_load", "no_blocks", "oom_profile", "oom_graph", "oom_start")


def _band(cases: Sequence[Any], name: str) -> Band | None:
    try:
        bands = [case.estimate(name) for case in cases]
    except Unknown:
        return None
    return Band(min(b.low for b in bands), bands[0].mid, max(b.high for b in bands))


def _verdicts(outcome: Any) -> dict[str, str]:
    order = ("skip", "pass", "at risk", "fail")
    return {
        rule: max((one.result.verdict for one in ones), key=order.index)
        for rule, ones in outcome.judged.items()
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
    bench = Bench()
    errors: dict[str, list[tuple[float, float, bool]]] = {name: [] for name in MEASURED}
    worked: Counter[str] = Counter()
    failed: Counter[str] = Counter()
    reasons: Counter[str] = Counter()
    for row in rows(arguments.cases):
        if row["engine"] != "vllm":
            continue
        outcome = bench.outcomes(spec_of(row), f"{row['id']}.yaml")[0]
        verdicts = _verdicts(outcome)
        one = verdicts.get("kv-cache/one-request", "skip")
        memory = [verdicts.get(rule, "skip") for rule in RULES]
        worst = max(memory, key=("skip", "pass", "at risk", "fail").index)
        figures = []
        measured = row.get("measured")
        if measured is not None:
            worked["n"] += 1
            worked[f"one-request {one}"] += 1
            worked[f"memory {worst}"] += 1
            for name, key in MEASURED.items():
                truth = measured.get(key)
                band = _band(outcome.resolved.cases, name) if truth else None
                if band is None or not truth:
                    continue
                scale = GIB if key.endswith("_gib") else 1.0
                mid, truth = band.mid / scale, float(truth)
                hit = band.low / scale <= truth * 1.001 and band.high / scale >= truth * 0.999
                errors[name].append((mid / truth - 1, (band.high - band.low) / scale / truth, hit))
                figures.append(f"{key} {mid:.2f}/{truth:.2f}{'' if hit else '!'}")
        elif row.get("predictable_by") == "memory_estimate":
            failed["n"] += 1
            failed[f"memory {worst}"] += 1
        elif row.get("predictable_by") == "should_pass":
            failed[f"engine bugs: memory {worst}"] += 1
        if one == "skip":
            found = outcome.judged.get("kv-cache/one-request")
            reasons[found[0].result.reason.partition(":")[0] if found else "no result"] += 1
        if arguments.verbose:
            extra = ""
            if one == "skip":
                found = outcome.judged.get("kv-cache/one-request")
                extra = found[0].result.reason if found else ""
            print(
                f"{row['id']:9} {row.get('outcome', 'ok'):13} one-request {one:8} worst {worst:8}",
                *figures,
                extra,
            )
    print("started:", dict(sorted(worked.items())))
    print("failed, by a memory estimate:", dict(sorted(failed.items())))
    print("not judged because:", dict(reasons.most_common()))
    _print_errors(errors)
    if worked["n"]:
        print(
            f"errors on start-ups that worked: {worked['one-request fail']} of {worked['n']} "
            f"(no more than {3 / worked['n']:.1%} when none is seen); judged "
            f"{1 - worked['one-request skip'] / worked['n']:.0%}; at risk "
            f"{worked['one-request at risk'] / worked['n']:.0%}"
        )


if __name__ == "__main__":
    main()
