"""The reader of the launcher's sources that the option table is made with."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

TOOLS = Path(__file__).parents[3] / "tools"
OLD = """
enum Packing {
    Awq,
    #[clap(name = "bits-and-bytes")]
    Bnb,
}

struct Args {
    /// What is served
    #[clap(default_value = "acme/tiny", long, env)]
    model_id: String,
    #[clap(long, env, value_enum)]
    packing: Option<Packing>,
    #[clap(default_value = "128", long, env)]
    requests: usize,
    #[clap(long, env)]
    split: Option<bool>,
    #[clap(long, env)]
    trust: bool,
}
"""
NEW = OLD.replace('"128"', '"64"').replace("    trust: bool,", "    ratio: Option<f32>,")


@pytest.fixture
def tool(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(str(TOOLS))
    sys.modules.pop("tgi_options", None)
    return importlib.import_module("tgi_options")


def _record(tool: ModuleType, name: str) -> Any:
    by_release = {}
    for release, source in (("1.0.0", OLD), ("2.0.0", NEW)):
        found = tool.fields(source)
        if name in found:
            by_release[release] = (source, found[name])
    return tool.record(name, ["1.0.0", "2.0.0"], by_release)


def test_fields_with_types_and_defaults(tool: ModuleType) -> None:
    found = tool.fields(OLD)
    assert list(found) == ["model_id", "packing", "requests", "split", "trust"]
    assert tool.default_of(found["requests"]) == 128
    assert tool.default_of(found["model_id"]) == "acme/tiny"
    assert tool.default_of(found["trust"]) is False
    assert tool.default_of(found["split"]) is None
    assert tool.shape_of(found["split"]) == {"type": "bool", "optional_value": True}
    assert tool.shape_of(found["requests"]) == {"type": "int", "bounds": {"ge": 0}}
    assert tool.choices_of(OLD, found["packing"]) == ["awq", "bits-and-bytes"]


def test_history_of_a_default(tool: ModuleType) -> None:
    assert _record(tool, "requests")["defaults"] == [["1.0.0", 128], ["2.0.0", 64]]


def test_edges(tool: ModuleType) -> None:
    gone, come = _record(tool, "trust"), _record(tool, "ratio")
    assert (gone["last"], gone["gone"]) == ("1.0.0", "2.0.0")
    assert (come["before_first"], come["first"]) == ("1.0.0", "2.0.0")
