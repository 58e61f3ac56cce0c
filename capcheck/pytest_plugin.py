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
    from capcheck.session import Session

SUFFIXES = (".yaml", ".yml", ".json")


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


def _session(config: pytest.Config, path: Path) -> Session:
    from capcheck import config as configuration
    from capcheck.files import root_of
    from capcheck.intake import ASSUMABLE
    from capcheck.plugins import Plugins
    from capcheck.session import Session

    assume = dict(
        configuration.parse_assumption(one) for one in config.getoption("--capcheck-assume")
    )
    settings = configuration.settings(
        configuration.load(path), {}, {"assume": assume} if assume else {}, assumable=ASSUMABLE
    )
    plugins = Plugins(extra=settings.plugins, without=settings.no_plugins)
    return Session(plugins, settings, root_of(path))


class DeploymentFile(pytest.File):
    """One file: an item for each deployment and rule, and one for what is wrong with the file."""

    def collect(self) -> Iterator[pytest.Item]:
        """Read and check the file, once."""
        session = _session(self.config, self.path)
        report = session.run([self.path])
        by_item: dict[tuple[str, str], list[Finding]] = {}
        for finding in report.findings:
            by_item.setdefault((finding.deployment, finding.rule), []).append(finding)
        seen = set()
        if session.intake.taken:
            for deployment in report.deployments:
                for check in deployment.checks:
                    key = (deployment.name, check.rule)
                    seen.add(key)
                    yield self._item(key, by_item.get(key, []), check.verdict, check.reason)
        for key, findings in by_item.items():
            if key not in seen and findings[0].rule != "capcheck/unclaimed":
                yield self._item(key, findings, "fail", None)

    def _item(
        self,
        key: tuple[str, str],
        findings: list[Finding],
        verdict: str,
        reason: str | None,
    ) -> pytest.Item:
        deployment, rule = key
        name = f"{deployment}::{rule}" if deployment else rule
        item: RuleItem = RuleItem.from_parent(self, name=name)
        item.findings, item.verdict, item.reason = findings, verdict, reason or ""
        return item


class RuleItem(pytest.Item):
    """One rule on one deployment. Errors fail, warnings pass with a note, skips skip."""

    findings: list[Finding]
    verdict: str
    reason: str

    def runtest(self) -> None:
        """Raise what was found when the file was collected."""
        errors = [one for one in self.findings if one.severity == "error"]
        if errors:
            raise Broken("\n".join(_words(one) for one in errors))
        if self.verdict == "skip":
            pytest.skip(self.reason or "not judged")
        for one in self.findings:
            self.add_report_section("call", "capcheck", _words(one))

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
    lines = [f"{finding.place.start}: {finding.severity}: {finding.message} [{finding.rule}]"]
    if finding.arithmetic:
        lines.append(f"   = arithmetic: {finding.arithmetic}")
    if finding.help:
        lines.append(f"   = help: {' · '.join(finding.help)}")
    return "\n".join(lines)
