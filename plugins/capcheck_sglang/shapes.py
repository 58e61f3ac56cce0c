"""Packed weights over devices: blocks of FP8 and groups of 4-bit weights are not cut."""

from __future__ import annotations

from collections.abc import Iterator

from capcheck import Case, Layer, Scheme, Support, Tensor
from capcheck.physics import memory
from capcheck_sglang.weights import Spread

DIVISIBLE = "sharding/divisible"
GROUPED = ("awq", "gptq")
UNCHECKED = {"mimo_v2": (0, 5, 7)}  # families whose queries, keys and values may be cut, since
QUERIES = "self_attn.q_proj"


def _problem(tensor: Tensor, own: Scheme, spread: Spread) -> tuple[str, str] | None:
    """Which size of a tensor's shard is no whole number of blocks or groups, in words."""
    split = spread.of(tensor)
    if split.tensor == 1 or (tensor.role == "expert" and split.expert > 1):
        return None
    if own.block is not None and tensor.split in ("column", "row"):
        rows, columns = own.block
        parts = [(part.name, memory.part_out(part, tensor, split)) for part in tensor.parts]
        if tensor.split == "column":
            bad = next(((name, out) for name, out in parts if out % rows), None)
            if bad is not None:
                return bad[0], f"output of {bad[1]:,} on each device is no multiple of {rows}"
        elif memory.rank_into(tensor, split) % columns:
            into = memory.rank_into(tensor, split)
            return parts[0][0], f"input of {into:,} on each device is no multiple of {columns}"
    if own.method in GROUPED and own.group > 1 and tensor.split == "row":
        into = memory.rank_into(tensor, split)
        if into % own.group:
            words = f"input of {into:,} on each device is no multiple of the group of {own.group}"
            return tensor.parts[0].name, words
    return None


def _cuts_queries(case: Case) -> bool:
    """Whether a family's queries, keys and values may be cut within a block."""
    family, version = case.model.get("model").architecture.family, case.release.version
    return any(family.startswith(name) and version >= first for name, first in UNCHECKED.items())


def _problems(case: Case, scheme: Scheme, spread: Spread) -> Iterator[tuple[str, str]]:
    packing = case.workshop.packing
    seen: set[int] = set()
    layers: tuple[Layer, ...] = case.model.get("model").architecture.layers
    cut = _cuts_queries(case)
    for index, layer in enumerate(layers):
        if id(layer) in seen:
            continue
        seen.add(id(layer))
        for tensor in layer.tensors:
            if not tensor.linear or (cut and tensor.parts[0].name == QUERIES):
                continue
            own = packing.of_module(scheme, index, tensor.parts[0].name, tensor.role)
            found = _problem(tensor, own, spread) if own is not None else None
            if found is not None:
                yield found


def supports(case: Case) -> Iterator[Support]:
    """One answer for the first shard that does not come out whole."""
    model = case.model.get("model")
    scheme = model.scheme.get("quantization")
    if scheme is None:
        return
    found = list(dict.fromkeys(_problems(case, scheme, Spread(case))))
    tensor = case.plan.extra["all_tensor"]
    if not found:
        yield Support(DIVISIBLE, True, tensor)
        return
    name, words = found[0]
    more = f" (and {len(found) - 1} more)" if len(found) > 1 else ""
    doubt = "" if not scheme.is_guess else (
        "the scheme was not read from the checkpoint's own configuration"
    )  # fmt: skip
    yield Support(
        DIVISIBLE, False, tensor, f"{name}: {words}{more}",
        ("use fewer tensor-parallel devices, or expert parallelism",), doubt=doubt,
    )  # fmt: skip
