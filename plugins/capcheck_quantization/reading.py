"""What readers of quantization configurations share: typed access to a stranger's mapping."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from capcheck.quantization import Scheme

from .patterns import LONGEST_PATTERN, MOST_PATTERNS, fold

# Where configurations list what stays unquantized. The last two are of trimmed copies, in which
# `N` stands for any layer.
EXCLUSION_KEYS = (
    "modules_to_not_convert", "ignored_layers", "ignore", "exclude_modules", "exclude",
    "skip_modules", "llm_int8_skip_modules", "unquantized_patterns", "exclude_patterns",
)  # fmt: skip
LARGEST_GROUP = 1 << 20
# What packs without being asked: every matrix of the decoder but the routers, and of its
# multi-token prediction but what joins that to the model.
PACKED_ROLES = ("attention", "mlp", "expert", "shared_expert", "state", "indexer", "other")


class Unread(Exception):
    """A configuration that nobody can turn into a scheme; the reason is for the user."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Exclusions(NamedTuple):
    """The patterns of what stays unquantized, and what they leave open."""

    patterns: tuple[str, ...]
    doubt: str = ""


def number(config: Mapping[str, Any], key: str) -> float | None:
    """A number, or None when absent. Raises Unread when it is something else."""
    value = config.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise Unread(f"{key} is not a number")
    if not -1 <= value <= LARGEST_GROUP:
        raise Unread(f"{key} is out of range: {value}")
    return value


def whole(config: Mapping[str, Any], key: str) -> int | None:
    """A whole number, or None when absent. Raises Unread when it is something else."""
    value = number(config, key)
    return None if value is None else int(value)


def bits_of(config: Mapping[str, Any], *keys: str) -> int:
    """The required width of a weight. Raises Unread when it is absent or no width."""
    for key in keys:
        value = whole(config, key)
        if value is not None:
            if not 1 <= value <= 16:
                raise Unread(f"{key} is {value}, not a width in bits")
            return value
    raise Unread(f"{keys[0]} is not told")


def word(config: Mapping[str, Any], key: str) -> str:
    """A lower-case text, "" when absent or something else."""
    value = config.get(key)
    return value.lower() if isinstance(value, str) else ""


def mapping(config: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    """A mapping, empty when absent or something else."""
    value = config.get(key)
    return value if isinstance(value, Mapping) else {}


def texts(value: object) -> tuple[str, ...]:
    """The texts of a list (or a lone text), capped in number and length."""
    if isinstance(value, str):
        return (value[:LONGEST_PATTERN],)
    if not isinstance(value, Sequence):
        return ()
    return tuple(
        item[:LONGEST_PATTERN] for item in value[:MOST_PATTERNS] if isinstance(item, str) and item
    )


def exclusions(config: Mapping[str, Any]) -> Exclusions:
    """What the configuration leaves unquantized, long lists of layers folded."""
    found: list[str] = []
    doubt = ""
    for key in EXCLUSION_KEYS:
        listed = texts(config.get(key))
        if key not in EXCLUSION_KEYS[-2:]:
            found.extend(listed)
            continue
        for pattern in listed:
            if _names_some_layers(pattern):
                doubt = f"which layers {pattern} stands for is not known"
            else:
                found.append(pattern.replace(".N.", ".*.").replace(".N*", ".*"))
    return Exclusions(fold(found), doubt)


def _names_some_layers(pattern: str) -> bool:
    """`model.layers.N*`: whole layers, but a trimmed copy does not tell which."""
    bare = pattern.rstrip("*").rstrip(".")
    return bare.endswith("layers.N") and "mtp" not in pattern


def kv_dtype(config: Mapping[str, Any]) -> str:
    """The KV-cache dtype that the checkpoint asks for, "" for none."""
    for key in ("kv_cache_scheme", "kv_cache_quant_algo", "kv_cache_quant_config"):
        asked = config.get(key)
        if isinstance(asked, str) and asked:
            return _KV_WORDS.get(asked.lower(), "")
        if isinstance(asked, Mapping) and asked:
            floats = word(asked, "type") in ("float", "")
            width = asked.get("num_bits", 8)
            return {(True, 8): "fp8_e4m3", (False, 8): "int8", (True, 4): "nvfp4"}.get(
                (floats, width), ""
            )
    return ""


_KV_WORDS = {"fp8": "fp8_e4m3", "fp8_e4m3": "fp8_e4m3", "fp8_e5m2": "fp8_e5m2",
             "int8": "int8", "nvfp4": "nvfp4"}  # fmt: skip


def integer(bits: int) -> str:
    """The dtype word of a packed integer."""
    return f"int{bits}"


def finish(scheme: Scheme, config: Mapping[str, Any]) -> Scheme:
    """Add what every method's configuration may tell: exclusions and the KV cache."""
    listed = exclusions(config)
    doubt = "; ".join(text for text in (scheme.doubt, listed.doubt) if text)
    return scheme._replace(
        excluded=(*scheme.excluded, *listed.patterns), kv=scheme.kv or kv_dtype(config), doubt=doubt
    )
