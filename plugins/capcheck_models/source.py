"""The catalogue's models behind the core's contract."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

from capcheck import Architecture, Catalogue, FoundModel

from .build import BadConfig, UnknownFamily, architecture
from .names import ModelMatch, resolve

KIND = "model"
_SIXTEEN_BIT = re.compile(r"(?i)[-_.](?:bf16|fp16|unquantized)(?:[-_.]|$)")


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
        return _stored(found, match, name)

    def near(self, name: str, catalogue: Catalogue) -> tuple[str, ...]:
        """See `ModelSource.near`."""
        return _match(name, catalogue).near

    def build(self, config: Mapping[str, Any], name: str) -> FoundModel:
        """See `ModelSource.build`."""
        try:
            built = architecture(config, name)
        except (UnknownFamily, BadConfig) as wrong:
            raise ValueError(str(wrong)) from wrong
        return FoundModel(built, "config.json", "config" if built.quantization else "plain")


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
    start = built.start_positions
    return built._replace(
        max_positions=positions,
        most_positions_without_yarn=positions,
        start_positions=positions if start == built.max_positions else start,
    )


def _stored(found: FoundModel, match: ModelMatch, name: str) -> FoundModel:
    """What is known of the upload's weights: never inherited from another upload silently."""
    if match.checkpoint is not None:
        if match.checkpoint.scheme is None:
            return found._replace(stored="unknown", why=match.checkpoint.why)
        return found._replace(stored="scheme", scheme=match.checkpoint.scheme)
    if match.how == "exact" and found.architecture.quantization:
        return found._replace(stored="config")
    if match.how == "exact":
        return _perhaps_packed(found, match)
    if _SIXTEEN_BIT.search(name):
        return found
    if match.guess is not None:
        return found._replace(stored="scheme", scheme=match.guess)
    if any("quantization_config" in one for one in match.may_differ):
        why = f"{name} is another packing of {match.id}, of which nothing was read"
        return found._replace(stored="unknown", why=f"{why}; state model.weights.precision")
    if match.words:
        return found._replace(stored="unknown", why=f"the name says {match.words}, nothing more")
    if found.architecture.quantization:
        return found._replace(stored="config", own=False)
    return _perhaps_packed(found, match)


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
