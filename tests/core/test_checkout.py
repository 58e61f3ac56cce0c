"""What differs between a wheel and a checkout: where the schemas and the plugins are found."""

from __future__ import annotations

from importlib.metadata import entry_points
from pathlib import Path

import capcheck
from capcheck.schemas_home import root, schema_names

CHECKOUT = Path(__file__).parents[2]


def test_schemas_are_found() -> None:
    assert {"deployment", "report", "config", "terms", "accelerator", "model"} <= set(
        schema_names()
    )
    packaged = Path(capcheck.__file__).parent / "_schemas"
    assert root() == (packaged if packaged.is_dir() else CHECKOUT / "schemas")


def test_every_plugin_package_has_its_entry_point() -> None:
    declared = {entry.value for entry in entry_points(group="capcheck")}
    folders = {path.name for path in (CHECKOUT / "plugins").iterdir() if path.is_dir()}
    assert {one for one in declared if one in folders} == folders - {"__pycache__"}
