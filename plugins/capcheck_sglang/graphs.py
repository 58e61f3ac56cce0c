"""What is captured at start, as far as the plan needs it: sizes, and what rules prefill out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from capcheck import Model, Value
from capcheck.option_reader import OptionReader
from capcheck.source import to_plain
from capcheck_sglang import defaults

if TYPE_CHECKING:
    from capcheck_sglang.plan import Planner

USUAL_LAYERS, USUAL_WIDTH = 24, 1024  # of an encoder whose configuration does not say


def prefill(planner: Planner, chunk: int, ranks: int) -> int:
    """Token counts that graphs of prefill are captured for."""
    read, part, version = planner.read, planner.accelerator, planner.version
    asked = read.flag("enable_piecewise_cuda_graph", False).either(False)
    off = read.flag("disable_piecewise_cuda_graph", False).either(False)
    off = off or read.text("cuda_graph_backend_prefill", "").either("") == "disabled"
    spread = ranks > 1 or (planner.pipeline.either(1) or 1) > 1 or read.has("lora_paths")
    plain = not spread and encoder(read, planner.model) is None
    usual = plain and part is not None and part.vendor == "nvidia"
    usual = usual and version >= defaults.PREFILL_GRAPHS
    if off or chunk <= 0 or not (usual or asked):
        return 0
    most = read.written_count("piecewise_cuda_graph_max_tokens")
    held = latent(planner.model)
    short = held and version < defaults.SHORT_PREFILL_GRAPHS
    tokens = (most.either(None) if most is not None else None) or (2048 if short else chunk)
    return defaults.prefill_sizes(version, tokens, latent=held)


def latent(model: Model | None) -> bool:
    """Whether the model keeps latents in place of keys and values."""
    layers = model.architecture.layers if model is not None else ()
    return any(layer.mixer.kind == "mla" for layer in layers)


def encoder(read: OptionReader, model: Model | None) -> tuple[int, int] | None:
    """Layers and width of the image encoder as the default share reads them; None: text only."""
    if model is None or read.flag("language_only", False).either(False):
        return None
    found = model.architecture.config.get("vision_config")
    if model.architecture.vision is None and not found:
        return None
    told = found if isinstance(found, Mapping) else {}
    layers, width = told.get("num_hidden_layers"), told.get("hidden_size")
    return int(layers or USUAL_LAYERS), int(width or USUAL_WIDTH)


def numbers(value: Value[Any] | None) -> list[int]:
    """Whole numbers of a list as written: a sequence, or words of one text."""
    if value is None or not value.known:
        return []
    plain = to_plain(value.options[0])
    words = plain if isinstance(plain, list) else str(plain).replace(",", " ").split()
    return [int(word) for word in words if str(word).isdigit()]
