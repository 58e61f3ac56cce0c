"""What an engine's release refuses of a packed checkpoint: from data, as reasons, no findings.

Compute capabilities are times ten: 89 is 8.9. A release is a tuple of numbers, None where it is
not known. A reason that is not `sure` hangs on an unknown release, a guess or a missing package.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from capcheck.quantization import Scheme

from .releases import Version, holds

_DATA = Path(__file__).parent / "data"
_NATIVE_FP8 = ("fp8_e4m3", "fp8_e5m2")


class Problem(NamedTuple):
    """One reason for which an engine refuses or cannot run a scheme."""

    kind: str  # group pack tiles block sixteen whole | capability method dtype kv-dtype
    what: str  # "mlp.down_proj, input features of one rank", "float16"
    have: float
    need: float  # a multiple for shapes, a least for capabilities; 0 where it is no number
    words: str  # one sentence, with the numbers
    sure: bool
    source: str


@lru_cache(maxsize=8)
def rows(table: str) -> tuple[Mapping[str, Any], ...]:
    """The records of one data file of this package."""
    lines = (_DATA / table).read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line)


def method_key(scheme: Scheme) -> str:
    """The word by which the tables know what has to run: w4a16, modelopt-nvfp4, fp8-block ..."""
    if scheme.method == "compressed-tensors":
        return _COMPRESSED.get(scheme.weight, _integer_key(scheme))
    if scheme.method == "modelopt":
        if scheme.mixed:
            return "modelopt-mixed"
        return _MODELOPT.get(scheme.weight, _integer_key(scheme))
    if scheme.method == "quark":
        return {"fp8_e4m3": "quark-fp8", "int8": "quark-int8"}.get(scheme.weight, "quark-mxfp4")
    if scheme.method == "fp8" and scheme.block is not None:
        return "fp8-block"
    return scheme.method


_COMPRESSED = {"fp8_e4m3": "w8a8-fp8", "nvfp4": "nvfp4-ct", "mxfp4": "mxfp4-ct",
               "mxfp8": "mxfp8-ct"}  # fmt: skip
_MODELOPT = {"fp8_e4m3": "modelopt-fp8", "nvfp4": "modelopt-nvfp4", "mxfp8": "modelopt-mxfp8"}


def _integer_key(scheme: Scheme) -> str:
    return "w8a8-int8" if scheme.activation == "int8" else "w4a16"


def _leaves(scheme: Scheme) -> Iterator[Scheme]:
    if scheme.parts:
        for part in scheme.parts:
            yield from _leaves(part)
    else:
        yield scheme


def method_known(scheme: Scheme) -> bool:
    """Whether the method is more than what a name or a habit suggests."""
    return scheme.seen != "name" and "method" not in scheme.guessed


def written(capability: float) -> str:
    """A capability as NVIDIA writes it: 89 is 8.9."""
    return f"{capability / 10:.1f}"


def capability_problems(
    scheme: Scheme, engine: str, vendor: str, capability: int | None, release: Version | None
) -> tuple[Problem, ...]:
    """Whether the device is too old for the method on this release. NVIDIA only."""
    if vendor != "nvidia" or capability is None:
        return ()
    keys = [method_key(scheme)]
    keys.extend(method_key(leaf) for leaf in _leaves(scheme) if leaf is not scheme)
    known = method_known(scheme)
    found = [_least(key, engine, capability, release) for key in dict.fromkeys(keys)]
    return tuple(one._replace(sure=one.sure and known) for one in found if one is not None)


def _least(key: str, engine: str, capability: int, release: Version | None) -> Problem | None:
    fitting = [
        row
        for row in rows("capabilities.jsonl")
        if row["engine"] == engine and row["method"] == key and holds(row, release) is not False
    ]
    failing = [row for row in fitting if capability < row["need"]]
    if not failing:
        return None
    # Between two releases, or with none known, every candidate must fail to be sure.
    row = min(failing, key=lambda one: int(one["need"]))
    sure = len(failing) == len(fitting)
    words = (
        f"{key} needs compute capability {written(row['need'])}, "
        f"the device has {written(capability)}"
    )
    return Problem("capability", key, capability, row["need"], words, sure, row["source"])


def method_problems(scheme: Scheme, engine: str, release: Version | None) -> tuple[Problem, ...]:
    """Whether the release has the method at all; a method that no row names is not judged."""
    found = []
    for row in rows("methods.jsonl"):
        if row["engine"] != engine or row["method"] != scheme.method:
            continue
        answer = holds(row, release)
        if answer is True or (answer is None and release is None):
            continue
        sure = answer is False and method_known(scheme)
        note = f"; {row['note']}" if row.get("note") and _ended(row, release) else ""
        words = f"{engine} {_range(row)} has {scheme.method}{note}"
        found.append(Problem("method", scheme.method, 0, 0, words, sure, row["source"]))
    return tuple(found)


def _ended(row: Mapping[str, Any], release: Version | None) -> bool:
    return bool(row.get("until")) and holds({"until": row["until"]}, release) is not True


def _range(row: Mapping[str, Any]) -> str:
    since, until = row.get("since"), row.get("until")
    if since and until:
        return f"{since[1]} to {until[0]}"
    return f"from {since[1]}" if since else f"up to {until[0]}" if until else ""


def dtype_problems(
    scheme: Scheme | None,
    dtype: str,
    *,
    engine: str,
    release: Version | None,
    vendor: str = "",
    capability: int | None = None,
    model_type: str = "",
    forced: str = "",
) -> tuple[Problem, ...]:
    """Whether the computing dtype ("fp16", "bf16") goes with method, model and device.

    `forced` is the engine's own quantization option: `awq` keeps plain kernels, which take fp16.
    """
    keys = {method_key(leaf) for leaf in _leaves(scheme)} if scheme is not None else set()
    found = []
    for row in rows("dtypes.jsonl"):
        if row["engine"] != engine or holds(row, release) is False:
            continue
        if not _dtype_row_applies(row, keys, vendor, capability, model_type, forced):
            continue
        allowed, forbidden = row.get("allowed"), row.get("forbidden", ())
        if (allowed is None or dtype in allowed) and dtype not in forbidden:
            continue
        device = f"compute capability {written(capability or 0)}"
        who = row.get("method") or row.get("model_type") or device
        words = f"{who} does not run in {dtype}"
        if allowed:
            words = f"{who} runs in {' or '.join(allowed)}, not in {dtype}"
        sure = holds(row, release) is True
        if scheme is not None and "method" in row:
            sure = sure and method_known(scheme)
        found.append(Problem("dtype", dtype, capability or 0, 0, words, sure, row["source"]))
    return tuple(found)


def _dtype_row_applies(
    row: Mapping[str, Any],
    keys: set[str],
    vendor: str,
    capability: int | None,
    model_type: str,
    forced: str,
) -> bool:
    if "method" in row and row["method"] not in keys:
        return False
    if "model_type" in row and row["model_type"] != model_type:
        return False
    if "vendor" in row and row["vendor"] != vendor:
        return False
    if row.get("when") == "forced" and forced != row["method"]:
        return False
    if "below" in row and (capability is None or capability >= row["below"]):
        return False
    return "from" not in row or (capability is not None and capability >= row["from"])


def kv_problems(
    kv: str, engine: str, vendor: str, capability: int | None, release: Version | None
) -> tuple[Problem, ...]:
    """Whether the device can keep its KV cache in this dtype; never sure, backends differ."""
    found = []
    for row in rows("kv.jsonl"):
        if (row["engine"], row["kv"], row["vendor"]) != (engine, kv, vendor):
            continue
        if capability is None or capability >= row["need"] or holds(row, release) is False:
            continue
        words = (
            f"a KV cache in {kv} needs compute capability {written(row['need'])}, "
            f"the device has {written(capability)}, unless {row['unless']}"
        )
        found.append(Problem("kv-dtype", kv, capability, row["need"], words, False, row["source"]))
    return tuple(found)


def dead_end(
    scheme: Scheme | None,
    dtypes: Sequence[str],
    *,
    engine: str,
    release: Version | None,
    vendor: str,
    capability: int | None,
    model_type: str = "",
    forced: str = "",
) -> bool:
    """Whether every one of these dtypes is surely refused."""
    return all(
        any(
            problem.sure
            for problem in dtype_problems(
                scheme, dtype, engine=engine, release=release, vendor=vendor,
                capability=capability, model_type=model_type, forced=forced,
            )
        )
        for dtype in dtypes
    )  # fmt: skip
