"""The speed benchmark prints a figure for each of its rows, and judges none."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PROJECT = Path(__file__).parents[2]
SCRIPT = PROJECT / "benchmarks" / "speed.py"
SPEC = """\
apiVersion: capcheck/v1
kind: Deployment
name: tiny
model: {id: meta-llama/Llama-3.2-1B-Instruct}
hardware: {accelerator: nvidia/l4, count: 1}
"""


def _run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(SCRIPT), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_every_row_has_its_figures(tmp_path: Path) -> None:
    file = tmp_path / "tiny.yaml"
    file.write_text(SPEC, encoding="utf-8")
    done = _run(str(file), "--runs", "1")
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^(.+?)  +(\d+\.\d) ms +\d+\.\d ms +(\d+\.\d)", done.stdout, re.MULTILINE)
    assert [title.split(",")[0].split(" /")[0] for title, _, _ in rows][:4] == [
        "python -c pass", "capcheck --version", "capcheck --help", "capcheck rules",
    ]  # fmt: skip
    assert len(rows) == 6
    assert all(float(figure) > 0 for _, figure, _ in rows)
    assert float(rows[0][2]) == 1.0
    assert len(re.findall(r"a load state +\d+\.\d\d ms ", done.stdout)) == 4
    assert re.search(r"the first deployment +\d+\.\d ms  tiny", done.stdout)


def test_a_path_that_is_not_there_is_refused() -> None:
    done = _run("nowhere.yaml")
    assert done.returncode == 2
    assert "no such file or folder" in done.stderr
