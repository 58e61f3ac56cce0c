"""The shipped parts and names: valid, unambiguous, and what people write finds them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from capcheck.catalogue import Catalogue, Shelf
from capcheck.shelf import fold

VENDORS = ("nvidia", "amd", "intel", "google", "aws", "apple")
HERE = Path(__file__).parent
ROOT = HERE.parents[2]


def shelves() -> Iterator[Shelf]:
    for vendor in VENDORS:
        yield from import_module(f"capcheck_{vendor}").capcheck_catalogues()


def lines(kind: str) -> list[dict[str, Any]]:
    return [
        json.loads(line)
        for shelf in shelves()
        if shelf.kind == kind
        for line in shelf.file.read_text(encoding="utf-8").splitlines()
    ]


CATALOGUE = Catalogue(shelves())
PARTS = {one["id"]: one for one in lines("accelerator")}
NAMES = lines("accelerator-name")
LISTED = [one for one in NAMES if "names" in one]


def table(name: str) -> list[tuple[str, frozenset[str]]]:
    rows = []
    for line in (HERE / name).read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            written, _, ids = line.partition("\t")
            full = (one if "/" in one else f"nvidia/{one}" for one in ids.split() if one != "-")
            rows.append((written, frozenset(full)))
    return rows


AS_WRITTEN, IN_REPORTS = table("names_as_written.tsv"), table("names_in_reports.tsv")


def sized(identity: str) -> set[str]:
    options = PARTS[identity].get("memory_options")
    return {f"{identity}@{one['memory_gb']:g}gb" for one in options} if options else {identity}


def found(name: str, key: str = "") -> set[str]:
    return set(CATALOGUE.accelerators(name, key).ids)


@pytest.mark.parametrize(
    ("kind", "schema"), [("accelerator", "accelerator"), ("accelerator-name", "accelerator-name")]
)
def test_every_record_is_valid(kind: str, schema: str) -> None:
    text = (ROOT / "schemas" / f"{schema}.schema.json").read_text(encoding="utf-8")
    validator = jsonschema.Draft7Validator(json.loads(text))
    wrong = [(one, error.message) for one in lines(kind) for error in validator.iter_errors(one)]
    assert wrong == []


def test_the_files_are_tidy() -> None:
    for shelf in shelves():
        for line in shelf.file.read_text(encoding="utf-8").splitlines():
            assert line == json.dumps(json.loads(line), ensure_ascii=False)
    assert len(PARTS) == len(lines("accelerator"))
    for vendor in VENDORS:
        owned = {one["id"] for one in lines("accelerator") if one["id"].startswith(f"{vendor}/")}
        shelf = next(one for one in shelves() if one.owner == f"capcheck_{vendor}")
        assert owned == {json.loads(line)["id"] for line in shelf.file.read_text().splitlines()}


@pytest.mark.parametrize("identity", PARTS)
def test_every_part_can_be_built_and_makes_sense(identity: str) -> None:
    record = PARTS[identity]
    for one in sized(identity):
        part = CATALOGUE.accelerator(one)
        assert part.id == one
        if part.visible_bytes is not None:
            assert part.visible_reported_by
            seen = part.visible_bytes / part.nominal_bytes
            assert (0.74 if part.vendor == "apple" else 0.86) < seen <= 1.01
            assert any("visible size" in source for source in part.sources)
            low, high = part.visible_range or (part.visible_bytes, part.visible_bytes)
            assert low * 0.999 <= part.visible_bytes <= high * 1.001
        low, high = part.bandwidth_range or (part.bandwidth, part.bandwidth)
        assert low <= part.bandwidth <= high
        if "fp8" in part.flops:
            assert part.flops["fp8"] >= part.flops["bf16"]
        if "bf16" in part.flops:
            assert "bf16" in part.features
    if record["confidence"] == "low":
        assert record.get("doubts"), "a low confidence has a reason"


def test_peaks_are_dense_with_fp32_accumulation() -> None:
    names = ("rtx-3090", "rtx-4090", "rtx-6000-ada", "a100-sxm4-80gb", "h100-sxm5-80gb")
    peaks = {name: CATALOGUE.accelerator(f"nvidia/{name}").flops for name in names}
    assert peaks["rtx-3090"]["bf16"] == pytest.approx(71e12, rel=0.01)
    assert peaks["rtx-4090"]["bf16"] * 2 == pytest.approx(peaks["rtx-4090"]["fp8"], rel=0.01)
    assert peaks["rtx-6000-ada"]["bf16"] > 2 * peaks["rtx-4090"]["bf16"]
    assert peaks["a100-sxm4-80gb"]["bf16"] == 312e12
    assert peaks["h100-sxm5-80gb"]["fp8"] == pytest.approx(1979e12, rel=0.001)


def test_measured_totals() -> None:
    totals = {
        "h100-sxm5-80gb": 79.19, "rtx-3090": 23.58, "rtx-5090": 31.37, "t4": 14.74, "l4": 22.03,
        "gb200-186gb": 184.31, "b200-180gb": 178.36, "rtx-a5000": 23.57,
    }  # fmt: skip
    for name, gib in totals.items():
        part = CATALOGUE.accelerator(f"nvidia/{name}")
        assert part.visible_bytes == pytest.approx(gib * 2**30, rel=0.0005)
        assert part.visible_reported_by == "torch"


def test_devices_of_one_package() -> None:
    one = CATALOGUE.accelerator("amd/mi250x-128gb")
    assert (one.nominal_bytes, one.devices_per_package) == (64 * 2**30, 2)
    assert CATALOGUE.accelerator("aws/inferentia2").ranks_per_device == 2


@pytest.mark.parametrize("identity", PARTS)
def test_every_name_finds_its_part(identity: str) -> None:
    record, vendor = PARTS[identity], identity.partition("/")[0]
    own = {identity, identity.partition("/")[2], record["name"], *record["aliases"]}
    for name in own:
        assert found(name) == sized(identity), name
    for name in record.get("shared_names", ()):
        assert sized(identity) & found(name), name
        assert len({one.partition("@")[0] for one in found(name)}) > 1, f"{name} is not shared"
    for name in own - {identity}:
        if not fold(name).startswith(vendor):
            assert found(f"{vendor} {name}") == sized(identity), name


def test_no_name_belongs_to_two_parts_unless_declared() -> None:
    owners: dict[str, set[str]] = {}
    for identity, record in PARTS.items():
        own = (identity.partition("/")[2], record["name"], *record["aliases"])
        for name in own:
            owners.setdefault(fold(name), set()).add(identity)
    shared = {fold(name) for one in PARTS.values() for name in one.get("shared_names", ())}
    assert {name: ids for name, ids in owners.items() if len(ids) > 1} == {}
    assert shared & set(owners) == set()


@pytest.mark.parametrize("record", LISTED, ids=lambda one: one["names"][0])
def test_every_instance_type_and_label(record: dict[str, Any]) -> None:
    ids = {one for identity in record["ids"] for one in sized(identity)}
    assert set(record["ids"]) <= set(PARTS)
    for name in record["names"]:
        for key in record["keys"]:
            match = CATALOGUE.accelerators(name, key)
            assert set(match.ids) == ids
            assert match.count == record.get("count")
            assert match.fraction == record.get("fraction")
            assert match.shared == ("fraction" in record)
        if not record.get("label"):
            assert found(name) == ids
            assert CATALOGUE.accelerators(name.upper()).count == record["count"]


def test_how_much_there_is() -> None:
    assert len([one for one in LISTED if not one.get("label")]) >= 187
    assert len(PARTS) >= 200
    assert len(AS_WRITTEN) >= 150


@pytest.mark.parametrize(("name", "expected"), AS_WRITTEN, ids=[name for name, _ in AS_WRITTEN])
def test_names_as_written(name: str, expected: frozenset[str]) -> None:
    assert found(name) == expected


@pytest.mark.parametrize(("name", "expected"), IN_REPORTS, ids=[name for name, _ in IN_REPORTS])
def test_names_in_reports(name: str, expected: frozenset[str]) -> None:
    assert found(name) == expected


@pytest.mark.parametrize(
    ("name", "near"),
    [("RTX 4099", "rtx-4090"), ("H1000", "H100"), ("nvidia-l40ss", "NVIDIA-L40S"),
     ("p5.48xlrage", "p5.48xlarge"), ("MI3000X", "MI300X"), ("RTX 3090 12GB", "nvidia/rtx-3090")],
)  # fmt: skip
def test_near_misses_suggest(name: str, near: str) -> None:
    match = CATALOGUE.accelerators(name)
    assert match.ids == ()
    assert near in match.near


@pytest.mark.parametrize(
    ("slice_", "fraction", "note"),
    [("1g.10gb", 0.125, "MIG-1g.10gb"), ("3g.40gb", 0.5, "MIG-3g.40gb"),
     ("1g.10gb.me", 0.125, "MIG"), ("1g.20gb-SHARED", None, "SHARED")],
)  # fmt: skip
def test_mig_slices(slice_: str, fraction: float | None, note: str) -> None:
    match = CATALOGUE.accelerators(f"NVIDIA-A100-SXM4-80GB-MIG-{slice_}", "nvidia.com/gpu.product")
    assert (match.ids, match.fraction) == (("nvidia/a100-sxm4-80gb",), fraction)
    assert match.shared
    assert any(one.startswith(note) for one in match.notes)


def test_tpu_slices_count_chips() -> None:
    counts = {"v4-8": 4, "v5p-8": 4, "v5litepod-8": 8, "v6e-8": 8, "tpu7x-standard-4t": 4}
    assert {name: CATALOGUE.accelerators(name).count for name in counts} == counts
