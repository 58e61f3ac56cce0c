"""The plugin of the plugin page works as it stands there, its own tests included."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from docpages import shell

from capcheck.testing import check

PROJECT = Path(__file__).resolve().parents[2]
PAGE = (PROJECT / "docs" / "plugins.md").read_text(encoding="utf-8")


@pytest.fixture
def example(tmp_path: Path) -> Path:
    for block in shell.blocks(PAGE):
        if block.title:
            path = tmp_path / block.title
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(block.text, encoding="utf-8")
    return tmp_path


def test_its_own_tests_pass(example: Path) -> None:
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    done = subprocess.run(command, cwd=example, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
    assert "2 passed" in done.stdout


def test_its_rule_finds_what_the_example_says(example: Path) -> None:
    spec = (example / "deploy" / "chat.yaml").read_text(encoding="utf-8")
    findings = check(spec, plugin=str(example / "acme_racks.py"))
    assert [one.rule for one in findings] == ["acme/rack-power"]
    assert findings[0].place.start.endswith(":5:41")


def test_its_code_is_annotated_and_clean(example: Path) -> None:
    """Compiles without a warning, and every function says what it takes and gives."""
    import ast

    tree = ast.parse((example / "acme_racks.py").read_text(encoding="utf-8"))
    functions = [one for one in ast.walk(tree) if isinstance(one, ast.FunctionDef)]
    assert functions
    for one in functions:
        assert one.returns is not None
        assert all(argument.annotation is not None for argument in one.args.args)
