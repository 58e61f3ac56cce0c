"""The test kit for plugins: check a spec's text and look at the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from capcheck.case import Case
from capcheck.config import Settings
from capcheck.plugins import Plugins
from capcheck.session import Session

if TYPE_CHECKING:
    from capcheck.findings import Finding
    from capcheck.report import Report
    from capcheck.session import Outcome

SPEC = "spec.yaml"


@lru_cache(maxsize=8)
def plugins(extra: tuple[str, ...] = ()) -> Plugins:
    """The installed plugins and `extra` ones by module name or path; loaded once."""
    return Plugins(extra=extra)


def run(
    files: Mapping[str, str],
    *,
    paths: Iterable[str] = (".",),
    plugin: str | None = None,
    settings: Settings | None = None,
    **options: Any,
) -> Report:
    """Check files given by name and text, in a folder of their own. `options` are Settings'."""
    with TemporaryDirectory() as folder:
        root = Path(folder)
        for name, text in files.items():
            path = root / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        chosen = settings or Settings(**options)
        loaded = Plugins(extra=(plugin,) if plugin else ())
        return Session(loaded, chosen, root).run([root / path for path in paths])


def check(spec: str, plugin: str | None = None, **options: Any) -> list[Finding]:
    """The findings of one spec's text, with a plugin under test by module name or path."""
    return list(run({SPEC: spec}, plugin=plugin, **options).findings)


class Bench:
    """Checks many texts with one set of plugins: for tests and benchmarks over many cases."""

    def __init__(self, plugin: str | None = None, **options: Any) -> None:
        self.session = Session(
            Plugins(extra=(plugin,) if plugin else ()), Settings(**options), Path("/nonexistent")
        )

    def outcomes(self, text: str, name: str = SPEC) -> list[Outcome]:
        """What each deployment in `text` came to."""
        session = self.session
        drafts = session.intake.read((), stdin=(name, text))
        return [session.check(session.resolve(draft)) for draft in drafts]

    def cases(self, text: str, name: str = SPEC) -> list[Case]:
        """The cases of the first deployment in `text`, unchecked."""
        session = self.session
        drafts = session.intake.read((), stdin=(name, text))
        return list(session.resolve(drafts[0]).cases)
