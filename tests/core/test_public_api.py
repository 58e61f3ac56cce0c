"""What plugins may import: the names of capcheck, its public modules, and their own package."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path

import pytest

import capcheck

PLUGINS = sorted(
    entry.value for entry in entry_points(group="capcheck") if entry.value.startswith("capcheck_")
)


def _imports(package: str) -> Iterator[tuple[str, str]]:
    """(file, module) of every absolute import in a plugin package."""
    folder = Path(str(import_module(package).__file__)).parent
    for file in sorted(folder.rglob("*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module and not node.level:
                yield file.name, node.module
            elif isinstance(node, ast.Import):
                yield from ((file.name, name.name) for name in node.names)


@pytest.mark.parametrize("package", PLUGINS)
def test_plugins_import_only_the_public_api(package: str) -> None:
    for file, module in _imports(package):
        top, _, rest = module.partition(".")
        if top == "capcheck":
            assert not rest or rest.split(".")[0] in capcheck.PUBLIC_MODULES, f"{file}: {module}"
        else:
            assert top == package or top in sys.stdlib_module_names, f"{file}: {module}"


def test_the_machinery_imports_neither_plugins_nor_physics() -> None:
    folder = Path(str(capcheck.__file__)).parent
    for file in folder.rglob("*.py"):
        if "physics" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module:
                assert not node.module.startswith(("capcheck_", "capcheck.physics")), file.name


def test_every_exported_name_is_there_and_documented() -> None:
    for name in capcheck.__all__:
        found = getattr(capcheck, name)
        if callable(found) and not isinstance(found, type(None)):
            assert found.__doc__, name


def test_no_module_hides_an_exported_name() -> None:
    modules = {file.stem for file in Path(str(capcheck.__file__)).parent.glob("*.py")}
    assert not modules & set(capcheck.__all__)


@pytest.mark.parametrize("name", capcheck.PUBLIC_MODULES)
def test_public_modules_import_alone(name: str) -> None:
    assert import_module(f"capcheck.{name}").__doc__
