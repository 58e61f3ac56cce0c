"""Model families and the catalogue: what a model is made of, from its config.json."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from capcheck import ModelSource, Shelf, hookimpl


@hookimpl
def capcheck_families() -> Iterable[ModelSource]:
    """Names and config.json files to architectures."""
    from capcheck_models.source import Models

    return (Models(),)


@hookimpl
def capcheck_catalogues() -> Iterable[Shelf]:
    """One record for each architecture."""
    data = Path(__file__).parent / "data"
    return (Shelf("model", data / "models.jsonl", __name__),)
