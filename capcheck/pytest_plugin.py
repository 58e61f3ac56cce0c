"""`pytest specs/ --capcheck`: one item for each deployment and rule.

Without `--capcheck` nothing of capcheck is imported and nothing is collected.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from capcheck.findings import Finding
    from capcheck.report import Checked
    from capcheck.session import Session

SUFFIXES = (".yaml", ".yml", ".json")
SESSIONS: pytest.StashKey[dict[Path, Session]] = pytest.StashKey()


def pytest_addoption(parser: pytest.Parser) -> None:
    """`--capcheck`, and assumptions as on the command line."""
    group = parser.getgroup("capcheck", "LLM inference deployments")
    group.addoption("--capcheck", action="store_true", help="check deployment files")
    group.addoption(
        "--capcheck-assume", action="append", default=[], metavar="NAME=VALUE",
        help="fill what no file tells, as capcheck --assume",
    )  # fmt: skip


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Deployment files, only when asked for."""
    if not parent.config.getoption("--capcheck") or file_path.suffix.lower() not in SUFFIXES:
        return None
    collector: DeploymentFile = DeploymentFile.from_parent(parent, path=file_path)
    return collector


class Broken(Exception):
    """What the item shows instead of a traceback."""


class CapcheckWarning(pytest.PytestWarning):
    """A finding that does not fail the item."""


def _session(config: pytest.Config, path: Path) -> Session:
    """The session of the file's root, made once. Raises UsageError."""
    from capcheck.files import root_of

    sessions = config.stash.setdefault(SESSIONS, {})
    root = root_of(path)
    if root not in sessions:
        sessions[root] = _new_session(config, root)
    return sessions[root]


def _new_session(config: pytest.Config, root: Path) -> Session:
    from capcheck import config as configuration
    from capcheck.intake import ASSUMABLE
    from capcheck.plugins import Plugins, UnusablePlugin
    from capcheck.session import Session

    assume = dict(
        configuration.parse_assumption(one) for one in config.getoption("--capcheck-assume")
    )
    settings = configuration.settings(
        configuration.load(root), {}, {"assume": assume} if assume else {}, assumable=ASSUMABLE
    )
    try:
        plugins = Plugins(extra=settings.plugins, without=settings.no_plugins)
    except UnusablePlugin as wrong:
        raise configuration.UsageError(str(wrong)) from wrong
    return Session(plugins, settings, root)


class DeploymentFile(pytest.File):
    """One file: an item for each deployment and rule, and one for what is wrong with the file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Read and check the file, once."""
        from capcheck.config import UsageError

        try:
            session = _session(self.config, self.path)
        except UsageError as wrong:
            raise self.CollectError(f"capcheck: {wrong}") from wrong
        report = session.run([self.path])
        left = dict.fromkeys(report.findings)
        for deployment in report.deployments:
            for check in deployment.checks:
                findings = [
                    one
                    for one in left
                    if (one.deployment, one.rule) == (deployment.name, check.rule)
                ]
                for one in findings:
                    del left[one]
                yield self._item(session, deployment.name, check.rule, findings, check)
        others: dict[tuple[str, str], list[Finding]] = {}
        for one in left:
            others.setdefault((one.deployment, one.rule), []).append(one)
        for (name, rule), findings in others.items():
            if rule != "capcheck/unclaimed":  # most files in a folder of tests are no deployments
                yield self._item(session, name, rule, findings, None)

    def _item(
        self,
        session: Session,
        deployment: str,
        rule: str,
        findings: list[Finding],
        check: Checked | None,
    ) -> pytest.Item:
        name = f"{deployment}::{rule}" if deployment else rule
        item: RuleItem = RuleItem.from_parent(self, name=name)
        item.findings = findings
        item.skips = check is not None and check.verdict == "skip"
        item.reason = (check.reason if check is not None else None) or ""
        item.strict = session.settings.strict
        return item


class RuleItem(pytest.Item):
    """One rule on one deployment. Errors fail, warnings pass and are shown, skips skip."""

    findings: list[Finding]
    skips: bool
    reason: str
    strict: bool

    def runtest(self) -> None:
        """Raise what was found when the file was collected."""
        failing = [one for one in self.findings if self.strict or one.severity == "error"]
        if failing:
            raise Broken("\n".join(_words(one) for one in failing))
        if self.skips:
            pytest.skip(self.reason or "not judged")
        for one in self.findings:
            self.warn(CapcheckWarning(_words(one)))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Findings as they are; anything else as pytest shows it."""
        if isinstance(excinfo.value, Broken):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the finding stands."""
        line = self.findings[0].place.line - 1 if self.findings else 0
        return self.path, max(0, line), self.name


def _words(finding: Finding) -> str:
    """The finding as text reports have it, safe for a terminal."""
    from capcheck.printable import printable

    lines = [f"{finding.place.start}: {finding.severity}: {finding.message} [{finding.rule}]"]
    if finding.arithmetic:
        lines.append(f"   = arithmetic: {finding.arithmetic}")
    if finding.help:
        lines.append(f"   = help: {' · '.join(finding.help)}")
    return "\n".join(printable(line) for line in lines)
