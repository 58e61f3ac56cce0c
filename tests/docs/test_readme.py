"""The README's commands are the ones that work, and that continuous integration runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import yaml
from docpages import shell

from capcheck import cli

PROJECT = Path(__file__).resolve().parents[2]
README = (PROJECT / "README.md").read_text(encoding="utf-8")
FOLD = 45  # lines of a screen


def _commands(language: str) -> list[str]:
    found = [one.text for one in shell.blocks(README) if one.language == language]
    return [line for text in found for line in text.splitlines() if line]


def test_a_finding_stands_above_the_fold() -> None:
    screen = "\n".join(README.splitlines()[:FOLD])
    assert re.search(r"^[\w./-]+:\d+:\d+: error: .+ \[[\w-]+/[\w-]+\]$", screen, re.MULTILINE)
    assert re.search(r"^   = arithmetic: ", screen, re.MULTILINE)
    assert re.search(r"^   = help: ", screen, re.MULTILINE)


def test_two_commands_set_up_and_one_tests() -> None:
    assert _commands("sh") == [
        "python3 -m venv .venv",
        ".venv/bin/pip install -e '.[dev]'",
        ".venv/bin/tox",
    ]


def test_continuous_integration_runs_the_same_commands() -> None:
    script = (PROJECT / ".ci" / "run").read_text(encoding="utf-8").splitlines()
    assert [line for line in script if line in _commands("sh")] == _commands("sh")


def test_the_set_up_has_what_its_commands_need() -> None:
    """Every program that the README starts is installed by its second command."""
    import tomllib

    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = " ".join(project["optional-dependencies"]["dev"])
    programs = {
        word.removeprefix(".venv/bin/")
        for command in [*_commands("sh"), *_commands("console")]
        for word in command.removeprefix("$ ").split()[:1]
        if word.startswith(".venv/bin/")
    }
    assert programs == {"pip", "tox", "capcheck"}
    assert "tox" in extras
    assert set(project["scripts"]) == {"capcheck"}


def test_the_exit_codes_are_those_of_the_program() -> None:
    rows = re.findall(r"^\| (\d) \| (.+) \|$", README, re.MULTILINE)
    assert [int(code) for code, _ in rows] == [cli.OK, cli.FINDINGS, cli.FAULT]


def test_the_verbs_are_those_of_the_program() -> None:
    from capcheck.arguments import VERBS

    named = set(re.findall(r"^capcheck ([a-z]+)\b", README, re.MULTILINE))
    assert named == set(VERBS) - {"check"}


def test_the_yaml_that_is_shown_is_yaml() -> None:
    for block in shell.blocks(README):
        if block.language == "yaml":
            assert yaml.safe_load(block.text)


def test_the_hook_checks_deployments_and_leaves_other_files_alone(tmp_path: Path) -> None:
    (hook,) = yaml.safe_load((PROJECT / ".pre-commit-hooks.yaml").read_text(encoding="utf-8"))
    assert hook["id"] in README
    (tmp_path / "other.yaml").write_text("a: 1\n", encoding="utf-8")
    shown = next(one for one in shell.blocks(README) if one.title)
    (tmp_path / shown.title).write_text(shown.text, encoding="utf-8")
    program, *options = hook["entry"].split()
    assert program == "capcheck"

    def exit_code(*files: str) -> int:
        command = [sys.executable, "-m", "capcheck.cli", *options, *files]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, check=False).returncode

    assert exit_code("other.yaml") == 0
    assert exit_code("other.yaml", shown.title) == 1
