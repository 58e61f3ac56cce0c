"""A plugin with one of everything, for tests of sessions: engine, part, model, rules, formats."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from core_fakes import FakeEngine, architecture, term

from capcheck import (
    ARGS,
    Case,
    Catalogue,
    Desk,
    Document,
    Draft,
    Engine,
    Fail,
    Format,
    FoundModel,
    Margin,
    Pass,
    Result,
    Rule,
    Shelf,
    Terms,
    Words,
    flatten,
    hookimpl,
    places_of,
    rule,
)
from capcheck.findings import Answer
from capcheck.source import Mapping as MappingNode

CARD = {
    "name": "Card", "memory_class": "hbm", "memory_gb": 24, "bandwidth_gb_s": 1000,
    "visible_factor": 1.0, "tflops": {"bf16": 100}, "sources": ["made up"], "features": ["bf16"],
}  # fmt: skip
PARTS = (
    {"id": "acme/card", **CARD, "aliases": ["Acme-Card"]},
    {"id": "acme/card-16gb", **CARD, "memory_gb": 16, "aliases": ["Card of two sizes"]},
    {"id": "acme/card-32gb", **CARD, "memory_gb": 32, "aliases": ["Card of two sizes"]},
)
FITS = """
apiVersion: capcheck/v1
kind: Deployment
name: d
model: {id: acme/tiny}
hardware: {accelerator: acme/card, count: 1}
engine: {name: fake, version: "1.0", args: {length: 8192}}
"""


def _file(name: str, records: Iterable[Mapping[str, Any]]) -> Path:
    path = Path(tempfile.mkdtemp()) / name
    path.write_text("".join(f"{json.dumps(one)}\n" for one in records), encoding="utf-8")
    return path


@rule(
    "fake/one-request",
    title="One request fits",
    why="It has to.",
    fix="Shorten it.",
    fails=FITS.replace("8192", "65536"),
    passes=FITS,
    knobs=("max_request_tokens", "kv_dtype", "tensor"),
)
def one_request(case: Case, t: Terms) -> Answer:
    length = case.plan.max_request_tokens
    need = case.kv().request_bytes(length.get("length"))
    return Margin(case.ledger(t).kv, need, "B", length, lambda *_: Words("it does not fit"))


@rule(
    "fake/devices",
    title="There are enough devices",
    why="There have to be.",
    fix="Add some.",
    fails=FITS.replace("length: 8192", "tensor: 2"),
    passes=FITS,
)
def devices(case: Case, t: Terms) -> Answer:
    count = case.deployment.count("hardware", "count")
    if count is None or case.plan.devices <= count.get("devices"):
        return Pass()
    return Fail(count, "too few devices")


@rule(
    "fake/options",
    title="Options are known",
    why="Others are refused.",
    fix="Remove them.",
    fails=FITS.replace("length: 8192", "lenght: 8192"),
    passes=FITS,
    severity="warning",
)
def options(case: Case, t: Terms) -> Answer:
    known = {"length", "sequences", "tensor", "pipeline", "data", "kv"}
    return tuple(
        Fail(value, f"{path[0]} is no option")
        for path, value in case.deployment.under(*ARGS).items()
        if path[0] not in known
    )


RULES: tuple[Rule, ...] = (one_request, devices, options)


class Models:
    def find(self, name: str, catalogue: Catalogue) -> FoundModel | None:
        del catalogue
        if name not in ("acme/tiny", "acme/small"):
            return None
        return FoundModel(architecture()._replace(id=name), "exact", "plain")

    def near(self, name: str, catalogue: Catalogue) -> tuple[str, ...]:
        del catalogue
        return ("acme/tiny",) if "tin" in name else ()

    def build(self, config: Mapping[str, Any], name: str) -> FoundModel:
        if config.get("model_type") != "tiny":
            raise ValueError(f"model_type is {config.get('model_type')!r}")
        return FoundModel(architecture()._replace(id=name), "config.json", "plain")


class FakeConfig(Format):
    """`fake: true` and the engine's options."""

    name = "fake-config"
    title = "the fake engine's own file"
    engine_config = "fake"

    def claims(self, document: Document) -> bool:
        return isinstance(document.root, MappingNode) and document.root.get("fake") is not None

    def read(self, desk: Desk) -> Iterable[Draft]:
        root = desk.document.root
        fields = {
            (*ARGS, *path): value for path, value in flatten(root).items() if path != ("fake",)
        }
        places = {(*ARGS, *path): place for path, place in places_of(root).items()}
        return [Draft("fake", self.name, root.place, fields, places)]


@hookimpl
def capcheck_engines() -> Iterable[Engine]:
    return [FakeEngine()]


@hookimpl
def capcheck_rules() -> Iterable[Rule]:
    return RULES


@hookimpl
def capcheck_check(case: Case) -> Iterable[Result]:
    return case.run(*RULES)


@hookimpl
def capcheck_families() -> Iterable[Models]:
    return [Models()]


@hookimpl
def capcheck_formats() -> Iterable[Format]:
    return [FakeConfig()]


@hookimpl
def capcheck_catalogues() -> Iterable[Shelf]:
    return [Shelf("accelerator", _file("parts.jsonl", PARTS), "acme")]


@hookimpl
def capcheck_terms() -> Iterable[Path]:
    return [_file("terms.jsonl", [term("fake.weights", 0.99, 1, 1.01)])]
