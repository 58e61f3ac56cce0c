"""One reader for each quantization method that describes the whole model at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from capcheck.quantization import Scheme

from . import overrides
from .grouped import algorithm_scheme, block_of, compressed_tensors, modelopt
from .patterns import fold
from .reading import (
    EXCLUSION_KEYS,
    PACKED_ROLES,
    Unread,
    bits_of,
    finish,
    integer,
    mapping,
    texts,
    whole,
    word,
)

Reader = Callable[[Mapping[str, Any]], Scheme]

_DEFAULT_GROUP = 128


def _fp8(config: Mapping[str, Any]) -> Scheme:
    """DeepSeek's and Qwen's own format, and vLLM's: per tensor, or in blocks."""
    block = block_of(config.get("weight_block_size"))
    if config.get("weight_block_size") and block is None:
        raise Unread("weight_block_size is not a pair of sizes")
    scheme = Scheme(
        method="fp8",
        weight="fp8_e5m2" if "e5m2" in word(config, "fmt") else "fp8_e4m3",
        bits=8,
        group=0 if block else -1,
        block=block,
        activation="fp8",
        activation_static=word(config, "activation_scheme") == "static",
    )
    experts = str(config.get("moe_quant_algo") or "").upper()
    if not experts:
        return finish(scheme, config)
    # Experts of another precision in an fp8 checkpoint; its exclusions are about those only.
    packed = algorithm_scheme(experts, whole(config, "group_size"))._replace(roles=("expert",))
    told = {key: value for key, value in config.items() if key not in EXCLUSION_KEYS}
    return finish(scheme._replace(parts=(packed, scheme)), told)


def _fbgemm_fp8(config: Mapping[str, Any]) -> Scheme:
    return finish(Scheme("fbgemm_fp8", "fp8_e4m3", 8, 0, activation="fp8"), config)


def _group(config: Mapping[str, Any], key: str = "group_size") -> tuple[int, tuple[str, ...]]:
    """Input elements per scale, and "group" where the configuration does not tell."""
    told = whole(config, key)
    if told is None:
        return _DEFAULT_GROUP, ("group",)
    return (0 if told < 1 else told), ()


def _awq(config: Mapping[str, Any]) -> Scheme:
    bits = bits_of(config, "bits", "w_bit")
    group, guessed = _group(config, "q_group_size" if "q_group_size" in config else "group_size")
    scheme = Scheme(
        method="awq",
        weight=integer(bits),
        bits=bits,
        group=group,
        zero_points=config.get("zero_point") is not False,
        guessed=guessed,
    )
    return finish(_with_head(scheme, config), config)


def _gptq(config: Mapping[str, Any], method: str = "gptq") -> Scheme:
    bits = bits_of(config, "bits")
    group, guessed = _group(config)
    scheme = Scheme(
        method=method,
        weight=integer(bits),
        bits=bits,
        group=group,
        zero_points=config.get("sym") is False,
        activation_order=config.get("desc_act") is True,
        guessed=guessed,
        targets=_inner_targets(config),
        excluded=_skipped_by_rule(config),
    )
    told = finish(_with_head(scheme, config), config)
    rules = overrides.entries(config, "dynamic")
    return overrides.apply(told, [one for one in rules if not one.pattern.startswith("re:-:")])


def _with_head(scheme: Scheme, config: Mapping[str, Any]) -> Scheme:
    """A packed head is asked for by name; without it no method of this kind packs the head."""
    if config.get("lm_head") is not True:
        return scheme
    return scheme._replace(roles=(*PACKED_ROLES, "head", "draft"))


def _inner_targets(config: Mapping[str, Any]) -> tuple[str, ...]:
    """`modules_in_block_to_quantize`: names inside each layer, in one list or in several."""
    listed = config.get("modules_in_block_to_quantize")
    if not isinstance(listed, (list, tuple)):
        return ()
    names: list[str] = []
    for item in listed:
        names.extend(texts(item))
    return fold(names)


def _skipped_by_rule(config: Mapping[str, Any]) -> tuple[str, ...]:
    """GPTQModel's `dynamic`: rules that begin with `-:` leave modules alone."""
    rules = [str(rule) for rule in mapping(config, "dynamic")]
    return tuple(f"re:{rule[2:]}" for rule in rules if rule.startswith("-:"))


def _auto_round(config: Mapping[str, Any]) -> Scheme:
    head = mapping(mapping(config, "extra_config"), "lm_head")
    if 0 < (whole(head, "bits") or 0) < 16:
        config = {**config, "lm_head": True}
    scheme = _gptq(config, "auto-round")
    if "awq" in word(config, "packing_format"):
        scheme = scheme._replace(zero_points=True)
    blocks = config.get("block_name_to_quantize")
    listed = blocks.split(",") if isinstance(blocks, str) else list(texts(blocks))
    targets = scheme.targets or fold(name.strip() for name in listed if name.strip())
    return overrides.apply(
        scheme._replace(targets=targets), overrides.entries(config, "extra_config")
    )


def _mxfp4(config: Mapping[str, Any]) -> Scheme:
    """gpt-oss: engines pack the experts and nothing else."""
    return finish(Scheme("mxfp4", "mxfp4", 4, 32, experts_only=True), config)


def _bitsandbytes(config: Mapping[str, Any]) -> Scheme:
    if config.get("load_in_8bit") is True or config.get("_load_in_8bit") is True:
        return finish(Scheme("bitsandbytes", "int8", 8, 0, activation="int8"), config)
    kind = word(config, "bnb_4bit_quant_type") or "fp4"
    if config.get("load_in_4bit") is False and config.get("_load_in_4bit") is not True:
        raise Unread("neither load_in_4bit nor load_in_8bit is set")
    if kind not in ("nf4", "fp4"):
        raise Unread(f"bnb_4bit_quant_type {kind}")
    nested = config.get("bnb_4bit_use_double_quant") is True
    size = whole(config, "bnb_4bit_blocksize") or 64
    return finish(Scheme("bitsandbytes", kind, 4, size, nested=nested), config)


def _quark(config: Mapping[str, Any]) -> Scheme:
    told = mapping(config, "global_quant_config")
    weight, inputs = mapping(told, "weight"), mapping(told, "input_tensors")
    if not weight:
        weight = {"dtype": word(config, "type"), "qscheme": f"per_{word(config, 'strategy')}"}
    dtype = word(weight, "dtype")
    shape = {"per_tensor": -1, "per_channel": 0}.get(
        word(weight, "qscheme"), whole(weight, "group_size") or 0
    )
    if dtype in ("fp4", "mxfp4"):
        scheme = Scheme("quark", "mxfp4", 4, 32, activation="mxfp4" if inputs else "")
    elif dtype in ("fp8_e4m3", "float"):
        scheme = Scheme("quark", "fp8_e4m3", 8, shape, activation="fp8")
    elif dtype == "int8":
        scheme = Scheme("quark", "int8", 8, shape, activation="int8" if inputs else "")
    elif dtype in ("int4", "uint4"):
        scheme = Scheme("quark", "int4", 4, max(shape, 0), zero_points=dtype == "uint4")
    else:
        raise Unread(f"quark weights of dtype {dtype or 'unknown'}")
    static = bool(inputs) and inputs.get("is_dynamic") is False
    if mapping(mapping(config, "export"), "kv_cache_quant_config") or _keys_quantized(config):
        scheme = scheme._replace(kv="fp8_e4m3")
    return finish(scheme._replace(activation_static=static), config)


def _keys_quantized(config: Mapping[str, Any]) -> bool:
    layers = mapping(config, "layer_quant_config")
    return any("k_proj" in str(name) and "v_proj" not in str(name) for name in layers)


def _hqq(config: Mapping[str, Any]) -> Scheme:
    told = mapping(mapping(config, "quant_config"), "weight_quant_params") or config
    bits = bits_of(told, "nbits", "bits")
    group, guessed = _group(told)
    return finish(
        Scheme("hqq", integer(bits), bits, group, zero_points=True, guessed=guessed), config
    )


def _torchao(config: Mapping[str, Any]) -> Scheme:
    told = config.get("quant_type")
    default = mapping(config, "quant_type").get("default", told)
    name = str(default.get("_type", "")) if isinstance(default, Mapping) else str(default or "")
    data = mapping(default, "_data") if isinstance(default, Mapping) else {}
    plain = name.lower().replace("_", "").removesuffix("config")
    if plain == "int4weightonly":
        group, _ = _group(data)
        return finish(Scheme("torchao", "int4", 4, group, zero_points=True), config)
    if plain == "int8weightonly":
        return finish(Scheme("torchao", "int8", 8, 0), config)
    if plain == "int8dynamicactivationint8weight":
        return finish(Scheme("torchao", "int8", 8, 0, activation="int8"), config)
    if plain == "float8weightonly":
        return finish(Scheme("torchao", "fp8_e4m3", 8, 0), config)
    if plain == "float8dynamicactivationfloat8weight":
        rows = "perrow" in str(data.get("granularity", "")).lower()
        return finish(Scheme("torchao", "fp8_e4m3", 8, 0 if rows else -1, activation="fp8"), config)
    raise Unread(f"torchao {name or 'without a quant_type'}")


def _exl2(config: Mapping[str, Any]) -> Scheme:
    bits = config.get("bits")
    if isinstance(bits, bool) or not isinstance(bits, (int, float)) or not 1 < bits <= 16:
        raise Unread("bits is not a width")
    return finish(Scheme("exl2", "exl2", float(bits)), config)


def _eetq(config: Mapping[str, Any]) -> Scheme:
    return finish(Scheme("eetq", "int8", 8, 0), config)


READERS: Mapping[str, Reader] = {
    "fp8": _fp8,
    "deepseek_v4_fp8": _fp8,
    "fbgemm_fp8": _fbgemm_fp8,
    "awq": _awq,
    "gptq": _gptq,
    "auto-round": _auto_round,
    "auto_round": _auto_round,
    "intel/auto-round": _auto_round,
    "compressed-tensors": compressed_tensors,
    "compressed_tensors": compressed_tensors,
    "modelopt": modelopt,
    "modelopt_fp4": modelopt,
    "modelopt_mixed": modelopt,
    "nvfp4": modelopt,
    "mxfp4": _mxfp4,
    "bitsandbytes": _bitsandbytes,
    "quark": _quark,
    "hqq": _hqq,
    "torchao": _torchao,
    "exl2": _exl2,
    "eetq": _eetq,
}
