"""Weights that vLLM keeps in host memory, and what loading takes for a while.

Only the decoder's layers are ever moved: embedding, head and encoders stay. `cpu_offload_gb` is
GiB for each device; parameters go out whole until that much is gone. From 0.17 every so many
layers can be fetched shortly before they run: they share the device memory of a few. Read in
vLLM's sources, 0.8.5 to 0.33.0.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from capcheck import GIB, Case, Scheme, Value
from capcheck.option_reader import OptionReader
from capcheck.physics import memory
from capcheck.physics.memory import Split
from capcheck_vllm.weights import weighing

Version = tuple[int, ...]

# Until then online quantization put the whole unquantized model on the device first.
_BY_LAYER: Version = (0, 16, 0)
_ALWAYS_BY_LAYER = frozenset(("bitsandbytes", "experts_int8", "rtn", "gguf"))


def options(read: OptionReader, why: str) -> dict[str, Value[Any]]:
    """What decides what is moved, beside `cpu_offload_gb`."""
    return {
        "offload_backend": read.text("offload_backend", "auto", why),
        "offload_group_size": read.count("offload_group_size", 0, why),
        "offload_num_in_group": read.count("offload_num_in_group", 1, why),
        "offload_prefetch_step": read.count("offload_prefetch_step", 1, why),
    }


def offloaded_bytes(
    case: Case,
    scheme: Scheme | None,
    split: Split,
    stage: int,
    sizes: Sequence[int],
    dtype: str,
) -> float:
    """Bytes of one stage's weights that do not stay on its devices. Raises Unknown."""
    extra = case.plan.extra
    backend = extra["offload_backend"].get("offload_backend")
    group = int(extra["offload_group_size"].get("offload_group_size"))
    asked = float(extra["cpu_offload_gb"].get("cpu_offload_gb")) * GIB
    if group < 1 and asked <= 0:
        return 0.0
    model = case.model.get("model").architecture
    layers = memory.stage_layers(model.layers, split.pipeline, stage, sizes)
    total = weighing(case, scheme, split, dtype).layers(layers, sum(sizes[:stage]))
    if group >= 1 and backend in ("auto", "prefetch"):
        each = min(max(int(extra["offload_num_in_group"].get()), 0), group)
        moved = each * (len(layers) // group)
        kept = min(max(int(extra["offload_prefetch_step"].get()), 0), moved)
        return total * (moved - kept) / max(len(layers), 1)
    return min(max(asked, 0.0), total)


def loads_whole(scheme: Scheme, version: Version) -> bool:
    """Whether online quantization needs room for the whole unquantized model while it loads."""
    return version < _BY_LAYER and scheme.method not in _ALWAYS_BY_LAYER
