"""From a catalogue record or a config.json to an Architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capcheck.architecture import Architecture

from .families import family, model_type_of
from .families.config import BadConfig, Config, UnknownFamily
from .families.decoder import Decoder
from .families.rope import lengths

__all__ = ["BadConfig", "UnknownFamily", "architecture"]

_DTYPES = {
    "bfloat16": "bf16", "float16": "fp16", "float32": "fp32", "half": "fp16", "float": "fp32",
    "bf16": "bf16", "fp16": "fp16", "fp32": "fp32", "float8_e4m3fn": "fp8_e4m3",
}  # fmt: skip
_TEXT_PARTS = ("text_config", "llm_config", "language_config", "thinker_config")


def architecture(record_or_config: Mapping[str, Any], id: str = "") -> Architecture:
    """Build what a model is made of.

    `record_or_config` is a catalogue record (its configuration under `config`) or a config.json.
    Raises UnknownFamily when no family is listed for it, BadConfig when a key that its family
    needs is missing or holds what no model could have; nothing else, whatever the mapping holds.
    """
    record = record_or_config if isinstance(record_or_config.get("config"), Mapping) else {}
    values = record.get("config", record_or_config)
    c = Config(values)
    model_type = model_type_of(c)
    return _architecture(c, model_type, family(model_type)(c), record, id)


def _architecture(
    c: Config, model_type: str, built: Decoder, record: Mapping[str, Any], id: str
) -> Architecture:
    text = _text(c)
    length = lengths(text, c.word("model_type") or model_type)
    widths, routing = built.sizes, built.routing
    return Architecture(
        id=id or str(record.get("id", "")),
        family=model_type,
        layers=built.layers,
        outer=built.outer,
        towers=built.towers,
        draft=built.draft,
        draft_outer=built.draft_outer,
        hidden=widths.hidden,
        vocabulary=widths.vocabulary,
        tied=built.tied,
        heads=widths.heads,
        kv_heads=widths.kv_heads,
        head_size=widths.head_size,
        intermediate=widths.intermediate,
        experts=routing.experts if routing else 0,
        experts_per_token=routing.per_token if routing else 0,
        expert_intermediate=routing.intermediate if routing else 0,
        max_positions=length.most,
        dtype=_dtype(c, text),
        ropes=built.ropes,
        vision=built.vision,
        config=c.values,
        quantization=_quantization(c, text),
        sources=tuple(str(line) for line in record.get("source", ())),
        doubts=tuple(str(line) for line in record.get("doubts", ())),
    )


def _text(c: Config) -> Config:
    """The part that describes the language model, wherever it nests."""
    for _ in _TEXT_PARTS:
        key = next((key for key in _TEXT_PARTS if c.has(key)), None)
        if key is None:
            return c
        c = c.section(key)
    return c


def _dtype(c: Config, text: Config) -> str:
    told = c.word("torch_dtype", "dtype") or text.word("torch_dtype", "dtype")
    return _DTYPES.get(told.removeprefix("torch."), "")


def _quantization(c: Config, text: Config) -> Mapping[str, Any] | None:
    for part in (c, text):
        if part.has("quantization_config", "compression_config"):
            return part.section("quantization_config", "compression_config").values
    return None
