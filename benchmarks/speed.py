"""Prints what a run of capcheck takes: whole processes, and one deployment inside a process.

    python benchmarks/speed.py [PATH ...] [--runs N]

Every figure is wall time on this machine. Rounds are interleaved, so that a busy moment hits all
rows alike. Nothing is judged here: the figures are for people. PATH is `specs/` unless given.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from importlib.metadata import entry_points
from pathlib import Path
from typing import NamedTuple

CHECKOUT = Path(__file__).resolve().parent.parent


class Row(NamedTuple):
    """A command that is timed, and how it is called in the table."""

    title: str
    command: Sequence[str]
    environment: Mapping[str, str]
    uncompiled: bool = False  # our .pyc files are removed before each run


def console_script() -> str:
    """The installed `capcheck` of this interpreter. Raises SystemExit when there is none."""
    beside = Path(sys.executable).with_name("capcheck")
    found = str(beside) if beside.exists() else shutil.which("capcheck")
    if found is None:
        raise SystemExit("speed: capcheck is not installed for this interpreter")
    return found


def package_folders() -> list[Path]:
    """Where the code of capcheck and of its installed plugins lies."""
    names = ["capcheck", *sorted({one.value for one in entry_points(group="capcheck")})]
    specs = [importlib.util.find_spec(name) for name in names]
    return [
        Path(folder).resolve()
        for spec in specs
        if spec is not None
        for folder in spec.submodule_search_locations or ()
    ]


def forget_compiled(cache: Path) -> None:
    """Remove our .pyc files from a cache; those of the interpreter and its libraries stay."""
    for folder in package_folders():
        shutil.rmtree(cache / folder.relative_to(folder.anchor), ignore_errors=True)


def took(row: Row) -> float:
    """Seconds of one new process. Its exit code says what it found, not whether it ran."""
    if row.uncompiled:
        forget_compiled(Path(row.environment["PYTHONPYCACHEPREFIX"]))
    started = time.perf_counter()
    subprocess.run(row.command, env=row.environment, capture_output=True, check=False)
    return time.perf_counter() - started


def rows_of(paths: Sequence[Path], cache: Path) -> list[Row]:
    """The whole processes to time; the first is what the others are compared with."""
    # A cache of .pyc files of our own: what the caller's folders and environment hold is no matter.
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(cache)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    script = console_script()
    check = [script, "check", *map(str, paths)]
    shown = " ".join(os.path.relpath(path) for path in paths)
    return [
        Row("python -c pass", [sys.executable, "-c", "pass"], environment),
        Row("capcheck --version", [script, "--version"], environment),
        Row("capcheck --help", [script, "--help"], environment),
        Row("capcheck rules", [script, "rules"], environment),
        Row(f"capcheck {shown}", check, environment),
        Row(f"capcheck {shown}, not compiled", check, environment, uncompiled=True),
    ]


def print_processes(paths: Sequence[Path], runs: int) -> None:
    """A table of whole processes."""
    with tempfile.TemporaryDirectory() as folder:
        rows = rows_of(paths, Path(folder))
        for row in rows:  # fills the caches
            took(row._replace(uncompiled=False))
        times: dict[str, list[float]] = {row.title: [] for row in rows}
        for _ in range(runs):
            for row in rows:
                times[row.title].append(took(row))
            took(rows[-1]._replace(uncompiled=False))  # compiles anew for the next round
    bare_least, bare_median = min(times[rows[0].title]), statistics.median(times[rows[0].title])
    width = max(len(title) for title in times)
    print(f"{'new process':{width}}  {'least':>9}  {'median':>9}  bare starts (least, median)")
    for title, found in times.items():
        least, median = min(found), statistics.median(found)
        print(
            f"{title:{width}}  {least * 1000:6.1f} ms  {median * 1000:6.1f} ms"
            f"  {least / bare_least:5.1f} {median / bare_median:5.1f}"
        )


def print_deployments(paths: Sequence[Path]) -> None:
    """What each deployment takes inside one process: resolving, checking, its part of a report."""
    from capcheck.config import Settings
    from capcheck.files import root_of
    from capcheck.plugins import Plugins
    from capcheck.session import Session
    from capcheck.summing import deployment_report

    started = time.perf_counter()
    session = Session(Plugins(), Settings(), root_of(paths[0]))
    ready = time.perf_counter()
    drafts = session.intake.read(paths)
    read = time.perf_counter()
    found: list[tuple[float, str]] = []
    for draft in drafts:
        begun = time.perf_counter()
        outcome = session.check(session.resolve(draft))
        deployment_report(outcome.resolved, (), session.guard)
        found.append((time.perf_counter() - begun, draft.name))
    print(f"one process: {(ready - started) * 1000:.0f} ms to load the plugins, ", end="")
    print(f"{(read - ready) * 1000:.0f} ms to read {len(drafts)} deployment(s)")
    if not found:
        return
    later = sorted(found[1:]) or found
    print(f"  the first deployment   {found[0][0] * 1000:7.1f} ms  {found[0][1]}")
    print(f"  median of the others   {statistics.median(t for t, _ in later) * 1000:7.1f} ms")
    for seconds, name in reversed(later[-3:]):
        print(f"  among the slowest      {seconds * 1000:7.1f} ms  {name}")


LOADED = """\
apiVersion: capcheck/v1
kind: Deployment
name: loaded
model: {id: MODEL}
hardware: {accelerator: nvidia/h100-sxm5-80gb, count: 8}
engine: {name: vllm, version: "0.11.0", args: {tensor_parallel_size: 8}}
workload:
  prompt_tokens: {p50: 700, p95: 2500, max: 6000}
  output_tokens: {p50: 250, p95: 800, max: 2000}
  concurrency: 32
"""
EVALUATIONS = 200


def print_evaluations() -> None:
    """What one evaluation of the load model takes, once a server is built."""
    from capcheck.physics.load import closed_loop, open_loop
    from capcheck.testing import Bench
    from capcheck_serving import serving

    for model in ("meta-llama/Llama-3.1-70B-Instruct", "openai/gpt-oss-120b"):
        case = Bench().cases(LOADED.replace("MODEL", model))[0]
        terms = case.terms()
        one = serving.declared(case, terms)
        server, traffic = serving.server(case, terms, one), serving.traffic(case, one)
        most = closed_loop(server, traffic, 32.0).most_requests_per_second
        for words, load in (
            ("32 in flight", partial(closed_loop, server, traffic, 32.0)),
            ("at 0.7 of its capacity", partial(open_loop, server, traffic, 0.7 * most, 600.0)),
        ):
            begun = time.perf_counter()
            for _ in range(EVALUATIONS):
                load()
            each = (time.perf_counter() - begun) / EVALUATIONS
            print(f"  a load state {each * 1000:7.2f} ms  {model}, {words}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description="Prints what a run of capcheck takes.")
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", default=[CHECKOUT / "specs"])
    parser.add_argument("--runs", type=int, default=11, metavar="N", help="rounds (11)")
    given = parser.parse_args()
    for path in given.paths:
        if not path.exists():
            parser.error(f"{path}: no such file or folder")
    print(
        f"CPython {platform.python_version()}, {os.cpu_count()} cores, {given.runs} rounds; "
        "each process is new, the disk cache is warm"
    )
    print_processes(given.paths, max(1, given.runs))
    print_deployments(given.paths)
    print_evaluations()


if __name__ == "__main__":
    main()
