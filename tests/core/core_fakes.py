"""A small engine, model and part for tests of the machinery: nothing of the shipped plugins."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from math import ceil
from pathlib import Path
from typing import Any, TypeVar

from capcheck.architecture import Architecture
from capcheck.case import Case, Estimate, Model, Workshop
from capcheck.deployment import ARGS, Deployment, Draft, FieldPath
from capcheck.engine import (
    Change,
    Edit,
    Engine,
    KvLayout,
    Ledger,
    Line,
    MemoryPolicy,
    Plan,
    Release,
    Site,
    blank_plan,
)
from capcheck.guard import Guard
from capcheck.hardware import Accelerator, read_accelerator
from capcheck.packings import Packings
from capcheck.source import Mapping as MappingNode
from capcheck.source import Node, read_documents
from capcheck.terms import TermBook, Terms
from capcheck.values import Place, Value, default, unknown, written

T = TypeVar("T")
GIB = 2.0**30
FILE = "spec.yaml"
HERE = Place(FILE, 1, 1, 1, 11)
NAMES = {
    "max_request_tokens": "length", "max_sequences": "sequences", "kv_dtype": "kv",
    "tensor": "tensor",
}  # fmt: skip


class Text:
    """A file of terms that lies nowhere."""

    def __init__(self, text: str, name: str = "terms.jsonl") -> None:
        self.text = text
        self.name = name

    def read_text(self, encoding: str = "utf-8") -> str:
        return self.text


def text_file(text: str, name: str = "terms.jsonl") -> Any:
    """As a path that is only read."""
    return Text(text, name)


def term(name: str, low: float, mid: float, high: float, **more: Any) -> dict[str, Any]:
    return {
        "name": name, "low": low, "mid": mid, "high": high, "unit": "1", "cases": 9,
        "dated": "2026-11", "source": "made up", **more,
    }  # fmt: skip


def book(*records: Mapping[str, Any], owner: str = "acme") -> TermBook:
    text = "\n".join(json.dumps(record) for record in records)
    return TermBook([(text_file(text), owner)])


class FakeEngine(Engine):
    """Weights of 8 GiB over `tensor`; one token of KV takes a MiB, in fp8 half of it."""

    name = "fake"
    names = ("fake-server",)

    def releases(self, text: str | None, why: str) -> tuple[Release, ...]:
        if text is not None:
            return (Release(text, tuple(int(part) for part in text.split("."))),)
        return (
            Release("1", (1, 0), known=False, why=why), Release("2", (2, 0), known=False, why=why),
        )  # fmt: skip

    def plan(self, site: Site) -> Plan:
        deployment = site.deployment
        at = deployment.place_for(*ARGS)

        def count(name: str, otherwise: int) -> Value[int]:
            return deployment.count(*ARGS, name) or default(otherwise, at, "fake default")

        return blank_plan(unknown(at, "fake engines do not tell"))._replace(
            tensor=count("tensor", 1), pipeline=count("pipeline", 1), data=count("data", 1),
            expert=default(1, at, "default"), context=default(1, at, "default"),
            max_request_tokens=count("length", 4096), max_sequences=count("sequences", 8),
            kv_dtype=deployment.text(*ARGS, "kv") or default("bf16", at, "default"),
            memory=default(MemoryPolicy("fraction of total", 0.9), at, "default"),
            graphs=default(False, at, "default"),
        )  # fmt: skip

    def ledger(self, case: Case, t: Terms) -> Ledger:
        visible = case.accelerator.get("accelerator").nominal_bytes
        weights = 8 * GIB / case.plan.tensor.get() * t.read("fake.weights")
        return Ledger(
            visible, visible * 0.9, (Line("parameters", weights, "load", True),), "of the device"
        )

    def kv(self, case: Case) -> KvLayout:
        size = 2.0**20 / (1 if case.plan.kv_dtype.get() == "bf16" else 2)
        per_token = size / case.plan.tensor.get()
        return KvLayout(1, per_token, per_token, ceil, float)

    def write(self, change: Change, deployment: Deployment) -> Edit | None:
        name = NAMES.get(change.field)
        text = {"fp8_e4m3": "fp8"}.get(str(change.to), str(change.to))
        return Edit((*ARGS, name), text, f"{name}: {text}") if name else None


def architecture() -> Architecture:
    return Architecture(
        id="acme/tiny", family="tiny", layers=(), outer=(), towers=(), draft=(), draft_outer=(),
        hidden=64, vocabulary=256, tied=False, heads=4, kv_heads=2, head_size=16, intermediate=128,
        experts=0, experts_per_token=0, expert_intermediate=0, max_positions=8192, dtype="bf16",
        ropes=(), vision=None, config={}, quantization=None,
    )  # fmt: skip


def part(id: str = "acme/card", gib: float = 24) -> Accelerator:
    return read_accelerator(
        {
            "id": id, "name": id, "memory_class": "hbm", "memory_gb": gib, "bandwidth_gb_s": 1000,
            "visible_factor": 1.0, "tflops": {"bf16": 100},
        }
    )  # fmt: skip


def fields_of(text: str) -> tuple[dict[FieldPath, Value[Node]], Node]:
    from capcheck.deployment import flatten

    root = read_documents(text, FILE).roots[0]
    return flatten(root), root


def draft_of(text: str, name: str = "d", **more: Any) -> Draft:
    from capcheck.deployment import places_of

    fields, root = fields_of(text)
    assert isinstance(root, MappingNode)
    return Draft(name, "fake", HERE, fields, places=places_of(root), **more)


def workshop_of(
    *records: Mapping[str, Any],
    estimates: Sequence[Estimate] = (),
    parts: Mapping[str, Accelerator] | None = None,
) -> Workshop:
    del parts

    def again(deployment: Deployment, case: Case) -> Case:
        return Case(
            deployment, case.engine, case.release, case.model, case.accelerator, case.workshop,
            case.label,
        )  # fmt: skip

    terms = book(*(records or (term("fake.weights", 1, 1, 1),)))
    return Workshop(
        terms, {one.name: one for one in estimates}, (), Packings((), Guard()), lambda name: None,
        lambda found, named: named, again, {},
    )  # fmt: skip


def case_of(
    text: str = "engine: {args: {length: 4096}}\nhardware: {count: 1}\n",
    *records: Mapping[str, Any],
    engine: Engine | None = None,
    accelerator: Accelerator | None = None,
    estimates: Sequence[Estimate] = (),
    workshop: Workshop | None = None,
    label: str = "",
) -> Case:
    deployment = Deployment(draft_of(text))
    model = Model("tiny", architecture(), "exact", written(None, HERE))
    return Case(
        deployment, engine or FakeEngine(), Release("1.0", (1, 0)), written(model, HERE, "model"),
        written(accelerator or part(), HERE, "accelerator"),
        workshop or workshop_of(*records, estimates=estimates), label,
    )  # fmt: skip


def some(value: Value[T] | None) -> Value[T]:
    """A field that has to be there."""
    assert value is not None
    return value


def got(value: Value[T] | None) -> T:
    """What a field says."""
    return some(value).get()


def write_tree(folder: Path, files: Mapping[str, str]) -> list[Path]:
    """Files by name and text; the paths in their order."""
    paths = []
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
        paths.append(path)
    return paths


def rules_of(findings: Iterable[Any]) -> list[str]:
    return [one.rule for one in findings]
