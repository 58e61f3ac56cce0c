"""Configurations that describe groups of modules: compressed-tensors and ModelOpt."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from capcheck.quantization import Scheme

from .patterns import fold
from .reading import Unread, bits_of, finish, integer, mapping, texts, whole, word

_EVERY_LINEAR = frozenset(("linear", "fusedmoe", "moe"))
_UNMODELLED_FORMATS = frozenset(("marlin-24", "sparse-24-bitmask"))
_BLOCK = (128, 128)


def compressed_tensors(config: Mapping[str, Any]) -> Scheme:
    """A compressed-tensors configuration: one scheme, or one per group of modules."""
    form = word(config, "format")
    if form in _UNMODELLED_FORMATS or word(mapping(config, "sparsity_config"), "format") in (
        "sparse-24-bitmask", "marlin-24",
    ):  # fmt: skip
        raise Unread("2:4 sparse weights")
    groups = [
        group
        for group in mapping(config, "config_groups").values()
        if isinstance(group, Mapping) and mapping(group, "weights")
    ]
    if not groups:
        return finish(_group(_flat(config), "compressed-tensors", form), config)
    parts = [_group(group, "compressed-tensors", form) for group in groups]
    return finish(_joined("compressed-tensors", parts), config)


def _flat(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """A configuration that tells its only group's weights at the top level."""
    weights = {
        "num_bits": config.get("bits"),
        "type": config.get("type") or ("float" if "float" in word(config, "format") else None),
        "strategy": config.get("strategy"),
        "group_size": config.get("group_size"),
        "symmetric": config.get("sym"),
        "block_structure": config.get("weight_block_size"),
    }
    return {"weights": weights, "input_activations": config.get("input_activations")}


def _group(group: Mapping[str, Any], method: str, form: str) -> Scheme:
    weights = mapping(group, "weights")
    form = word(group, "format") or form
    bits = bits_of(weights, "num_bits")
    floats = word(weights, "type") == "float" or form.startswith(("nvfp4", "mxfp", "float"))
    size, block = _scale_shape(weights)
    weight = _float_word(bits, size, form) if floats else integer(bits)
    if weight in ("nvfp4", "mxfp4", "mxfp8"):
        size = {"nvfp4": 16}.get(weight, 32)
    activation, static = _activation(group.get("input_activations"), weight)
    return Scheme(
        method=method,
        weight=weight,
        bits=bits,
        group=size,
        block=block,
        zero_points=not floats and weights.get("symmetric") is False,
        activation=activation,
        activation_static=static,
        activation_order=word(weights, "actorder") == "group",
        targets=_targets(texts(group.get("targets"))),
    )


def _scale_shape(weights: Mapping[str, Any]) -> tuple[int, tuple[int, int] | None]:
    """Input elements per scale (0 per channel, -1 per tensor), and two-dimensional blocks."""
    strategy = word(weights, "strategy")
    size = whole(weights, "group_size")
    block = weights.get("block_structure")
    if strategy == "block" or (not strategy and isinstance(block, (list, tuple))):
        return 0, block_of(block) or _BLOCK
    if strategy in ("group", "tensor_group") or (not strategy and size is not None and size > 0):
        if size is None or size < 1:
            raise Unread("group_size is not told")
        return size, None
    if strategy == "channel" or (not strategy and size == -1):
        return 0, None
    if strategy in ("tensor", ""):
        # Without a strategy the scale is one for the tensor, as compressed-tensors defaults.
        return -1, None
    raise Unread(f"weight strategy {strategy!r}")


def block_of(value: object) -> tuple[int, int] | None:
    """A pair of block sizes, or None when it is none."""
    if isinstance(value, str):
        value = value.lower().split("x")
    if not isinstance(value, (list, tuple)) or len(value) != 2:
        return None
    try:
        out, into = (int(side) for side in value)
    except (TypeError, ValueError):
        return None
    return (out, into) if 1 <= out <= 65_536 and 1 <= into <= 65_536 else None


def _float_word(bits: int, size: int, form: str) -> str:
    if bits == 8:
        return "mxfp8" if form.startswith("mxfp8") or size == 32 else "fp8_e4m3"
    if bits == 4:
        return "mxfp4" if form.startswith("mxfp4") or size == 32 else "nvfp4"
    raise Unread(f"{bits}-bit float weights")


def _activation(told: object, weight: str) -> tuple[str, bool]:
    """The dtype word of quantized activations, and whether their scales are fixed."""
    if isinstance(told, str) and told:
        word_of = "int8" if weight == "int8" else "fp8" if weight == "fp8_e4m3" else weight
        return word_of, told.lower().startswith("static")
    if not isinstance(told, Mapping) or not told:
        return "", False
    width = whole(told, "num_bits") or 8
    floats = word(told, "type") == "float" or weight.startswith(("fp8", "nvfp4", "mxfp"))
    static = told.get("dynamic") is False
    if not floats:
        return integer(width), static
    return ("fp8" if width == 8 else weight if weight.endswith("fp4") else "nvfp4"), static


def _targets(listed: Iterable[str]) -> tuple[str, ...]:
    named = [target for target in listed if target.lower() not in _EVERY_LINEAR]
    return fold(named)


def _joined(method: str, parts: list[Scheme]) -> Scheme:
    """One scheme of several groups; those that name their modules come first."""
    ordered = sorted(parts, key=lambda part: not part.targets)
    if len(ordered) == 1 and not ordered[0].targets:
        return ordered[0]
    widest = ordered[-1] if not ordered[-1].targets else min(ordered, key=lambda part: part.bits)
    return widest._replace(method=method, targets=(), parts=tuple(ordered))


def modelopt(config: Mapping[str, Any]) -> Scheme:
    """A ModelOpt configuration, from config.json or from hf_quant_config.json."""
    algorithm = str(config.get("quant_algo") or "").upper()
    if algorithm == "MIXED_PRECISION":
        return finish(_joined("modelopt", _mixed(config)), config)
    if not algorithm and mapping(config, "config_groups"):
        return compressed_tensors(config)._replace(method="modelopt")
    if not algorithm:
        raise Unread("quant_algo is not told")
    return finish(algorithm_scheme(algorithm, whole(config, "group_size")), config)


def algorithm_scheme(algorithm: str, group: int | None = None) -> Scheme:
    """The scheme of one ModelOpt `quant_algo`. Raises Unread for one that is not listed."""
    scheme = _ALGORITHMS.get(algorithm)
    if scheme is None:
        raise Unread(f"quant_algo {algorithm}")
    if scheme.group > 0 and group is not None and group > 0:
        return scheme._replace(group=group)
    return scheme


def _algorithm(weight: str, bits: int, group: int, activation: str = "", **more: Any) -> Scheme:
    return Scheme("modelopt", weight, bits, group, activation=activation, **more)


_ALGORITHMS = {
    "FP8": _algorithm("fp8_e4m3", 8, -1, "fp8", activation_static=True),
    "FP8_PER_CHANNEL_PER_TOKEN": _algorithm("fp8_e4m3", 8, 0, "fp8"),
    "FP8_PB_WO": _algorithm("fp8_e4m3", 8, 0, block=_BLOCK),
    "NVFP4": _algorithm("nvfp4", 4, 16, "nvfp4", activation_static=True),
    "NVFP4_AWQ": _algorithm("nvfp4", 4, 16, "nvfp4", activation_static=True),
    "W4A16_NVFP4": _algorithm("nvfp4", 4, 16),
    "W4A8_NVFP4_FP8": _algorithm("nvfp4", 4, 16, "fp8"),
    "MXFP4": _algorithm("mxfp4", 4, 32),
    "W4A8_MXFP4_FP8": _algorithm("mxfp4", 4, 32, "fp8"),
    "MXFP8": _algorithm("mxfp8", 8, 32, "mxfp8"),
    "W4A16_AWQ": _algorithm("int4", 4, 128),
    "INT4_AWQ": _algorithm("int4", 4, 128),
    "W4A8_AWQ": _algorithm("int4", 4, 128, "fp8"),
    "W8A16": _algorithm("int8", 8, 0),
    "INT8_SQ": _algorithm("int8", 8, 0, "int8"),
    "W8A8_SQ_PER_CHANNEL": _algorithm("int8", 8, 0, "int8"),
}


def _mixed(config: Mapping[str, Any]) -> list[Scheme]:
    """The parts of a mixed checkpoint: named layer by layer, by pattern, or by group."""
    named: dict[tuple[str, int | None], list[str]] = {}
    for name, told in mapping(config, "quantized_layers").items():
        told = cast("Mapping[str, Any]", told) if isinstance(told, Mapping) else {}
        algorithm = str(told.get("quant_algo") or "").upper()
        named.setdefault((algorithm, whole(told, "group_size")), []).append(str(name))
    if not named:
        for pattern, counts in mapping(config, "quantized_layer_patterns").items():
            for algorithm in counts if isinstance(counts, Mapping) else ():
                wild = str(pattern).replace(".N.", ".*.").removesuffix(".N")
                named.setdefault((str(algorithm).upper(), None), []).extend((wild, f"{wild}.*"))
    if named:
        return [
            algorithm_scheme(algorithm, group)._replace(targets=fold(names))
            for (algorithm, group), names in named.items()
        ]
    groups = [group for group in mapping(config, "config_groups").values() if _listed(group)]
    if not groups:
        raise Unread("mixed precision whose layers are not listed")
    return [_group(group, "modelopt", "") for group in groups]


def _listed(group: object) -> bool:
    return isinstance(group, Mapping) and bool(mapping(group, "weights"))
