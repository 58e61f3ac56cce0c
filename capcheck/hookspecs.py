"""Every hook of capcheck: the reference manual for plugin authors.

A plugin is a module with functions named as below, marked `@hookimpl`. Each may take any subset
of its arguments. Every plugin is called on its own: one that raises is named in the report as
`capcheck/plugin-error`, the run exits 2, and nobody else's findings are lost. Plugins are
called in the order of their names. Ids that two plugins claim are an error naming both.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from capcheck.case import Case, Estimate
    from capcheck.catalogue import Shelf
    from capcheck.case import Result
    from capcheck.engine import Engine, Platform
    from capcheck.findings import Rule
    from capcheck.fleet import Fleet, FleetResult
    from capcheck.formats import Format
    from capcheck.models import ModelSource
    from capcheck.packing import PackingSource
    from capcheck.report import ReportFormat
    from capcheck.schema import Extension

hookspec = pluggy.HookspecMarker("capcheck")
hookimpl = pluggy.HookimplMarker("capcheck")


@hookspec
def capcheck_rules() -> Iterable[Rule]:  # type: ignore[empty-body]
    """The rules this plugin may report. Called once, at start.

    Each rule's id is `concern/name`; the first plugin to claim a concern owns it.
    """


@hookspec
def capcheck_check(case: Case) -> Iterable[Result]:  # type: ignore[empty-body]
    """Check one case. Called for every alternative of every deployment.

    Return `case.run(*rules)`: each of this plugin's rules must have an answer.
    """


@hookspec
def capcheck_check_fleet(fleet: Fleet) -> Iterable[FleetResult]:  # type: ignore[empty-body]
    """Check what concerns several deployments. Called once a run, after all cases."""


@hookspec
def capcheck_estimates() -> Iterable[Estimate]:  # type: ignore[empty-body]
    """Shared quantities over (case, terms). Called once; each name has one owner."""


@hookspec
def capcheck_engines() -> Iterable[Engine]:  # type: ignore[empty-body]
    """Engines: options, defaults and memory accounting by release. Called once."""


@hookspec
def capcheck_platforms() -> Iterable[Platform]:  # type: ignore[empty-body]
    """What an engine does differently on one vendor's hardware. Called once."""


@hookspec
def capcheck_families() -> Iterable[ModelSource]:  # type: ignore[empty-body]
    """Sources of models: names to records, config.json to architectures. Called once."""


@hookspec
def capcheck_quantizations() -> Iterable[PackingSource]:  # type: ignore[empty-body]
    """Quantization methods: configurations to schemes, schemes to bytes. Called once."""


@hookspec
def capcheck_catalogues() -> Iterable[Shelf]:  # type: ignore[empty-body]
    """Files of records: accelerators, names, models. Called once; read when needed."""


@hookspec
def capcheck_terms() -> Iterable[Path]:  # type: ignore[empty-body]
    """Files of fitted constants (JSON lines). Called once; read when needed."""


@hookspec
def capcheck_formats() -> Iterable[Format]:  # type: ignore[empty-body]
    """Readers of deployment files. Called once."""


@hookspec
def capcheck_reports() -> Iterable[ReportFormat]:  # type: ignore[empty-body]
    """Writers of reports, chosen by `--format NAME`. Called once."""


@hookspec
def capcheck_spec_extensions() -> Iterable[Extension]:  # type: ignore[empty-body]
    """Parts of the deployment schema that this plugin owns: `x-acme:`, `evaluation:`."""


HOOKS: tuple[Any, ...] = (
    capcheck_rules, capcheck_check, capcheck_check_fleet, capcheck_estimates, capcheck_engines,
    capcheck_platforms, capcheck_families, capcheck_quantizations, capcheck_catalogues,
    capcheck_terms, capcheck_formats, capcheck_reports, capcheck_spec_extensions,
)  # fmt: skip
