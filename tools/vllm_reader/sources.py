"""Published vLLM sources: fetched with pip, kept as plain files, never executed.

pip cannot download a source distribution without preparing its metadata, which would run the
project's own build code. Here pip works for an environment that has no build backend, so it
unpacks the archive and then stops; `--no-clean` keeps what it unpacked.
"""

from __future__ import annotations

import ast
import os
import shutil
import subprocess
import sys
import tempfile
import time
import venv
import zipfile
from pathlib import Path
from typing import NamedTuple

PROJECT = "vllm"
UNREAD = ("model_executor/models/", "third_party/")
WHEEL_TAGS = ("--python-version", "3.12", "--platform", "manylinux_2_31_x86_64")


class Imported(NamedTuple):
    """A name that a module takes from another one; `name` is empty for a module itself."""

    module: str
    name: str


class Module(NamedTuple):
    """One parsed file: what it defines at top level (as it is at run time) and what it imports."""

    name: str
    definitions: dict[str, ast.AST]
    imports: dict[str, Imported]
    stars: list[str]  # modules of `from x import *`


def _type_checking(test: ast.expr) -> bool:
    return ast.unparse(test).endswith("TYPE_CHECKING")


def _package_of(name: str, is_package: bool, level: int) -> str:
    parts = name.split(".")
    drop = level - 1 if is_package else level
    return ".".join(parts[: len(parts) - drop]) if drop else name


def _collect_import(node: ast.Import | ast.ImportFrom, module: Module, is_package: bool) -> None:
    if isinstance(node, ast.Import):
        for alias in node.names:
            local = alias.asname or alias.name.split(".")[0]
            module.imports[local] = Imported(alias.name if alias.asname else local, "")
        return
    origin = node.module or ""
    if node.level:
        package = _package_of(module.name, is_package, node.level)
        origin = f"{package}.{origin}" if origin else package
    for alias in node.names:
        if alias.name == "*":
            module.stars.append(origin)
        else:
            module.imports[alias.asname or alias.name] = Imported(origin, alias.name)


def _collect(body: list[ast.stmt], module: Module, is_package: bool) -> None:
    for node in body:
        match node:
            case ast.ClassDef() | ast.FunctionDef() | ast.AsyncFunctionDef():
                module.definitions[node.name] = node
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                module.definitions[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
                module.definitions[name] = value
            case ast.Import() | ast.ImportFrom():
                _collect_import(node, module, is_package)
            case ast.If(test=test, body=inner, orelse=other):
                if not _type_checking(test):
                    _collect(inner, module, is_package)
                _collect(other, module, is_package)
            case ast.Try(body=inner):
                _collect(inner, module, is_package)
            case _:
                continue


class Tree:
    """The Python files of one release, parsed on demand."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self._modules: dict[str, Module | None] = {}

    def module(self, name: str) -> Module | None:
        """The module `name`, or None if the release does not ship it."""
        if name not in self._modules:
            self._modules[name] = self._read(name)
        return self._modules[name]

    def _read(self, name: str) -> Module | None:
        base = self.root.joinpath(*name.split("."))
        for path, is_package in ((base / "__init__.py", True), (base.with_suffix(".py"), False)):
            if path.is_file():
                module = Module(name, {}, {}, [])
                _collect(ast.parse(path.read_text("utf-8")).body, module, is_package)
                return module
        return None

    def find(self, module: str, name: str) -> tuple[Module, ast.AST] | None:
        """Where `name` is really defined, followed through imports."""
        seen: set[tuple[str, str]] = set()
        while (module, name) not in seen:
            seen.add((module, name))
            here = self.module(module)
            if here is None:
                return None
            if name in here.definitions:
                return here, here.definitions[name]
            source = here.imports.get(name)
            if source is None:
                return next(filter(None, (self.find(star, name) for star in here.stars)), None)
            if not source.name:
                return None
            module, name = source
        return None


def _without_build_backend(scratch: Path) -> str:
    """The interpreter of a new environment in which nothing is installed."""
    folder = scratch / "no-backend"
    venv.EnvBuilder(with_pip=False).create(folder)
    return str(folder / ("Scripts" if os.name == "nt" else "bin") / "python")


def _pip(*words: str, scratch: Path) -> str:
    run = subprocess.run(
        [sys.executable, "-m", "pip", *words],
        env={**os.environ, "TMPDIR": str(scratch)},
        capture_output=True,
        text=True,
        check=False,
    )
    return run.stdout + run.stderr


def published() -> tuple[str, ...]:
    """Every published release, newest first. Raises RuntimeError when the index gives none."""
    with tempfile.TemporaryDirectory() as scratch:
        answer = _pip("index", "versions", PROJECT, scratch=Path(scratch))
    line = next((line for line in answer.splitlines() if line.startswith("Available")), "")
    versions = tuple(word.strip() for word in line.partition(":")[2].split(",") if word.strip())
    if not versions:
        raise RuntimeError(f"no releases of {PROJECT} on the index: {answer[-400:]}")
    return versions


def _keep(source: Path, target: Path, date: str) -> None:
    for path in source.joinpath(PROJECT).rglob("*.py"):
        if path.relative_to(source / PROJECT).as_posix().startswith(UNREAD):
            continue
        copy = target / path.relative_to(source)
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, copy)
    target.joinpath("DATE").write_text(date, "utf-8")


def _from_sdist(version: str, target: Path, scratch: Path) -> bool:
    bare = _without_build_backend(scratch)
    options = ("--no-deps", "--no-cache-dir", "--no-clean", "--ignore-requires-python")
    no_build = ("--no-binary", PROJECT, "--no-build-isolation")
    wanted = f"{PROJECT}=={version}"
    _pip("--python", bare, "download", *options, *no_build, wanted, scratch=scratch)
    marker = next(scratch.glob(f"pip-*/{PROJECT}_*/PKG-INFO"), None)
    if marker is None:
        return False
    _keep(marker.parent, target, time.strftime("%Y-%m-%d", time.gmtime(marker.stat().st_mtime)))
    return True


def _from_wheel(version: str, target: Path, scratch: Path) -> bool:
    options = ("--no-deps", "--no-cache-dir", "--ignore-requires-python", "-d", str(scratch))
    only = ("--only-binary", PROJECT, *WHEEL_TAGS)
    _pip("download", *options, *only, f"{PROJECT}=={version}", scratch=scratch)
    wheel = next(scratch.glob("*.whl"), None)
    if wheel is None:
        return False
    with zipfile.ZipFile(wheel) as archive:
        members = [name for name in archive.namelist() if name.startswith(f"{PROJECT}/")]
        archive.extractall(scratch, [name for name in members if name.endswith(".py")])
        stamp = archive.getinfo(f"{PROJECT}/__init__.py").date_time
        _keep(scratch, target, "{:04}-{:02}-{:02}".format(*stamp))
    return True


def fetch(version: str, folder: Path, wheels: bool) -> Path | None:
    """The Python files of one release under `folder`, downloaded unless they are there already.

    Releases without a source distribution come from the (large) wheel, if `wheels`; None if
    neither is to be had.
    """
    target = folder / version
    if target.joinpath("DATE").is_file():
        return target
    with tempfile.TemporaryDirectory() as scratch:
        if _from_sdist(version, target, Path(scratch)):
            return target
        if wheels and _from_wheel(version, target, Path(scratch)):
            return target
    return None
