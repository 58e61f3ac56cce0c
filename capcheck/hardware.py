"""What an accelerator is, as data: the record that vendor plugins fill."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

MemoryClass = Literal["hbm", "gddr", "unified"]


class Link(NamedTuple):
    """The fast link between devices. Bytes/s are one way, per device."""

    kind: str  # nvlink, nvlink-bridge, infinity-fabric, pcie, ici, neuronlink, roce, xe-link, none
    bytes_per_second: float | None
    domain: int  # devices that reach each other over it


class Accelerator(NamedTuple):
    """One part. Bytes, bytes/s, FLOP/s (dense, fp32 accumulation)."""

    id: str  # vendor/part
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
