"""Every hook of capcheck: the reference manual for plugin authors.

A plugin is a module with functions named as below, marked `@hookimpl`. Each may take any subset
of its arguments. Every plugin is called on its own: one that raises is named in the report as
`capcheck/plugin-error`, the run exits 2, and nobody else's findings are lost. Plugins are
called in the order of their names, those of `--plugin` last. Ids that two plugins claim are an
error naming both; the first one keeps it.

The bodies below are never run.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pluggy

if TYPE_CHECKING:
    from capcheck.case import Case, Estimate, Result
    from capcheck.catalogue import Shelf
    from capcheck.engine import Engine, Platform
    from capcheck.findings import Rule
    from capcheck.fleet import Fleet, FleetResult
    from capcheck.formats import Format
    from capcheck.models import ModelSource
    from capcheck.packing import PackingSource
    from capcheck.report import ReportFormat
    from capcheck.schema import Extension

PROJECT = "capcheck"
hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


@hookspec
def capcheck_rules() -> Iterable[Rule]:
    """The rules this plugin may report. Called once, at start.

    Each rule's id is `concern/rule-name`, in lower case. A concern belongs to one plugin:
    one that another plugin has, or `spec` and `capcheck`, which are the core's, are an error.
    """
    raise NotImplementedError


@hookspec
def capcheck_check(case: Case) -> Iterable[Result]:
    """Check one case. Called for every alternative of every deployment.

    Return `case.run(*rules)`: each of this plugin's rules of scope "deployment" must have an
    answer, a Skip when it does not apply. Rules of other plugins are not to be answered.
    """
    raise NotImplementedError


@hookspec
def capcheck_check_fleet(fleet: Fleet) -> Iterable[FleetResult]:
    """Check what concerns several deployments. Called once a run, after all cases.

    Each of this plugin's rules of scope "fleet" must have an answer for each case.
    """
    raise NotImplementedError


@hookspec
def capcheck_estimates() -> Iterable[Estimate]:
    """Shared quantities over (case, terms). Called once; each name has one owner."""
    raise NotImplementedError


@hookspec
def capcheck_engines() -> Iterable[Engine]:
    """Engines: options, defaults and memory accounting by release. Called once."""
    raise NotImplementedError


@hookspec
def capcheck_platforms() -> Iterable[Platform]:
    """What an engine does differently on one vendor's hardware. Called once.

    One plugin, the engine's or the vendor's, speaks for an engine on a vendor.
    """
    raise NotImplementedError


@hookspec
def capcheck_families() -> Iterable[ModelSource]:
    """Sources of models: names to records, config.json to architectures. Called once."""
    raise NotImplementedError


@hookspec
def capcheck_quantizations() -> Iterable[PackingSource]:
    """Quantization methods: configurations to schemes, schemes to bytes. Called once."""
    raise NotImplementedError


@hookspec
def capcheck_catalogues() -> Iterable[Shelf]:
    """Files of records: accelerators, names, models. Called once; read when needed."""
    raise NotImplementedError


@hookspec
def capcheck_terms() -> Iterable[Path]:
    """Files of fitted constants (JSON lines). Called once; read when needed."""
    raise NotImplementedError


@hookspec
def capcheck_formats() -> Iterable[Format]:
    """Readers of deployment files. Called once."""
    raise NotImplementedError


@hookspec
def capcheck_reports() -> Iterable[ReportFormat]:
    """Writers of reports, chosen by `--format NAME`. Called once."""
    raise NotImplementedError


@hookspec
def capcheck_spec_extensions() -> Iterable[Extension]:
    """Parts of the deployment schema that this plugin owns: `x-acme:`, `evaluation:`."""
    raise NotImplementedError


HOOKS: tuple[Any, ...] = (
    capcheck_rules, capcheck_check, capcheck_check_fleet, capcheck_estimates, capcheck_engines,
    capcheck_platforms, capcheck_families, capcheck_quantizations, capcheck_catalogues,
    capcheck_terms, capcheck_formats, capcheck_reports, capcheck_spec_extensions,
)  # fmt: skip

# What everything that a hook gives must have: all that can be told before it is used.
GIVES: Mapping[str, tuple[str, ...]] = {
    "capcheck_rules": ("id", "aliases", "check", "title", "why", "fix", "fails", "passes"),
    "capcheck_check": ("rule", "answer", "error", "terms"),
    "capcheck_check_fleet": ("rule", "case", "answer"),
    "capcheck_estimates": ("name", "unit", "compute"),
    "capcheck_engines": ("name", "names", "releases", "plan", "ledger", "kv"),
    "capcheck_platforms": ("engine", "vendor", "plan", "lines", "supports"),
    "capcheck_families": ("find", "near", "build"),
    "capcheck_quantizations": (
        "takes_the_rest",
        "owns",
        "from_config",
        "from_words",
        "allocations",
    ),
    "capcheck_catalogues": ("kind", "file", "owner"),
    "capcheck_terms": ("read_text",),
    "capcheck_formats": ("name", "rank", "claims", "read", "near_miss"),
    "capcheck_reports": ("name", "write"),
    "capcheck_spec_extensions": ("key", "schema"),
}
