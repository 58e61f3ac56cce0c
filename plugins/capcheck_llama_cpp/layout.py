"""What the placement of a model depends on: its cells, its caches, its layers' devices."""

from __future__ import annotations

import re
from typing import NamedTuple

from capcheck import Architecture, Case, Scheme, Unknown, Value
from capcheck_llama_cpp import cells, eras, placing
from capcheck_llama_cpp.names import file_type
from capcheck_llama_cpp.overriding import Override, overrides, placed
from capcheck_llama_cpp.plan import ALL_LAYERS, Settings
from capcheck_llama_cpp.tensor_names import whole
from capcheck_llama_cpp.weights import Held, held

EXPERTS = re.compile(r"_exps\.")
HEADER = "GGUF"  # in how a model is known that was read from its file


def experts_of(layer: int) -> re.Pattern[str]:
    """The pattern of one layer's routed experts."""
    return re.compile(rf"blk\.{layer}\..*_exps\.")


# Families whose configuration names a window that llama.cpp does not bound the cache by.
WHOLE = frozenset(
    ("mistral", "mixtral", "phi3", "phi4_multimodal", "phimoe", "qwen2", "starcoder2")
)


class Layout(NamedTuple):
    """Everything that the placement of one model depends on."""

    model: Architecture
    held: Held
    at: cells.Cells
    owners: tuple[int | None, ...]
    places: tuple[tuple[int | None, ...], ...]  # of each layer's pieces
    devices: int
    kv_on_devices: bool
    settings: Settings
    build: int


def settings_of(case: Case) -> Settings:
    """llama.cpp's own part of the plan."""
    return Settings(**{name: case.plan.extra.get(name) for name in Settings._fields})  # type: ignore[arg-type]


def build_of(case: Case) -> int:
    """The build, the one that stands for it, or the one that the engine carries."""
    version = case.release.version
    if len(version) > 1:
        from capcheck_llama_cpp.ollama_plan import build_of as carried

        return carried(version)
    return version[0] if version else 0


def cells_of(case: Case) -> cells.Cells:
    """The cells that the context allocates. Raises Unknown."""
    found = settings_of(case)
    return cells.cells(
        found.ctx_size.get("ctx-size"),
        found.parallel.get("parallel"),
        ubatch=case.plan.max_step_tokens.get("ubatch-size"),
        unified=found.unified.get("kv-unified"),
        flash=found.flash.get("flash-attn"),
        build=build_of(case),
        whole_windows=found.whole_windows.get("swa-full"),
    )


def type_bytes(value: Value[str], name: str) -> float:
    """Bytes of a cached value. Raises Unknown."""
    word = value.get(name)
    if word not in cells.TYPE_BYTES:
        raise Unknown(value.because(f"{word} is no type of cached values"), name)
    return cells.TYPE_BYTES[word]


def latent_of(case: Case) -> cells.Latent:
    """How latent attention is cached."""
    found, build = settings_of(case), build_of(case)
    if case.release.foreign:
        asked = found.latent.either(None) if found.latent is not None else None
        return "latent" if asked else "heads"
    if build < eras.LATENT_CACHE:
        return "heads"
    return "latent" if build >= eras.LATENT_ONLY else "latent and values"


def cache_bytes(case: Case) -> tuple[tuple[float, float], ...]:
    """Bytes of each layer's cache, and of its recurrent state. Raises Unknown."""

    def compute_them() -> tuple[tuple[float, float], ...]:
        found, at, latent = settings_of(case), cells_of(case), latent_of(case)
        k, v = (
            type_bytes(found.key_type, "cache-type-k"),
            type_bytes(found.value_type, "cache-type-v"),
        )
        model = case.model.get("model").architecture
        slides = model.family not in WHOLE
        sizes = []
        for layer in model.layers:
            cache = layer.cache
            if cache is None:
                sizes.append((0.0, 0.0))
            elif cache.kind == "state":
                sizes.append((0.0, cells.state_bytes(cache, at.sequences)))
            else:
                size = cells.layer_bytes(cache, layer.mixer, at, k, v, latent, slides=slides)
                sizes.append((size, cells.state_bytes(cache, at.sequences)))
        return tuple(sizes)

    return case.once("llama.cpp caches", compute_them)


def rules_of(found: Settings, host_experts: int) -> tuple[Override, ...]:
    """The overrides that are written, and the experts that stay on the host. Raises Unknown."""
    rules: tuple[Override, ...] = ()
    if found.overrides is not None:
        made = overrides(found.overrides.get("override-tensor"))
        if made is None:
            why = "which tensors its patterns find is not worked out"
            raise Unknown(found.overrides.because(why), "override-tensor")
        rules = made
    if host_experts >= ALL_LAYERS:
        return (*rules, Override(EXPERTS, None))
    return (*rules, *(Override(experts_of(layer), None) for layer in range(host_experts)))


def stored_type(case: Case) -> Scheme | None:
    """How the file stores its values; None: in 16 bits. Raises Unknown.

    A file's own header tells, or a name; that the published checkpoint has 16 bits tells nothing.
    """
    model = case.model.get("model")
    stored = model.scheme
    scheme: Scheme | None = stored.get("quantization")
    told = scheme is not None or stored.origin.kind == "written" or HEADER in model.how
    if not told and file_type(model.name) is None:
        why = "no file type is named: state model.weights.precision"
        raise Unknown(stored.because(why))
    return scheme


def layout_of(case: Case, offloaded: int | None = None, host_experts: int | None = None) -> Layout:
    """Where everything goes; with so many layers on the devices, when that is asked. Raises
    Unknown."""
    found = settings_of(case)
    model = case.model.get("model")
    found.split_mode.get("split-mode")
    devices = found.devices.get("the number of devices")
    ends = placing.shares(devices, found.tensor_split.get("tensor-split")) if devices else ()
    layers = model.architecture.layers
    many = found.gpu_layers.get("gpu-layers") if offloaded is None else offloaded
    some = found.host_experts.get("n-cpu-moe") if host_experts is None else host_experts
    scheme = stored_type(case)
    computes = case.release.foreign and latent_of(case) == "latent"
    weighed = held(case, model.architecture, scheme, computes=computes)
    owners = placing.owners(len(layers), many, ends, build=build_of(case))
    rules = rules_of(found, min(some, len(layers)) if some < ALL_LAYERS else some)
    return Layout(
        model.architecture, weighed, cells_of(case), owners, _places(weighed, owners, rules),
        devices, found.kv_offload.get("kv-offload"), found, build_of(case),
    )  # fmt: skip


def _places(
    weighed: Held, owners: tuple[int | None, ...], rules: tuple[Override, ...]
) -> tuple[tuple[int | None, ...], ...]:
    """The device of each piece of each layer."""
    if not rules:
        return tuple(
            (owner,) * len(layer) for layer, owner in zip(weighed.layers, owners, strict=False)
        )
    return tuple(
        tuple(placed(whole(number, piece.name), rules, owners[number]) for piece in layer)
        for number, layer in enumerate(weighed.layers)
    )
