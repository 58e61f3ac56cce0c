"""What the shipped plugins know: formats, report formats, engines; loaded once for all pages."""

from __future__ import annotations

from functools import cache
from pathlib import Path

from capcheck.config import Settings
from capcheck.plugins import Plugins
from capcheck.session import Session
from docpages.blocks import table


@cache
def plugins() -> Plugins:
    """The installed plugins. Raises RuntimeError when one of them is faulty."""
    loaded = Plugins()
    if loaded.guard.errors:
        raise RuntimeError(f"a plugin is faulty: {loaded.guard.errors}")
    return loaded


def session() -> Session:
    """A session without files."""
    return Session(plugins(), Settings(), Path("/nonexistent"))


def formats() -> str:
    """The formats of deployment files."""
    rows = [(f"`{one.name}`", one.title) for one in plugins().formats()]
    return table(("format", "what it reads"), sorted(rows))


def reports() -> str:
    """The formats of reports."""
    rows = [(f"`{name}`", one.title) for name, one in sorted(plugins().reports().items())]
    return table(("report", "what it is"), rows)


def engines() -> str:
    """The engines, how many options of each are known, and of which releases."""
    lines = []
    for one in sorted(plugins().engines(), key=lambda one: one.name):
        options = one.options
        what = "no options; the accounting for deployments that name no engine"
        if options is not None:
            first, last = (".".join(map(str, options.releases[end])) for end in (0, -1))
            what = f"{len(options.names)} options of the releases {first} to {last}"
        lines.append(f"- `{one.name}`: {what}")
    return "\n".join(lines)


def counts() -> str:
    """How much the catalogue holds."""
    catalogue = session().catalogue
    models, parts = len(catalogue.ids("model")), len(catalogue.ids("accelerator"))
    return f"{models} model architectures and {parts} accelerators are in the catalogue."
