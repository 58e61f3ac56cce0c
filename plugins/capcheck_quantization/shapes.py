"""Whether a packed model divides over tensor parallel: groups, words, tiles and blocks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from capcheck.architecture import Architecture, Tensor
from capcheck.physics.memory import Split, part_out, rank_copies, rank_into
from capcheck.physics.packing import pack_factor
from capcheck.quantization import Scheme

from .layouts import by_layer, of_module
from .legality import Problem, method_known, rows
from .releases import Version, holds

_SMALLEST_EXPERT_GROUP = 32  # experts halve their groups down to it


def shape_problems(
    scheme: Scheme,
    model: Architecture,
    split: Split,
    *,
    engine: str,
    release: Version | None,
    dtype: str = "bf16",
) -> tuple[Problem, ...]:
    """Every size of the model that the scheme's packing does not divide under this split.

    One reason for each kind and module, whichever layers it is met in.
    """
    found: dict[tuple[str, str], Problem] = {}
    whole = _split_at_all(scheme, split, engine, release)
    if whole is not None:
        found[whole.kind, ""] = whole
    seen: set[tuple[int, int]] = set()
    apart = by_layer(scheme)
    for index, layer in enumerate(model.layers):
        for tensor in layer.tensors:
            key = (id(tensor), index if apart else 0)
            if key in seen or not tensor.linear or not tensor.into:
                continue
            seen.add(key)
            first = tensor.parts[0].name
            leaf = of_module(scheme, index, first, tensor.role)
            if leaf is not None:
                for problem in tensor_problems(
                    leaf, tensor, split, engine=engine, release=release, dtype=dtype
                ):
                    found.setdefault((problem.kind, problem.what), problem)
    return tuple(found.values())


def _split_at_all(
    scheme: Scheme, split: Split, engine: str, release: Version | None
) -> Problem | None:
    """A method whose packed checkpoints cannot be split by tensor parallel."""
    if split.tensor == 1 or scheme.seen == "online":
        return None
    for row, sure in _rows(scheme, engine, release):
        if row["rule"] == "whole":
            words = f"a packed {scheme.method} checkpoint does not split over {split.tensor} ranks"
            sure = sure and method_known(scheme)
            return Problem("whole", scheme.method, split.tensor, 1, words, sure, row["source"])
    return None


def _rows(
    scheme: Scheme, engine: str, release: Version | None
) -> Iterator[tuple[Mapping[str, Any], bool]]:
    """The shape rules of a scheme on a release, and whether each surely applies."""
    for row in rows("shapes.jsonl"):
        if row["engine"] != engine or scheme.method not in row["methods"]:
            continue
        if scheme.weight not in row["weights"]:
            continue
        if row["rule"] in ("group", "tiles") and scheme.activation:
            continue  # integer arithmetic has no groups and its own kernels
        answer = holds(row, release)
        if answer is not False:
            yield row, answer is True and not row.get("unless")


def tensor_problems(
    scheme: Scheme,
    tensor: Tensor,
    split: Split,
    *,
    engine: str,
    release: Version | None,
    dtype: str = "bf16",
) -> tuple[Problem, ...]:
    """The sizes of one packed tensor that do not divide; `scheme` is the one that packs it."""
    found: list[Problem] = []
    shard = _Shard(tensor, split)
    for row, sure in _rows(scheme, engine, release):
        if row.get("dtypes") and dtype not in row["dtypes"]:
            continue
        rule = _RULES.get(row["rule"])
        if rule is None:
            continue
        certain = sure and not scheme.is_guess and not ("group" in scheme.guessed and scheme.group)
        for what, have, need in rule(scheme, shard, row):
            if need > 1 and have % need:
                words = f"{have:,} {what} of one rank are no multiple of {need}"
                if row.get("unless"):
                    words = f"{words}, unless {row['unless']}"
                label = f"{tensor.parts[0].name}, {what}"
                found.append(Problem(row["rule"], label, have, need, words, certain, row["source"]))
    return tuple(found)


class _Shard:
    """One tensor on one rank."""

    def __init__(self, tensor: Tensor, split: Split) -> None:
        self.expert = tensor.role == "expert"
        self.parts = [part_out(part, tensor, split) for part in tensor.parts]
        self.out = sum(self.parts)
        self.into = rank_into(tensor, split)
        self.whole_into = tensor.into
        self.split_out = self.parts[0] < tensor.parts[0].out
        self.split_into = self.into < tensor.into
        self.row = tensor.split == "row"
        self.copies = rank_copies(tensor, split)
        self.tensor_parallel = split.tensor


_Checks = Iterator[tuple[str, int, int]]


def _group(scheme: Scheme, shard: _Shard, row: Mapping[str, Any]) -> _Checks:
    del row
    if scheme.group > 0:
        need = scheme.group
        if shard.expert:
            need = min(need, _SMALLEST_EXPERT_GROUP)
        if shard.into < shard.whole_into or shard.into > need:
            yield "input features", shard.into, need


def _pack(scheme: Scheme, shard: _Shard, row: Mapping[str, Any]) -> _Checks:
    del row
    yield "output features", shard.out, pack_factor(scheme.bits)


def _tiles(scheme: Scheme, shard: _Shard, row: Mapping[str, Any]) -> _Checks:
    del scheme
    if not shard.expert:  # experts have other kernels to fall back to
        yield "output features", shard.out, int(row["out"])
        yield "input features", shard.into, int(row["into"])


def _block(scheme: Scheme, shard: _Shard, row: Mapping[str, Any]) -> _Checks:
    if scheme.block is None:
        return
    wide, deep = scheme.block
    if shard.expert:
        # The intermediate size of one rank must divide, as outputs of gate and up always.
        if not shard.row:
            yield "output features", shard.parts[0], wide
        elif shard.tensor_parallel > 1:
            yield "input features", shard.into, deep
        return
    if row.get("fused") is False and len(shard.parts) > 1:
        return  # a fused projection with an odd part is loaded as it is
    if shard.split_into:
        yield "input features", shard.into, deep
    checked = shard.parts if shard.split_out else shard.parts[:-1]
    for part in checked:
        yield "output features", part, wide


def _sixteen(scheme: Scheme, shard: _Shard, row: Mapping[str, Any]) -> _Checks:
    del scheme, row
    yield "input features", shard.into, 16


_RULES = {"group": _group, "pack": _pack, "tiles": _tiles, "block": _block, "sixteen": _sixteen}
