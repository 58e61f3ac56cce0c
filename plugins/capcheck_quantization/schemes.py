"""From what a checkpoint, a spec or an engine option says to a quantization scheme."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from capcheck.quantization import Scheme, Seen

from . import gguf_mixtures
from .methods import READERS
from .reading import Unread, mapping, word

__all__ = ["Unread", "from_config", "from_words", "near_words", "online", "precisions", "read"]

_DATA = Path(__file__).parent / "data"
_MOST_CHARACTERS = 100


def read(
    config: Mapping[str, Any], seen: Seen = "config", source: str = "", *, expert_dtype: str = ""
) -> Scheme:
    """The scheme of a `quantization_config` or `hf_quant_config.json`.

    `expert_dtype` is the model's own key of that name: DeepSeek-V4 packs experts as fp4 although
    its quantization says fp8. Raises Unread, whose reason is for the user, when the method or
    something it needs is not known; nothing is guessed but what `Scheme.guessed` names.
    """
    told = _flattened(config)
    method = word(told, "quant_method") or _inferred(told)
    if not method:
        raise Unread("quant_method is not told")
    reader = READERS.get(method)
    if reader is None:
        raise Unread(f"quant_method {method[:_MOST_CHARACTERS]!r} is not known")
    scheme = reader(told)
    if expert_dtype.lower() in ("fp4", "float4_e2m1fn_x2") and not scheme.parts:
        experts = Scheme(scheme.method, "mxfp4", 4, 32, roles=("expert",))
        scheme = scheme._replace(parts=(experts, scheme))
    return scheme._replace(seen=seen, source=source)


def from_config(
    config: Mapping[str, Any], seen: Seen = "config", source: str = "", *, expert_dtype: str = ""
) -> Scheme | None:
    """As `read`, and None where that raises Unread."""
    try:
        return read(config, seen, source, expert_dtype=expert_dtype)
    except Unread:
        return None


def _flattened(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """hf_quant_config.json nests everything under `quantization`, copies under `modelopt`."""
    inner = mapping(config, "quantization") or mapping(config, "modelopt")
    if not inner:
        return config
    outer = {key: value for key, value in config.items() if key not in ("quantization", "modelopt")}
    return {"quant_method": "modelopt", **inner, **outer}


def _inferred(config: Mapping[str, Any]) -> str:
    if config.get("quant_algo"):
        return "modelopt"
    return "compressed-tensors" if mapping(config, "config_groups") else ""


@lru_cache(maxsize=4)
def _table(name: str) -> Mapping[str, Mapping[str, Any]]:
    """A data file's records by each of their words."""
    found: dict[str, Mapping[str, Any]] = {}
    for line in _lines(name):
        record = json.loads(line)
        for spelled in (record["word"], *record.get("also", ())):
            found[spelled] = record
    return found


def _lines(name: str) -> Iterator[str]:
    return filter(None, (_DATA / name).read_text(encoding="utf-8").splitlines())


def _scheme(fields: Mapping[str, Any], seen: Seen, source: str) -> Scheme:
    told = dict(fields)
    for key in ("block", "guessed", "roles"):
        if key in told:
            told[key] = tuple(told[key])
    return Scheme(**told, seen=seen, source=source)


def precisions() -> tuple[str, ...]:
    """Every word that `weights.precision` may be, other spellings left out."""
    words = (record["word"] for record in _table("precisions.jsonl").values())
    return tuple(dict.fromkeys((*words, *gguf_mixtures.words())))


def from_words(precision: str, seen: Seen = "written") -> Scheme | None:
    """The scheme of `weights.precision`; None when it is unquantized or no such word.

    What the word leaves open is the method's usual choice, and named in `Scheme.guessed`.
    """
    word = precision.strip().lower()
    record = _table("precisions.jsonl").get(word)
    if record is None:
        return gguf_mixtures.from_word(word, seen)
    if "scheme" not in record:
        return None
    return _scheme(record["scheme"], seen, record.get("source", ""))


def near_words(precision: str) -> tuple[str, ...]:
    """Words that the user may have meant by one that is none."""
    from difflib import get_close_matches

    table = _table("precisions.jsonl")
    wanted = precision.strip().lower()[:_MOST_CHARACTERS]
    close = get_close_matches(wanted, list(table), n=5, cutoff=0.6)
    return tuple(dict.fromkeys(str(table[found]["word"]) for found in close))[:3]


def online(method: str) -> Scheme | None:
    """What an engine's `quantization` option makes of an unquantized checkpoint while loading.

    None for a method that needs a checkpoint which is already packed, or that is not known.
    """
    record = _table("online.jsonl").get(method.strip().lower())
    if record is None:
        return None
    return _scheme(record["scheme"], "online", record.get("source", ""))
