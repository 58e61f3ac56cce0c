"""Every field of a spec with a value of every wrong kind: told at its place, and nothing breaks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from capcheck.config import Settings
from capcheck.plugins import Plugins
from capcheck.report import Finding
from capcheck.session import Session

SCHEMA = json.loads(
    (Path(__file__).parents[2] / "schemas" / "deployment.schema.json").read_text(encoding="utf-8")
)
WRONG: tuple[Any, ...] = (7, -1, "no such", [], [{"a": 1}, 3], {"a": {"b": []}}, True)
WHOLE: dict[str, Any] = {
    "apiVersion": "capcheck/v1",
    "kind": "Deployment",
    "name": "chat",
    "model": {"id": "meta-llama/Llama-3.1-8B-Instruct", "weights": {"precision": "bf16"}},
    "hardware": {"accelerator": "nvidia/h100-sxm5-80gb", "count": 1},
    "engine": {"name": "vllm", "version": "0.11.0", "args": {"max_model_len": 8192}},
    "workload": {"prompt_tokens": 900, "output_tokens": 100, "request_rate": {"mean": 1}},
    "objectives": {"ttft": {"p99": "2s"}, "tpot": {"p99": "60ms"}},
}


def paths(node: dict[str, Any], at: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """Each field that the schema has, by its path."""
    while "$ref" in node:
        node = SCHEMA["definitions"][node["$ref"].split("/")[-1]]
    if at:
        yield at
    for key, child in node.get("properties", {}).items():
        yield from paths(child, (*at, key))


def with_value(path: tuple[str, ...], value: Any) -> str:
    """The whole spec with one value put in place of what stands at the path."""
    spec = json.loads(json.dumps(WHOLE))
    at = spec
    for key in path[:-1]:
        if not isinstance(at.get(key), dict):
            at[key] = {}
        at = at[key]
    at[path[-1]] = value
    return yaml.safe_dump(spec, sort_keys=False)


@pytest.fixture(scope="module")
def plugins() -> Plugins:
    return Plugins()


def findings(plugins: Plugins, folder: Path, texts: list[str]) -> list[Finding]:
    for number, text in enumerate(texts):
        (folder / f"{number}.yaml").write_text(text, encoding="utf-8")
    return list(Session(plugins, Settings(), folder).run([folder]).findings)


@pytest.mark.parametrize("path", list(paths(SCHEMA)), ids=".".join)
def test_a_value_of_a_wrong_kind_breaks_no_plugin(
    path: tuple[str, ...], plugins: Plugins, tmp_path: Path
) -> None:
    found = findings(plugins, tmp_path, [with_value(path, wrong) for wrong in WRONG])
    broken = [f for f in found if f.rule == "capcheck/plugin-error"]
    assert not broken, broken[0].message
    told = {f.place.file for f in found if f.rule.startswith(("spec/", "capcheck/"))}
    assert path[0] in ("apiVersion", "kind") or len(told) >= 2, "nested ones are wrong everywhere"


def test_options_that_are_no_mapping_are_unknown(plugins: Plugins, tmp_path: Path) -> None:
    spec = with_value(("engine", "args"), ["--max-model-len", "8192"])
    found = findings(plugins, tmp_path, [spec])
    assert [f.rule for f in found if f.severity in ("error", "warning")] == ["spec/schema"]
