"""Replays what real engines logged and prints how far off the predictions are.

    python benchmarks/accuracy.py memory CASES.jsonl [CASES.jsonl ...] [--verbose] [--markdown]
    python benchmarks/accuracy.py bench CASES.jsonl [CASES.jsonl ...] [--all] [--verbose]
    python benchmarks/accuracy.py tail CASES.jsonl [CASES.jsonl ...] [--verbose] [--markdown]

Each line of a file is a configuration and what was measured. Start-ups that worked must not be
errors; those that failed for lack of memory should be. Zero false errors on n runs only proves
that the rate is below about 3/n.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory_score import QUANTITIES, Line, Scored, line_of, score
from startup_cases import rows, spec_of
from tables import print_table

from capcheck.quantity import GIB
from capcheck.testing import Bench

MOST_REASONS = 12
FEWEST = 2  # cases that make a class worth a line


def scored(paths: Sequence[Path]) -> list[Scored]:
    """Every case of the files, through the public API."""
    bench = Bench()
    return [score(row, bench.outcomes(spec_of(row), f"{row['id']}.yaml")[0]) for row in rows(paths)]


def class_lines(cases: Sequence[Scored]) -> Iterator[Line]:
    """Each quantity in each class of the cases that came up."""
    names: dict[str, None] = {}
    for case in cases:
        names.update(dict.fromkeys(case.classes))
    order = {"all": 0, "core": 1}
    for name in sorted(names, key=lambda one: (order.get(one, 2), one)):
        for quantity in QUANTITIES:
            found = [
                case.compared[quantity.name]
                for case in cases
                if name in case.classes and quantity.name in case.compared
            ]
            if len(found) >= (1 if name in order else FEWEST):
                yield line_of(name, quantity, found)


def show_lines(lines: Sequence[Line], markdown: bool) -> None:
    """A table; the bar as separator makes it Markdown."""
    head = ("class", "quantity", "n", "median", "90 %", "bias", "in band", "width")
    table = [head]
    for one in lines:
        table.append((
            one.name, one.quantity, str(one.cases), f"{one.median:.2f} {one.unit}",
            f"{one.ninety:.2f} {one.unit}", f"{one.bias:+.2f}", f"{one.coverage:.0%}",
            f"{one.width:.1%}",
        ))  # fmt: skip
    print_table(table, markdown)


def show_verdicts(cases: Sequence[Scored]) -> None:
    """False errors, catches, what was judged and what was at risk."""
    worked = [case for case in cases if case.worked]
    if worked:
        judged = [case for case in worked if case.one_request != "skip"]
        risk = [case for case in judged if case.one_request == "at risk"]
        wrong = [case for case in worked if case.errors]
        share = len(risk) / max(1, len(judged))
        print(
            f"came up: {len(worked)}; judged {len(judged) / len(worked):.0%}, of these at risk "
            f"{share:.0%}; errors {len(wrong)} (the rate is below "
            f"{3 / len(worked):.1%} when none is seen)"
        )
        for case in wrong:
            print(f"  error on {case.id}: {', '.join(case.errors)}")
    _show_failures(cases)
    reasons = Counter(case.reason.partition(":")[0] for case in cases if case.reason)
    print("not judged because:", dict(reasons.most_common(MOST_REASONS)))


def _show_failures(cases: Sequence[Scored]) -> None:
    memory = [case for case in cases if memory_failure(case)]
    stated = [case for case in memory if case.one_request != "skip"]
    for name, group in (("all", memory), ("model, device and limits known", stated)):
        if group:
            errors = sum(1 for case in group if case.memory == "fail" or case.errors)
            told = sum(1 for case in group if case.errors or case.warnings)
            print(
                f"failed for memory, {name}: {len(group)}; error {errors / len(group):.0%}, "
                f"error or warning {told / len(group):.0%}"
            )
    outcomes = Counter((case.row.get("outcome"), case.memory) for case in memory)
    for (outcome, verdict), count in sorted(outcomes.items(), key=str):
        print(f"  {outcome}: {verdict} {count}")
    bugs = [case for case in cases if case.row.get("predictable_by") == "should_pass"]
    if bugs:
        blamed = [case.id for case in bugs if case.memory == "fail"]
        print(f"engine bugs: {len(bugs)}, blamed on the configuration {len(blamed)} {blamed}")


def memory_failure(case: Scored) -> bool:
    if "predictable_by" in case.row:
        return bool(case.row["predictable_by"] == "memory_estimate")
    outcome = str(case.row.get("outcome") or "ok")
    return outcome.startswith(("oom", "kv_too_small"))


def show_case(case: Scored) -> None:
    """One line about a case."""
    figures = []
    for quantity in QUANTITIES:
        one = case.compared.get(quantity.name)
        if one is not None:
            size = GIB if quantity.absolute or quantity.name == "weights" else 1.0
            miss = "" if one.inside else "!"
            figures.append(
                f"{quantity.name} {one.band.mid / size:.2f}/{one.truth / size:.2f}{miss}"
            )
    outcome = case.row.get("outcome") or "ok"
    said = " ".join(case.errors)
    print(
        f"{case.id:9} {outcome:20} {case.one_request:8} {case.memory:8}",
        *figures,
        said,
        case.reason,
    )


def memory(arguments: argparse.Namespace) -> None:
    """The scorecard of start-up memory, engine by engine."""
    cases = scored(arguments.cases)
    for engine in dict.fromkeys(case.row["engine"] for case in cases):
        own = [case for case in cases if case.row["engine"] == engine]
        print(f"\n## {engine}\n" if arguments.markdown else f"\n{engine}: {len(own)} cases")
        if arguments.verbose:
            for case in own:
                show_case(case)
        show_verdicts(own)
        print()
        show_lines(list(class_lines(own)), arguments.markdown)


def bench(arguments: argparse.Namespace) -> None:
    """The scorecard of published benchmark figures, class by class."""
    import bench_score
    from bench_cases import points

    chosen = [one for path in arguments.cases for one in points(path)]
    kept = [one for one in chosen if arguments.all or not one.suspect]
    scores, missing = bench_score.scored(kept)
    if arguments.verbose:
        print(*(bench_score.line_of(one) for one in scores), sep="\n")
    print(*bench_score.show(scores, arguments.markdown), sep="\n")
    print(f"\n{len(kept)} of {len(chosen)} points; not predicted: {dict(missing)}")


def serving(arguments: argparse.Namespace) -> None:
    """The scorecard of latencies under load."""
    import serving_score
    from serving_cases import rows as measurements

    chosen = [row for path in arguments.cases for row in measurements(path)]
    print(*serving_score.serving(chosen), sep="\n")


def tail(arguments: argparse.Namespace) -> None:
    """The scorecard of percentiles under load."""
    import tail_score

    tail_score.tail(arguments)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    kinds = parser.add_subparsers(required=True)
    one = kinds.add_parser("memory", help="start-up memory")
    one.add_argument("cases", nargs="+", type=Path)
    one.add_argument("--verbose", action="store_true", help="a line for each case")
    one.add_argument("--markdown", action="store_true", help="tables for the docs")
    one.set_defaults(run=memory)
    two = kinds.add_parser("bench", help="published figures: batch 1, lone prompts, throughput")
    two.add_argument("cases", nargs="+", type=Path)
    two.add_argument("--all", action="store_true", help="with the figures marked suspect")
    two.add_argument("--verbose", action="store_true", help="a line for each figure")
    two.add_argument("--markdown", action="store_true", help="tables for the docs")
    two.set_defaults(run=bench)
    three = kinds.add_parser("tail", help="percentiles under load, and saturation")
    three.add_argument("cases", nargs="+", type=Path)
    three.add_argument("--verbose", action="store_true", help="a line for each case")
    three.add_argument("--markdown", action="store_true", help="tables for the docs")
    three.set_defaults(run=tail)
    four = kinds.add_parser("serving", help="mean latencies under load")
    four.add_argument("cases", nargs="+", type=Path)
    four.set_defaults(run=serving)
    arguments = parser.parse_args()
    arguments.run(arguments)


if __name__ == "__main__":
    main()
