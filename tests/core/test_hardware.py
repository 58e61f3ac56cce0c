"""Records of accelerators as SI units per device."""

from __future__ import annotations

from typing import Any

import pytest

from capcheck.hardware import RecordError, read_accelerator, share_of

GIB = 2.0**30
RECORD: dict[str, Any] = {
    "id": "acme/one", "name": "Acme One", "architecture": "a1", "capability": 9.0,
    "memory_class": "hbm", "memory_gb": 80, "visible_bytes": 84_000_000_000,
    "visible_range_bytes": [83_000_000_000, 85_000_000_000], "visible_reported_by": "torch",
    "visible_factor": 0.98, "bandwidth_gb_s": 3350, "bandwidth_range_gb_s": [3300, 3400],
    "tflops": {"bf16": 989.4, "fp8": 1978.9},
    "link": {"kind": "nvlink", "gb_s_total": 900, "domain": 8}, "pcie": {"gen": 5, "lanes": 16},
    "features": ["bf16", "fp8_e4m3"], "tdp_w": 700, "aliases": ["One"], "shared_names": ["O"],
    "sources": ["a sheet"], "doubts": ["a doubt"],
}  # fmt: skip


def test_si_units() -> None:
    part = read_accelerator(RECORD)
    assert (part.vendor, part.nominal_bytes, part.visible_bytes) == ("acme", 80 * GIB, 84e9)
    assert (part.bandwidth, part.bandwidth_range) == (3.35e12, (3.3e12, 3.4e12))
    assert part.flops == {"bf16": pytest.approx(989.4e12), "fp8": pytest.approx(1978.9e12)}
    assert part.link.bytes_per_second == 450e9  # one way
    assert (part.link.domain, part.link.optional) == (8, False)
    assert part.pcie_bytes_per_second == pytest.approx(63e9, rel=0.001)
    assert part.aliases == ("One", "O")
    assert (part.visible_range, part.visible_reported_by) == ((83e9, 85e9), "torch")


def test_a_package_of_two_is_halved() -> None:
    whole, half = read_accelerator(RECORD), read_accelerator({**RECORD, "devices_per_package": 2})
    for field in ("nominal_bytes", "visible_bytes", "bandwidth", "tdp_watts"):
        assert getattr(half, field) == getattr(whole, field) / 2
    assert half.flops["bf16"] == whole.flops["bf16"] / 2
    assert half.link.bytes_per_second == 225e9
    assert half.devices_per_package == 2


def test_the_least_that_a_record_needs() -> None:
    part = read_accelerator(
        {"id": "me/a", "memory_class": "gddr", "memory_gb": 8, "bandwidth_gb_s": 100,
         "visible_bytes": 8_000_000_000}
    )  # fmt: skip
    assert part.name == "me/a"
    assert part.visible_factor == pytest.approx(8e9 / (8 * GIB))
    assert (part.flops, part.link.kind, part.pcie_bytes_per_second) == ({}, "none", None)
    assert (part.capability, part.bandwidth_range, part.features) == (None, None, frozenset())


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"id": "one"}, "vendor/part"), ({"memory_class": "core"}, "memory_class is unknown"),
        ({"memory_gb": None}, "memory_gb is not a number"),
        ({"bandwidth_gb_s": "fast"}, "bandwidth_gb_s is not a number: 'fast'"),
        ({"tflops": {"bf16": "lots"}}, "bf16 is not a number"),
        ({"bandwidth_range_gb_s": [2, 1]}, "out of order"),
        ({"bandwidth_range_gb_s": 5}, "not a pair"),
        ({"pcie": {"gen": 9, "lanes": 16}}, "pcie.gen"),
        ({"features": "bf16"}, "features is not a list"),
        ({"visible_factor": None, "visible_bytes": None}, "visible_factor"),
    ],
)  # fmt: skip
def test_what_cannot_be_read_is_named(change: dict[str, Any], complaint: str) -> None:
    with pytest.raises(RecordError, match=complaint):
        read_accelerator({**RECORD, **change})


def test_a_missing_field_is_named() -> None:
    with pytest.raises(RecordError, match="bandwidth_gb_s is missing"):
        read_accelerator({name: one for name, one in RECORD.items() if name != "bandwidth_gb_s"})


def test_memory_sizes() -> None:
    options = [{"memory_gb": 32, "visible_factor": 0.7}, {"memory_gb": 64, "visible_factor": 0.8}]
    record = {**RECORD, "visible_bytes": None, "memory_options": options}
    small = read_accelerator(record, "32gb")
    assert (small.id, small.nominal_bytes, small.visible_factor) == ("acme/one@32gb", 32 * GIB, 0.7)
    largest = read_accelerator(record)
    assert (largest.id, largest.nominal_bytes) == ("acme/one", 64 * GIB)
    assert largest.doubts[-1] == "sold with 32gb, 64gb: the largest is taken, since none is named"
    for wrong in (record, RECORD):
        with pytest.raises(KeyError):
            read_accelerator(wrong, "48gb")


def test_a_share_of_a_device() -> None:
    part = read_accelerator(RECORD)
    slice_ = share_of(part, 0.25)
    assert (slice_.nominal_bytes, slice_.visible_bytes) == (20 * GIB, 21e9)
    assert (slice_.bandwidth, slice_.visible_range) == (part.bandwidth / 4, (20.75e9, 21.25e9))
    assert "0.25" in slice_.doubts[-1]
    for wrong in (0, 1.1, -1):
        with pytest.raises(ValueError, match="share"):
            share_of(part, wrong)
