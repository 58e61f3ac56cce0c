"""From a catalogue record or a config.json to an Architecture."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from capcheck.architecture import Architecture, Part, Tensor

from .families import family, model_type_of, towers_of
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
    told = record_or_config.get("config")
    is_record = isinstance(told, Mapping) and "model_type" not in record_or_config
    record = record_or_config if is_record else {}
    c = Config(told if isinstance(told, Mapping) and is_record else record_or_config)
    model_type = model_type_of(c)
    built = _stored(record, c, family(model_type)(_text_of_unlisted(c, model_type)))
    return _architecture(c, model_type, built, record, id)


def _text_of_unlisted(c: Config, model_type: str) -> Config:
    """The section that names the family: a text part, when the whole is not listed."""
    if c.has("text_config") and not towers_of(model_type):
        return c.section("text_config")
    return c


def _stored(record: Mapping[str, Any], c: Config, built: Decoder) -> Decoder:
    """Apply what the catalogue knows of a checkpoint beyond its config.json.

    `mtp.layers`: prediction layers that are (or are not) stored whatever the configuration says;
    `mtp.ends` false: without an embedding and a head of their own; `opaque_vision`: towers whose
    drawing is not known count as one tensor of `vision_parameters`.
    """
    stored = record.get("mtp") or {}
    count = stored.get("layers")
    if count == 0:
        built = built._replace(draft=(), draft_outer=())
    elif count and not built.draft:
        told = {"num_nextn_predict_layers": count}
        if c.has("text_config"):
            told = {"text_config": {**c.section("text_config").values, **told}}
        whole = c.with_values(told)
        built = family(model_type_of(whole))(whole)
    if stored.get("ends") is False:
        kept = (tensor for tensor in built.draft_outer if tensor.role not in ("embedding", "head"))
        built = built._replace(draft_outer=tuple(kept))
    if record.get("vision_parameters") and not built.towers:
        parts = (Part("vision", record["vision_parameters"]),)
        built = built._replace(towers=(Tensor("vision", parts, linear=False),))
    return built


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
        doubts=_doubts(c, model_type, built, record),
        layer_prefix=built.prefix,
        most_positions_without_yarn=length.most_without_yarn,
        start_positions=length.start,
    )


def _doubts(
    c: Config, model_type: str, built: Decoder, record: Mapping[str, Any]
) -> tuple[str, ...]:
    told = tuple(str(line) for line in record.get("doubts", ()))
    named = c.word("model_type")
    if named and named != model_type and not record:
        told += (f"model_type {named} is not listed: built as {model_type}",)
    if c.has("vision_config", "audio_config") and not built.towers:
        told += ("the towers of its images or sound are not known: their weights are not counted",)
    return told


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
