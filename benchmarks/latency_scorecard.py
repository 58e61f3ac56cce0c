"""The page of how accurate latencies are: figures from the cases beside this file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path

import bench_score
import serving_score
import tail_score
from bench_cases import points
from serving_cases import rows

CASES = Path(__file__).parent / "cases"


def _percentiles() -> Iterator[str]:
    cases = tail_score.scored([CASES / "tail-points.jsonl"])
    out = StringIO()
    with redirect_stdout(out):
        tail_score.show(cases, tail_score.FIGURES, markdown=True)
        print()
        tail_score.show_saturation(cases)
    for line in out.getvalue().splitlines():
        plain = line.startswith(("overloaded", "not overloaded", "factor"))
        yield f"- {line}" if plain else line


def page() -> str:
    """The generated part, in Markdown."""
    scores, _ = serving_score.scored(list(rows(CASES / "serving.csv")))
    figures = [one for one in points(CASES / "bench-points.jsonl") if not one.suspect]
    return "\n".join((
        "## Means under load",
        "",
        *serving_score.show(scores),
        "",
        "## Batch-1 decoding, lone prompts, throughput",
        *bench_score.show(bench_score.scored(figures)[0], markdown=True),
        "",
        "## Percentiles under load",
        "",
        *_percentiles(),
    ))  # fmt: skip


def main() -> None:
    print(page())


if __name__ == "__main__":
    main()
