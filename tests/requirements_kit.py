"""What the tests of the sizing guides' examples share: specs in a line, and the command line."""

from __future__ import annotations

import json
import sys
from typing import Any

import pytest

from capcheck.cli import main
from capcheck.findings import Finding
from capcheck.report import DeploymentReport
from capcheck.testing import run

LLAMA_8B = 8_030_261_248  # parameters
LLAMA_70B = 70_553_706_496
LLAMA_8B_BATCH = ("meta-llama/Llama-3.1-8B-Instruct", "--context", "8192", "--sequences", "16")


def spec(
    model: str,
    accelerator: str,
    count: int = 1,
    *,
    args: str = "",
    precision: str = "",
    workload: str = "",
    version: str = "",
    more: str = "",
) -> str:
    """A deployment: with a version it names vLLM, without one it names no engine."""
    weights = f", weights: {{precision: {precision}}}" if precision else ""
    engine = f"engine:\n  args: {{{args}}}\n" if args else ""
    if version:
        engine = f'engine:\n  name: vllm\n  version: "{version}"\n  args: {{{args}}}\n'
    return (
        "apiVersion: capcheck/v1\nkind: Deployment\nname: example\n"
        f"model: {{id: {model}{weights}}}\n"
        f"hardware: {{accelerator: {accelerator}, count: {count}}}\n"
        f"{engine}{f'workload: {workload}' if workload else ''}\n{more}"
    )


def checked(text: str) -> tuple[DeploymentReport, dict[str, Finding]]:
    """The deployment's report, and its findings by rule."""
    report = run({"spec.yaml": text})
    (deployment,) = report.deployments
    return deployment, {one.rule: one for one in report.findings}


def verdicts(text: str) -> dict[str, str]:
    return {one.rule: one.verdict for one in checked(text)[0].checks}


class Terminal:
    """The command line, and what it prints."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self.monkeypatch = monkeypatch
        self.capsys = capsys

    def prints(self, *words: str) -> str:
        self.monkeypatch.setattr(sys, "argv", ["capcheck", *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert end.value.code == 0
        return self.capsys.readouterr().out

    def fit(self, *words: str) -> dict[str, Any]:
        """The figures of `capcheck fit` for programs."""
        figures: dict[str, Any] = json.loads(self.prints("fit", *words, "--format", "json"))
        return figures
