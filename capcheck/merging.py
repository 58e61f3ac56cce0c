"""Runs below several roots as one report, with paths relative to the folder they share."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from pathlib import Path

from capcheck.decide import order
from capcheck.findings import Finding
from capcheck.report import DeploymentReport, Report, Summary
from capcheck.summing import MOST_REASONS
from capcheck.values import Place


def _prefixed(name: str, prefix: str) -> str:
    """A file's name seen from further up; what stands in no file keeps its name."""
    return name if not name or name.startswith("<") else f"{prefix}{name}"


def _place(place: Place, prefix: str) -> Place:
    return place._replace(file=_prefixed(place.file, prefix))


def _finding(finding: Finding, prefix: str) -> Finding:
    via = tuple(_place(one, prefix) for one in finding.via)
    return finding._replace(place=_place(finding.place, prefix), via=via)


def _findings(parts: Iterable[tuple[Iterable[Finding], str]]) -> tuple[Finding, ...]:
    found = (_finding(one, prefix) for findings, prefix in parts for one in findings)
    return tuple(sorted(found, key=order))


def _deployment(one: DeploymentReport, prefix: str) -> DeploymentReport:
    return one._replace(place=_place(one.place, prefix))


def _summed(summaries: Sequence[Summary]) -> Summary:
    counts = {
        name: sum(getattr(one, name) for one in summaries)
        for name in Summary._fields
        if name != "skip_reasons"
    }
    reasons: dict[str, int] = {}
    for one in summaries:
        for reason, count in one.skip_reasons:
            reasons[reason] = reasons.get(reason, 0) + count
    ordered = sorted(reasons.items(), key=lambda pair: -pair[1])
    return Summary(**counts, skip_reasons=tuple(ordered[:MOST_REASONS]))


def common_root(roots: Sequence[Path]) -> Path:
    """The folder above all of them."""
    return Path(os.path.commonpath(roots))


def prefix_of(root: Path, base: Path) -> str:
    """What a root's names begin with when they are seen from `base`."""
    inner = root.relative_to(base).as_posix()
    return "" if inner == "." else f"{inner}/"


def merged(reports: Sequence[Report]) -> Report:
    """One report of several; a single one as it is."""
    if len(reports) == 1:
        return reports[0]
    base = common_root([one.root for one in reports])
    prefixes = [prefix_of(one.root, base) for one in reports]
    pairs = list(zip(reports, prefixes, strict=True))
    return Report(
        reports[0].version,
        base,
        _summed([one.summary for one in reports]),
        tuple(_deployment(one, prefix) for report, prefix in pairs for one in report.deployments),
        _findings((report.findings, prefix) for report, prefix in pairs),
        _findings((report.suppressed, prefix) for report, prefix in pairs),
        tuple(
            sorted(
                (_prefixed(name, prefix), taken)
                for report, prefix in pairs
                for name, taken in report.shown_files
            )
        ),
    )
