"""The catalogue's models behind the core's contract."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from capcheck import Architecture, Catalogue, FoundModel, Scheme, Shelf
from capcheck.gguf_header import GgufHeader

from . import gguf, mistral
from .build import BadConfig, UnknownFamily, architecture
from .checkpoints import scheme
from .names import ModelMatch, resolve

KIND = "model"
_SHIPPED = Shelf("", Path(), "").rank
_SIXTEEN_BIT = re.compile(r"(?i)[-_.](?:bf16|f(?:p)?16|unquantized)(?:[-_.]|$)")


class Models:
    """Names and configurations to architectures; what was built once is kept."""

    def __init__(self) -> None:
        self._built: dict[str, Architecture] = {}

    def find(self, name: str, catalogue: Catalogue) -> FoundModel | None:
        """See `ModelSource.find`."""
        match = _match(name, catalogue)
        if match.id is None:
            return None
        record = catalogue.record(KIND, match.id)
        built = self._built.get(match.id)
        if built is None:
            try:
                built = self._built[match.id] = architecture(record, match.id)
            except (UnknownFamily, BadConfig):  # a record that cannot be built, or of no family
                return None
        found = FoundModel(
            _as_upload(built, record, match),
            match.how,
            "plain",
            may_differ=match.may_differ,
            parameters=record.get("parameters"),
        )
        shelf = catalogue.source(KIND, match.id)
        if shelf.rank > _SHIPPED and match.how == "exact":
            return _of_own(found._replace(how=f"{shelf.file.name}"), record)
        return _stored(found, match, name)

    def near(self, name: str, catalogue: Catalogue) -> tuple[str, ...]:
        """See `ModelSource.near`."""
        return _match(name, catalogue).near

    def build(self, config: Mapping[str, Any], name: str) -> FoundModel:
        """See `ModelSource.build`."""
        header = config.get("gguf")
        if isinstance(header, GgufHeader):
            return _of_gguf(header, name)
        told, how = config, "config.json"
        if mistral.is_params(config):
            told, how = mistral.config_of(config), "params.json"
        built = _built(told, name)
        return FoundModel(built, how, "config" if built.quantization else "plain")


def _built(config: Mapping[str, Any], name: str) -> Architecture:
    """The architecture of a configuration. Raises ValueError saying what is wrong."""
    try:
        return architecture(config, name)
    except (UnknownFamily, BadConfig) as wrong:
        raise ValueError(str(wrong)) from wrong


def _of_gguf(header: GgufHeader, name: str) -> FoundModel:
    """The model of a GGUF file, if what was drawn has as many weights as the file."""
    built = _built(gguf.config_of(header), name)
    stored, drawn = gguf.parameters_of(header), built.parameters
    if abs(drawn - stored) > gguf.MOST_DIFFERENCE * stored:
        why = f"its tensors hold {stored:,} weights, where {built.family} has {drawn:,}"
        raise ValueError(f"{why}: it is drawn otherwise")
    packed = gguf.scheme_of(header, built)
    return FoundModel(
        built, gguf.SOURCE, "scheme" if packed else "plain", packed, parameters=stored
    )


def _of_own(found: FoundModel, record: Mapping[str, Any]) -> FoundModel:
    """What a user's own record says of its weights: shipped knowledge of that name is not asked."""
    told = record.get("scheme")
    if told is None:
        return found._replace(stored="config") if found.architecture.quantization else found
    try:
        return found._replace(stored="scheme", scheme=scheme(told, "config", found.how))
    except (TypeError, ValueError, AttributeError):  # somebody wrote it by hand
        return found._replace(stored="unknown", why=f"the scheme in {found.how} cannot be read")


def _match(name: str, catalogue: Catalogue) -> ModelMatch:
    """As names are written, and with dashes where people put blanks: Qwen3-32B AWQ."""
    match = resolve(name, catalogue.ids(KIND))
    if match.id is None and " " in name.strip():
        joined = resolve("-".join(name.split()), catalogue.ids(KIND))
        return joined if joined.id is not None else match
    return match


def _as_upload(built: Architecture, record: Mapping[str, Any], match: ModelMatch) -> Architecture:
    """The architecture with the sizes in which the upload is known to differ."""
    sizes = {
        key: value
        for key, value in match.differs.items()
        if isinstance(value, int) and key in ("vocab_size", "intermediate_size")
    }
    if sizes:
        config = dict(record["config"])
        inner = config.get("text_config")
        if isinstance(inner, Mapping):
            config["text_config"] = {**inner, **sizes}
        else:
            config.update(sizes)
        built = architecture({**record, "config": config}, str(match.id))
    positions = match.differs.get("max_position_embeddings_or_scaled")
    if isinstance(positions, int):
        built = _at_length(built, positions)
    return built


def _at_length(built: Architecture, positions: int) -> Architecture:
    """The architecture with another context length; a shorter one that it starts at stays."""
    start, before = built.start_positions, built.max_positions
    return built._replace(
        ropes=tuple(
            rope._replace(positions=positions) if rope.positions == before else rope
            for rope in built.ropes
        ),
        max_positions=positions,
        most_positions_without_yarn=positions,
        start_positions=positions if start == built.max_positions else start,
    )


def _stored(found: FoundModel, match: ModelMatch, name: str) -> FoundModel:
    """What is known of the upload's weights: never inherited from another upload silently."""
    if match.checkpoint is not None:
        if match.checkpoint.scheme is None:
            return found._replace(stored="unknown", why=match.checkpoint.why)
        told = _as_usual(match.checkpoint.scheme, found.architecture)
        return found._replace(stored="scheme", scheme=told)
    if match.how == "exact" and found.architecture.quantization:
        return found._replace(stored="config")
    if match.how == "exact":
        return _perhaps_packed(found, match)
    repacked = any("quantization_config" in one for one in match.may_differ)
    if _SIXTEEN_BIT.search(name) and ("unquantized" in name.lower() or not repacked):
        return found
    if match.guess is not None:
        return found._replace(stored="scheme", scheme=_as_usual(match.guess, found.architecture))
    if repacked:
        why = f"{name} is another packing of {match.id}, of which nothing was read"
        return found._replace(stored="unknown", why=f"{why}; state model.weights.precision")
    if match.words:
        return found._replace(stored="unknown", why=f"the name says {match.words}, nothing more")
    if found.architecture.quantization:
        return found._replace(stored="config", own=False)
    return _perhaps_packed(found, match)


def _as_usual(guess: Scheme, model: Architecture) -> Scheme:
    """A guessed scheme with what such uploads usually leave alone, where nobody told what is.

    Of 14 uploads with NVFP4 weights and latent attention that were read, 12 keep attention at 16
    bits.
    """
    if "excluded" not in guess.guessed or guess.excluded or guess.weight != "nvfp4":
        return guess
    if not any(layer.mixer.kind == "mla" for layer in model.layers):
        return guess
    return guess._replace(excluded=("self_attn", "attn"))


@lru_cache(maxsize=1)
def _unseen() -> Mapping[str, str]:
    """Checkpoints of the catalogue whose packing nobody read, and what is known instead."""
    file = Path(__file__).parent / "data" / "packing_unseen.jsonl"
    rows = (json.loads(line) for line in file.read_text(encoding="utf-8").splitlines())
    return {row["id"]: row["why"] for row in rows}


def _perhaps_packed(found: FoundModel, match: ModelMatch) -> FoundModel:
    why = _unseen().get(str(match.id))
    if why is None:
        return found
    return found._replace(
        stored="unknown", why=f"how {match.id} is stored: {why}; state model.weights.precision"
    )
