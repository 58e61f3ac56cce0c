"""Examples of a page: the files it shows, and the commands it shows with what they print.

A fenced block with a title is a file:   ```yaml title="deploy/chat.yaml"
A `console` block is a session: each line that begins with `$ ` is a command, what follows it is
what it prints, both streams in the order of a terminal. A page's blocks run from top to bottom
in one folder, which holds the page's files, a copy of the project's `specs/` and, as `.venv/bin`,
the programs of this interpreter.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

_FENCE = re.compile(r"^```([^\n`]*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_TITLE = re.compile(r'\btitle="([^"]+)"')
_PROMPT, _MORE = "$ ", "> "
_CRASH = "Traceback (most recent call last)"
_MARK = "\x1e"  # stands between the outputs of two commands


class Block(NamedTuple):
    """One fenced block: its language, its file's name ("" for none), its text and where."""

    language: str
    title: str
    text: str
    start: int
    end: int


def blocks(page: str) -> Iterator[Block]:
    """The fenced blocks of a page."""
    for found in _FENCE.finditer(page):
        title = _TITLE.search(found[1])
        language = found[1].split()[0] if found[1].split() else ""
        yield Block(language, title[1] if title else "", found[2], found.start(2), found.end(2))


def commands(session: str) -> list[str]:
    """The commands of a session; a line that begins with `> ` goes on with the one before."""
    found: list[str] = []
    for line in session.splitlines():
        if line.startswith(_PROMPT):
            found.append(line.removeprefix(_PROMPT))
        elif line.startswith(_MORE) and found and found[-1].endswith("\\"):
            found[-1] += f"\n{line.removeprefix(_MORE)}"
    return found


def environment() -> dict[str, str]:
    """The caller's, with this interpreter's programs in front and nothing that changes a run."""
    kept = {name: text for name, text in os.environ.items() if not name.startswith("CAPCHECK_")}
    for name in ("FORCE_COLOR", "PYTHONUNBUFFERED"):
        kept.pop(name, None)
    programs = os.pathsep.join((str(Path(sys.executable).parent), kept.get("PATH", "")))
    return {**kept, "PATH": programs, "NO_COLOR": "1", "PYTHONUTF8": "1"}


def run(session: str, folder: Path) -> str:
    """The session with what its commands print now. Raises RuntimeError when the shell fails."""
    asked = commands(session)
    script = "".join(f"{one}\nlast=$?; printf '{_MARK}'; (exit $last)\n" for one in asked)
    done = subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment(), check=False, text=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL,
    )  # fmt: skip
    printed = done.stdout.split(_MARK)
    if len(printed) != len(asked) + 1:
        raise RuntimeError(f"the shell gave up in {session!r}: {done.stdout}")
    crashed = next((one for one in printed if _CRASH in one), None)
    if crashed is not None:
        raise RuntimeError(f"a command crashed in {session!r}: {crashed}")
    lines = []
    for command, output in zip(asked, printed, strict=False):
        lines.append(_PROMPT + command.replace("\n", f"\n{_MORE}"))
        lines += [line.rstrip() for line in output.replace(f"{folder}/", "").splitlines()]
    return "\n".join(lines) + "\n"


def _set_up(folder: Path, files: Mapping[str, str], project: Path) -> None:
    (folder / ".venv").mkdir()
    (folder / ".venv" / "bin").symlink_to(Path(sys.executable).parent)
    if (project / "specs").is_dir():
        shutil.copytree(project / "specs", folder / "specs")
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")


def replayed(page: str, project: Path) -> str:
    """The page with every session run anew."""
    found = list(blocks(page))
    sessions = [one for one in found if one.language == "console"]
    if not sessions:
        return page
    files = {one.title: one.text for one in found if one.title}
    with tempfile.TemporaryDirectory(prefix="capcheck-docs-") as name:
        folder = Path(name).resolve()
        _set_up(folder, files, project)
        outputs = [run(one.text, folder) for one in sessions]
    for one, output in reversed(list(zip(sessions, outputs, strict=True))):
        page = page[: one.start] + output + page[one.end :]
    return page
