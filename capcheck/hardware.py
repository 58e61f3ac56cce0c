"""What an accelerator is, as data: the record that vendor plugins fill, and its reader."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple, cast, get_args

MemoryClass = Literal["hbm", "gddr", "unified"]

_GIB, _GIGA, _TERA = 2.0**30, 1e9, 1e12
# Signalling rate x line code / 8, GB/s a lane one way (PCI Express base specification).
_PCIE_GB_S_PER_LANE = {1: 0.25, 2: 0.5, 3: 0.985, 4: 1.969, 5: 3.938, 6: 7.563}


class RecordError(ValueError):
    """A record lacks a field or states it in a form that cannot be read."""


class Link(NamedTuple):
    """The fast link between devices. Bytes/s are one way, per device."""

    kind: str  # nvlink, nvlink-bridge, infinity-fabric, pcie, ici, neuronlink, roce, xe-link, none
    bytes_per_second: float | None
    domain: int  # devices that reach each other over it
    optional: bool = False  # a bridge that a host may lack: without it the devices use PCIe


class Accelerator(NamedTuple):
    """One device as the driver shows it. Bytes, bytes/s, FLOP/s (dense, fp32 accumulation).

    A package that shows as several devices is divided: each has its share of the figures.
    """

    id: str  # vendor/part, or vendor/part@64gb where it is sold with several memory sizes
    name: str
    vendor: str
    architecture: str
    capability: float | None  # 8.9 for sm_89; None where the vendor has no such number
    memory_class: MemoryClass
    nominal_bytes: float  # marketing GB x 2^30
    visible_bytes: float | None  # what the driver or torch reported; None: nobody measured
    visible_factor: float  # expected visible / nominal where nobody measured
    bandwidth: float  # peak bytes/s
    bandwidth_range: tuple[float, float] | None  # where sources disagree
    flops: Mapping[str, float]  # by compute dtype: fp32 tf32 bf16 fp16 fp8 int8 fp4
    link: Link
    pcie_bytes_per_second: float | None  # one way
    features: frozenset[str]  # bf16, fp8_e4m3, fp8_e5m2, int8, fp4, cc80, ...
    devices_per_package: int
    sources: tuple[str, ...]
    doubts: tuple[str, ...]
    aliases: tuple[str, ...] = ()
    visible_range: tuple[float, float] | None = None  # where drivers differ
    visible_reported_by: str = ""  # torch, nvidia-smi, xla, hl-smi; "" when nobody measured
    ranks_per_device: int = 1  # parallel ranks one device is split in: NeuronCores, TensorCores
    tdp_watts: float | None = None


def _number(record: Mapping[str, Any], field: str) -> float:
    """A field as a number. Raises RecordError."""
    try:
        return float(record[field])
    except KeyError:
        raise RecordError(f"{field} is missing") from None
    except (TypeError, ValueError):
        raise RecordError(f"{field} is not a number: {record[field]!r}") from None


def _maybe(record: Mapping[str, Any], field: str) -> float | None:
    return None if record.get(field) is None else _number(record, field)


def _range(record: Mapping[str, Any], field: str, unit: float) -> tuple[float, float] | None:
    """A pair of numbers, times `unit`. Raises RecordError."""
    pair = record.get(field)
    if pair is None:
        return None
    if not isinstance(pair, list) or len(pair) != 2:
        raise RecordError(f"{field} is not a pair of numbers: {pair!r}")
    low, high = (_number({field: one}, field) * unit for one in pair)
    if low > high:
        raise RecordError(f"{field} is out of order: {pair!r}")
    return low, high


def _strings(record: Mapping[str, Any], field: str) -> tuple[str, ...]:
    values = record.get(field, ())
    if isinstance(values, str) or not all(isinstance(one, str) for one in values):
        raise RecordError(f"{field} is not a list of strings")
    return tuple(values)


def _link(record: Mapping[str, Any], share: float) -> Link:
    link = record.get("link") or {}
    total = _maybe(link, "gb_s_total")
    one_way = None if total is None else total * _GIGA / 2 * share
    domain = int(_maybe(link, "domain") or 1)
    return Link(str(link.get("kind", "none")), one_way, domain, bool(link.get("optional", False)))


def _pcie(record: Mapping[str, Any]) -> float | None:
    """Bytes/s one way of the host slot. Raises RecordError for an unknown generation."""
    pcie = record.get("pcie") or {}
    lanes, generation = _maybe(pcie, "lanes"), _maybe(pcie, "gen")
    if lanes is None or generation is None:
        return None
    if generation not in _PCIE_GB_S_PER_LANE:
        raise RecordError(f"pcie.gen is unknown: {pcie['gen']!r}")
    return lanes * _PCIE_GB_S_PER_LANE[int(generation)] * _GIGA


def _with_size(record: Mapping[str, Any], size: str) -> dict[str, Any]:
    """The record of a part sold with several memory sizes, with one of them chosen.

    Without a size it is the largest, with a doubt that says so. Raises KeyError for a size
    that the part is not sold with.
    """
    options = record.get("memory_options") or ()
    if not options:
        if size:
            raise KeyError(f"{record.get('id')}@{size}")
        return dict(record)
    by_size = {f"{_number(one, 'memory_gb'):g}gb": one for one in options}
    if size:
        return {**record, **by_size[size.lower()], "id": f"{record['id']}@{size.lower()}"}
    largest = max(options, key=lambda one: _number(one, "memory_gb"))
    sizes = ", ".join(by_size)
    doubt = f"sold with {sizes}: the largest is taken, since none is named"
    return {**record, **largest, "doubts": [*record.get("doubts", ()), doubt]}


def _identity(record: Mapping[str, Any]) -> tuple[str, str]:
    """Id and vendor. Raises RecordError for an id that is not vendor/part."""
    identity = str(record.get("id", ""))
    vendor, slash, _ = identity.partition("/")
    if not slash:
        raise RecordError(f"id is not vendor/part: {identity!r}")
    return identity, vendor


def _memory_class(record: Mapping[str, Any]) -> MemoryClass:
    word = record.get("memory_class")
    if word not in get_args(MemoryClass):
        raise RecordError(f"memory_class is unknown: {word!r}")
    return cast(MemoryClass, word)


def _visible_factor(record: Mapping[str, Any]) -> float:
    """Stated, or what the measured size gives. Raises RecordError when there is neither."""
    if record.get("visible_factor") is None and record.get("visible_bytes") is not None:
        return _number(record, "visible_bytes") / (_number(record, "memory_gb") * _GIB)
    return _number(record, "visible_factor")


def _scaled(value: float | None, factor: float) -> float | None:
    return None if value is None else value * factor


def read_accelerator(record: Mapping[str, Any], size: str = "") -> Accelerator:
    """One record (see accelerator.schema.json) as SI units per device.

    `size` chooses a memory size ("64gb") where the part is sold with several. Raises RecordError
    for a record that cannot be read, KeyError for a size that the part is not sold with.
    """
    one = _with_size(record, size)
    identity, vendor = _identity(one)
    packaged = int(_maybe(one, "devices_per_package") or 1)
    share = 1.0 / packaged
    tflops = one.get("tflops") or {}
    return Accelerator(
        id=identity,
        name=str(one.get("name") or identity),
        vendor=vendor,
        architecture=str(one.get("architecture") or ""),
        capability=_maybe(one, "capability"),
        memory_class=_memory_class(one),
        nominal_bytes=_number(one, "memory_gb") * _GIB * share,
        visible_bytes=_scaled(_maybe(one, "visible_bytes"), share),
        visible_factor=_visible_factor(one),
        bandwidth=_number(one, "bandwidth_gb_s") * _GIGA * share,
        bandwidth_range=_range(one, "bandwidth_range_gb_s", _GIGA * share),
        flops={dtype: _number(tflops, dtype) * _TERA * share for dtype in tflops},
        link=_link(one, share),
        pcie_bytes_per_second=_pcie(one),
        features=frozenset(_strings(one, "features")),
        devices_per_package=packaged,
        sources=_strings(one, "sources"),
        doubts=_strings(one, "doubts"),
        aliases=(*_strings(one, "aliases"), *_strings(one, "shared_names")),
        visible_range=_range(one, "visible_range_bytes", share),
        visible_reported_by=str(one.get("visible_reported_by") or ""),
        ranks_per_device=int(_maybe(one, "ranks_per_device") or 1),
        tdp_watts=_scaled(_maybe(one, "tdp_w"), share),
    )


def share_of(part: Accelerator, fraction: float) -> Accelerator:
    """A slice of a device that has `fraction` of its memory: a MIG slice, a fractional instance.

    Bandwidth and peaks are cut alike, which a doubt says: how a device is cut differs by method.
    Raises ValueError for a fraction outside (0, 1].
    """
    if not 0 < fraction <= 1:
        raise ValueError(f"not a share of a device: {fraction}")
    cut = (part.visible_range, part.bandwidth_range)
    visible_range, bandwidth_range = (
        None if one is None else (one[0] * fraction, one[1] * fraction) for one in cut
    )
    doubt = f"a share of {fraction:.3g} of the device: bandwidth and peaks are cut like the memory"
    return part._replace(
        nominal_bytes=part.nominal_bytes * fraction,
        visible_bytes=_scaled(part.visible_bytes, fraction),
        visible_range=visible_range,
        bandwidth=part.bandwidth * fraction,
        bandwidth_range=bandwidth_range,
        flops={dtype: peak * fraction for dtype, peak in part.flops.items()},
        doubts=(*part.doubts, doubt),
    )
