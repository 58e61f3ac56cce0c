"""Text Generation Inference for capcheck: options, defaults, warm-up memory and KV blocks."""

from __future__ import annotations

from pathlib import Path

from capcheck import Engine, hookimpl


@hookimpl
def capcheck_engines() -> tuple[Engine, ...]:
    """The Text Generation Inference engine."""
    from capcheck_tgi.engine import Tgi

    return (Tgi(),)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the memory accounting."""
    return (Path(__file__).parent / "terms.jsonl",)
