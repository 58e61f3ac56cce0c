"""The command line in a repository of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
from catalogue_kit import Run


@pytest.fixture
def run(tmp_path: Path) -> Run:
    """The command line in a repository."""
    (tmp_path / "capcheck.toml").write_text("", encoding="utf-8")

    def call(*words: str, code: int | None = 0, **more: str) -> subprocess.CompletedProcess[str]:
        kept = {key: text for key, text in os.environ.items() if not key.startswith("CAPCHECK_")}
        done = subprocess.run(
            [sys.executable, "-m", "capcheck.cli", *words], cwd=tmp_path, text=True, check=False,
            capture_output=True, env={**kept, "SOURCE_DATE_EPOCH": "1790000000", **more},
        )  # fmt: skip
        assert code is None or done.returncode == code, done.stdout + done.stderr
        return done

    return call
