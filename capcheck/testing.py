"""The test kit for plugins: check a spec's text and look at the report.

from capcheck.testing import check, example_faults

def test_nics() -> None:
    (finding,) = check(SPEC, plugin="acme_nics.py", select=("acme",))
    assert finding.place.line == 6

def test_pages() -> None:
    assert not example_faults(plugin="acme_nics.py")
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from capcheck.case import Case
from capcheck.combining import FOUND
from capcheck.config import Settings
from capcheck.plugins import Plugins
from capcheck.session import Outcome, Session

if TYPE_CHECKING:
    from capcheck.findings import Finding, Rule
    from capcheck.report import Report

SPEC = "spec.yaml"


@lru_cache(maxsize=8)
def plugins(extra: tuple[str, ...] = ()) -> Plugins:
    """The installed plugins and `extra` ones by module name or path; loaded once."""
    return Plugins(extra=extra)


def _loaded(plugin: str | None) -> Plugins:
    return Plugins(extra=(plugin,) if plugin else ())


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
        session = Session(_loaded(plugin), settings or Settings(**options), root)
        return session.run([root / path for path in paths])


def check(spec: str, plugin: str | None = None, **options: Any) -> list[Finding]:
    """The findings of one spec's text, with a plugin under test by module name or path."""
    return list(run({SPEC: spec}, plugin=plugin, **options).findings)


class Bench:
    """Checks many texts with one set of plugins: for tests and benchmarks over many cases."""

    def __init__(self, plugin: str | None = None, **options: Any) -> None:
        self.session = Session(_loaded(plugin), Settings(**options), Path("/nonexistent"))

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


def _found(outcomes: Iterable[Outcome], text: str) -> Iterator[tuple[str, bool]]:
    """Each finding's rule, and whether it marks a place inside the text."""
    lines = len(text.splitlines())
    for outcome in outcomes:
        for rule, ones in outcome.judged.items():
            for one in ones:
                if one.result.verdict in FOUND:
                    at = one.result.at
                    yield rule, at is not None and at.file == SPEC and at.line <= lines


def _fleet_faults_of(rule: Rule) -> Iterator[str]:
    """As `_faults_of` for a rule over all deployments: its examples hold several."""
    for name, text in (("fails", rule.fails), ("passes", rule.passes)):
        found = {one.rule for one in run({SPEC: text}).findings}
        if (rule.id in found) != (name == "fails"):
            yield f"{rule.id}: `{name}` is {'not ' * (name == 'fails')}reported"
        others = sorted(found - {rule.id})
        if others:
            yield f"{rule.id}: `{name}` is also reported by {', '.join(others)}"


def _faults_of(rule: Rule, bench: Bench) -> Iterator[str]:
    if rule.scope == "fleet":
        yield from _fleet_faults_of(rule)
        return
    for name, text in (("fails", rule.fails), ("passes", rule.passes)):
        outcomes = bench.outcomes(text)
        problems = [one for outcome in outcomes for one in outcome.resolved.problems]
        yield from (f"{rule.id}: `{name}`: {one.message} [{one.rule}]" for one in problems)
        if len(outcomes) != 1:
            yield f"{rule.id}: `{name}` holds {len(outcomes)} deployments"
        found = dict(_found(outcomes, text))
        if name == "passes" and rule.id in found:
            yield f"{rule.id}: `passes` is reported"
        if name == "fails":
            if rule.id not in found:
                yield f"{rule.id}: `fails` is not reported"
            elif not found[rule.id]:
                yield f"{rule.id}: `fails` is reported at no place in the file"
            others = sorted(set(found) - {rule.id})
            if others:
                yield f"{rule.id}: `fails` is also reported by {', '.join(others)}"


def example_faults(
    plugin: str | None = None, *, rules: Iterable[str] = (), bench: Bench | None = None
) -> list[str]:
    """What is wrong with rules' own examples: each `fails` is to be reported by its rule alone, at
    a place in the file, each `passes` not by its rule. Without `rules`: those of `plugin`.
    """
    bench = bench or Bench(plugin)
    session = bench.session
    wanted = set(rules)
    name = Path(plugin).stem if plugin else ""
    chosen = [
        rule
        for id, rule in session.rules.items()
        if id == rule.id and (id in wanted or (not wanted and rule.plugin in (plugin, name)))
    ]
    faults = [f"there is no rule {id}" for id in sorted(wanted - set(session.rules))]
    faults += [fault for rule in chosen for fault in _faults_of(rule, bench)]
    return faults + [f"{fault.plugin}: {fault.message}" for fault in session.guard.errors]
