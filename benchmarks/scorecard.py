"""The page of how accurate start-up memory is: figures from the cases beside this file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median

from accuracy import class_lines, memory_failure, scored
from calibrate import implied, pools_left_out
from memory_score import Line, Scored, quantile

CASES = Path(__file__).parent / "cases"
FILES = tuple(CASES / f"{name}.jsonl" for name in ("vllm-started", "failed", "other-engines"))
HEAD = "| class | quantity | n | median | 9 in 10 within | bias | in the band | width |"
RULE = "| --- | --- | ---: | ---: | ---: | ---: | ---: | ---: |"
NAMES = {"all": "all", "core": "core: release known, one discrete NVIDIA part"}


def table(lines: Sequence[Line]) -> Iterator[str]:
    """One row for each class and quantity."""
    yield HEAD
    yield RULE
    for one in lines:
        yield (
            f"| {NAMES.get(one.name, one.name)} | {one.quantity} | {one.cases} | "
            f"{one.median:.2f} {one.unit} | {one.ninety:.2f} {one.unit} | {one.bias:+.2f} | "
            f"{one.coverage:.0%} | {one.width:.1%} |"
        )


def verdicts(cases: Sequence[Scored]) -> Iterator[str]:
    """What was judged, what was wrong, what was caught."""
    worked = [case for case in cases if case.worked]
    if worked:
        judged = [case for case in worked if case.one_request != "skip"]
        risk = sum(1 for case in judged if case.one_request == "at risk")
        wrong = sum(1 for case in worked if case.errors)
        yield (
            f"- {len(worked)} start-ups that worked: {len(judged) / len(worked):.0%} judged, "
            f"{risk / max(1, len(judged)):.0%} of these at risk, {wrong} with an error of a rule "
            "that speaks of starting."
        )
    memory = [case for case in cases if memory_failure(case)]
    stated = [case for case in memory if case.one_request != "skip"]
    if memory:
        errors = sum(1 for case in stated if case.memory == "fail" or case.errors)
        told = sum(1 for case in stated if case.errors or case.warnings)
        yield (
            f"- {len(memory)} that failed for lack of memory, {len(stated)} of them with model, "
            f"device and limits known: {errors} of these errors, {told} errors or warnings."
        )
    bugs = [case for case in cases if case.row.get("predictable_by") == "should_pass"]
    if bugs:
        blamed = sum(1 for case in bugs if case.memory == "fail")
        yield f"- {len(bugs)} bugs of the engine itself: {blamed} blamed on the configuration."


def left_out(cases: Sequence[Scored]) -> str:
    """The KV pool with each source left out of the fit of what is not a tensor."""
    found = implied(FILES[:1])["vllm.non_torch_bytes"]
    errors = pools_left_out(found, cases)
    sizes = [abs(error) for error, _ in errors]
    inside = sum(1 for _, hit in errors if hit) / len(errors)
    return (
        f"Leaving one source out of the fit at a time ({len(errors)} start-ups whose release and "
        f"device are known): KV pool {median(sizes):.2f} GiB at the median, "
        f"{quantile(sizes, 0.9):.2f} GiB for nine in ten, {inside:.0%} in the band."
    )


def page() -> str:
    """The generated part, in Markdown."""
    cases = scored(FILES)
    parts: list[str] = []
    for engine in dict.fromkeys(case.row["engine"] for case in cases):
        own = [case for case in cases if case.row["engine"] == engine]
        parts += ["", f"## {engine}", "", *verdicts(own), ""]
        lines = list(class_lines(own))
        if lines:
            parts += table(lines)
        if engine == "vllm":
            parts += ["", left_out(own)]
    return "\n".join(parts[1:])


def main() -> None:
    print(page())


if __name__ == "__main__":
    main()
