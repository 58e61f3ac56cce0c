"""The load model's shipped constants: complete, in order, physical, and selected as meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import capcheck_serving.constants as constants
from capcheck.physics.server import LoadConstants
from capcheck.physics.step import StepConstants
from capcheck.terms import TermBook, Terms, term_of
from capcheck_serving.constants import Packing, compute_of, load_constants, step_constants

FILES = sorted(Path(constants.__file__).parent.glob("*_terms.jsonl"))
RECORDS = [json.loads(line) for file in FILES for line in file.read_text("utf-8").splitlines()]
FIELDS = (*StepConstants._fields, *LoadConstants._fields)
SHARES = ("efficiency", "utilization")
H100 = {
    "engine": "vllm", "release": (0, 11, 0), "vendor": "nvidia", "memory_class": "hbm",
    "architecture": "hopper", "link": "nvlink", "family": "qwen3", "moe": False,
}  # fmt: skip
MEASURED = [
    H100,
    {**H100, "engine": "sglang", "architecture": "blackwell", "moe": True},
    {**H100, "engine": "tensorrt-llm", "release": (1, 2)},
    {**H100, "engine": "llama.cpp", "memory_class": "unified", "vendor": "apple", "link": "none"},
    {**H100, "vendor": "amd", "link": "infinity-fabric", "architecture": "cdna3"},
    {**H100, "memory_class": "gddr", "architecture": "ada", "link": "pcie"},
]


def terms(facts: dict[str, Any]) -> Terms:
    return Terms(TermBook([(file, "capcheck_serving") for file in FILES]), facts)


def step_of(facts: dict[str, Any], packing: Packing | None = None) -> StepConstants:
    packing = packing or Packing(16.0, "16")
    return step_constants(terms(facts).read, packing, packing)


def test_records_are_well_formed_and_sourced() -> None:
    for record in RECORDS:
        term = term_of(record, "capcheck_serving")
        assert term.name.startswith("serving.")
        assert term.unit
        assert term.source
        assert term.cases >= 0


def test_no_two_records_claim_the_same_facts() -> None:
    claims = [(record["name"], json.dumps(record["when"], sort_keys=True)) for record in RECORDS]
    assert len(claims) == len(set(claims))


@pytest.mark.parametrize("name", sorted({record["name"] for record in RECORDS}))
def test_every_constant_has_a_default(name: str) -> None:
    assert terms({}).read(name) is not None


@pytest.mark.parametrize("field", FIELDS)
def test_every_field_is_a_term(field: str) -> None:
    assert any(record["name"] == f"serving.{field}" for record in RECORDS)


def test_shares_of_a_peak_stay_below_it() -> None:
    for record in RECORDS:
        if record["name"].endswith(SHARES):
            assert 0 < record["low"] <= record["high"] <= 1, record


def test_no_constant_is_negative() -> None:
    assert all(record["low"] >= 0 for record in RECORDS)


def test_defaults_are_wider_than_what_was_fitted() -> None:
    for name in ("weight_efficiency", "layer_seconds", "tpot_residual", "ttft_residual"):
        spreads = []
        for facts in ({}, H100):
            one = terms(facts)
            one.read(f"serving.{name}", weight_bits=16.0, start="burst")
            (term,) = one.reads.values()
            spreads.append(term.high / term.low)
        assert spreads[0] > spreads[1]


@pytest.mark.parametrize("facts", MEASURED)
def test_constants_of_measured_classes(facts: dict[str, Any]) -> None:
    assert all(value >= 0 for value in step_of(facts))
    for lengths in ("fixed", "varied"):
        for start in ("steady", "burst"):
            assert all(value >= 0 for value in load_constants(terms(facts).read, lengths, start))


def test_constants_differ_where_measurements_do() -> None:
    hopper = step_of(H100)
    blackwell = step_of({**H100, "architecture": "blackwell"})
    assert blackwell.weight_efficiency < hopper.weight_efficiency
    assert step_of(H100, Packing(4.25, "16")).weight_efficiency < hopper.weight_efficiency
    eight = step_of(H100, Packing(8.0, "fp8"))
    assert 0.45 < eight.dense_utilization < 0.6  # single GEMMs reach 0.52 to 0.59
    assert eight.quantized_layer_factor > 0 == hopper.quantized_layer_factor
    assert blackwell.generation_factor < hopper.generation_factor == 1.0
    assert step_of({**H100, "link": "pcie"}).all_reduce_seconds > 5 * hopper.all_reduce_seconds
    gddr = step_of({**H100, "memory_class": "gddr", "architecture": "ada"})
    assert gddr.weight_efficiency > blackwell.weight_efficiency


def test_a_burst_has_constants_of_its_own() -> None:
    read = terms(H100).read
    steady, burst = (load_constants(read, "varied", start) for start in ("steady", "burst"))
    assert burst.waited_steps > steady.waited_steps
    assert steady.front_end_seconds == 0.0


def test_the_first_tensorrt_llm_server_was_serial() -> None:
    old = terms({**H100, "engine": "tensorrt-llm", "release": (1, 0, 0)})
    new = terms({**H100, "engine": "tensorrt-llm", "release": (1, 2, 0)})
    assert old.read("serving.front_end_seconds", start="burst") > 1e-4
    assert old.read("serving.front_end_seconds", start="steady") == 0.0  # one harness saw it
    assert new.read("serving.front_end_seconds", start="burst") == 0.0


def test_known_families_have_narrower_bands_than_new_ones() -> None:
    seen = {**H100, "accelerator": "nvidia/h100-sxm5-80gb"}
    known, new = terms(seen), terms({**seen, "family": "nobody"})
    widths = []
    for one in (known, new):
        one.read("serving.tpot_residual", start="burst")
        (term,) = one.reads.values()
        widths.append(term.high - term.low)
    assert widths[0] < widths[1]


@pytest.mark.parametrize("latency", ["ttft", "tpot"])
@pytest.mark.parametrize("loop", ["open", "closed", "uncapped"])
@pytest.mark.parametrize("lengths", ["fixed", "varied"])
def test_what_was_measured_over_derived_percentiles_rises(
    latency: str, loop: str, lengths: str
) -> None:
    """Derived percentiles do; so do the estimates, then."""
    for facts in ({}, {"loop": loop, "lengths": lengths}):
        found = [
            terms(dict(facts)).read(f"serving.{latency}_{share}_factor")
            for share in ("p90", "p95", "p99")
        ]
        assert 0.5 <= found[0] <= found[1] <= found[2] <= 2.0


FLOPS = {"bf16": 1e15, "fp16": 1e15, "fp8": 2e15, "int8": 2e15, "fp4": 4e15}


@pytest.mark.parametrize(
    ("weight", "activation", "flops", "expected"),
    [
        ("bf16", "", FLOPS, ("16", 1e15)),
        ("fp8_e4m3", "fp8", FLOPS, ("fp8", 2e15)),
        ("fp8_e4m3", "fp8", {"bf16": 3e14}, ("16", 3e14)),  # an A100 multiplies in 16 bit
        ("fp8_e4m3", "", FLOPS, ("16", 1e15)),
        ("int4", "", FLOPS, ("16", 1e15)),
        ("int8", "int8", FLOPS, ("int8", 2e15)),
        ("nvfp4", "nvfp4", FLOPS, ("fp4", 4e15)),
        ("mxfp4", "", FLOPS, ("mxfp4", 2e15)),
        ("mxfp4", "", {"bf16": 1e15, "fp8": 2e15}, ("16", 1e15)),  # Hopper: weight-only
        ("fp16", "", {"fp16": 1.2e14}, ("16", 1.2e14)),
    ],
)
def test_products_run_at_the_peak_of_their_dtype(
    weight: str, activation: str, flops: dict[str, float], expected: tuple[str, float]
) -> None:
    assert compute_of(weight, activation, flops) == expected


def test_a_part_without_peaks_is_an_error() -> None:
    with pytest.raises(KeyError):
        compute_of("bf16", "", {})


def test_a_release_has_fixed_costs_of_its_own_where_it_was_measured() -> None:
    old = step_of({**H100, "release": (0, 12, 0)})
    new = step_of({**H100, "release": (0, 19, 0)})
    assert new.release_factor < old.release_factor
    assert step_of({**H100, "engine": "other"}).release_factor == 1.0


def test_an_fp8_cache_is_read_less_well_than_a_16_bit_one_on_hopper() -> None:
    packing = Packing(16.0, "16")
    sixteen, eight = (
        step_constants(terms(H100).read, packing, packing, bits).cache_efficiency
        for bits in (16.0, 8.0)
    )
    assert eight < sixteen
