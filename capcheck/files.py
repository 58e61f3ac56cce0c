"""Which files a run reads: given paths, folders walked, and the root none may leave."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from capcheck.selection import matches

SUFFIXES = frozenset({".yaml", ".yml", ".json"})
SKIPPED_FOLDERS = frozenset({
    ".git", ".hg", ".svn", ".tox", ".nox", ".venv", "venv", "node_modules", "__pycache__",
    ".mypy_cache", ".pytest_cache", ".ruff_cache", "site-packages", ".terraform",
})  # fmt: skip
CONFIGURATIONS = ("capcheck.toml", "pyproject.toml")
MOST_FILES = 20_000


class Given(NamedTuple):
    """A file to read. `explicit`: the user named it, so it must be something."""

    path: Path
    explicit: bool


class Missing(NamedTuple):
    """A path that cannot be read, and why."""

    path: Path
    why: str


def root_of(path: Path) -> Path:
    """The nearest folder above that holds a configuration or `.git`, else the given folder."""
    folder = path if is_dir(path) else path.parent
    folder = _real(folder)
    for above in (folder, *folder.parents):
        if _marks_root(above):
            return above
    return folder


def is_dir(path: Path) -> bool:
    """Whether it is a folder; what cannot be asked about is none."""
    try:
        return path.is_dir()
    except (OSError, ValueError):
        return False


def _marks_root(folder: Path) -> bool:
    try:
        if (folder / ".git").exists() or (folder / "capcheck.toml").is_file():
            return True
        project = folder / "pyproject.toml"
        return project.is_file() and "[tool.capcheck" in project.read_text("utf-8", "replace")
    except OSError:
        return False


def _excluded(path: Path, root: Path, patterns: Sequence[str]) -> bool:
    try:
        shown = path.relative_to(root).as_posix()
    except ValueError:
        shown = path.as_posix()
    return any(matches(pattern, shown) for pattern in patterns)


def walk(
    folder: Path, root: Path, exclude: Sequence[str] = (), lost: list[Missing] | None = None
) -> Iterator[Path]:
    """Files below a folder that may be deployments, in a stable order.

    Links to folders are not followed. Folders that cannot be read are added to `lost`.
    """

    def missed(wrong: OSError) -> None:
        if lost is not None:
            lost.append(Missing(Path(str(wrong.filename)), wrong.strerror or str(wrong)))

    for here, folders, names in os.walk(folder, onerror=missed):
        base = Path(here)
        folders[:] = sorted(
            name
            for name in folders
            if name not in SKIPPED_FOLDERS
            and not (base / name).is_symlink()
            and not _excluded(base / name, root, exclude)
        )
        for name in sorted(names):
            path = base / name
            if path.suffix.lower() in SUFFIXES and not _excluded(path, root, exclude):
                yield path


def _real(path: Path) -> Path:
    """The file that a path leads to; itself when it leads in a circle."""
    try:
        return path.resolve()
    except (OSError, RuntimeError):
        return path.absolute()


def _why_missing(path: Path) -> str:
    """Why a path that is no folder cannot be read as a file; "" when it can."""
    try:
        if path.is_file():
            return ""
        if path.exists():
            return "neither a regular file nor a folder: pipe it in as -"
        return "a link that leads nowhere" if path.is_symlink() else "no such file or folder"
    except (OSError, ValueError) as wrong:
        return getattr(wrong, "strerror", None) or str(wrong)


def collect(
    paths: Iterable[Path], root: Path, exclude: Sequence[str] = ()
) -> tuple[list[Given], list[Missing]]:
    """Every file of the given paths once, and what cannot be had."""
    files: dict[Path, Given] = {}
    missing: list[Missing] = []
    for path in paths:
        if is_dir(path):
            for found in walk(path, root, exclude, missing):
                files.setdefault(_real(found), Given(found, explicit=False))
                if len(files) > MOST_FILES:
                    missing.append(Missing(path, f"more than {MOST_FILES:,} files"))
                    return list(files.values()), missing
            continue
        why = _why_missing(path)
        if why:
            missing.append(Missing(path, why))
        else:
            files[_real(path)] = Given(path, explicit=True)
    return list(files.values()), missing


def inside(target: Path, root: Path) -> bool:
    """Whether a path stays under the root once links are resolved."""
    try:
        target.resolve().relative_to(root.resolve())
    except (ValueError, OSError, RuntimeError):
        return False
    return True


def shown(path: Path, root: Path) -> str:
    """A path as reports carry it: relative to the root, with forward slashes.

    A link that leads out of the root, or nowhere, has its own name.
    """
    leads_nowhere = path.is_symlink() and not _real(path).exists()
    for seen in (path.absolute() if leads_nowhere else _real(path), path.absolute()):
        if seen.is_relative_to(root.resolve()):
            return seen.relative_to(root.resolve()).as_posix()
    return path.as_posix()
