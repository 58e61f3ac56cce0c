"""vLLM for capcheck: options, defaults, memory ledger and KV pages by release."""

from __future__ import annotations

from pathlib import Path

from capcheck import Engine, Format, hookimpl


@hookimpl
def capcheck_engines() -> tuple[Engine, ...]:
    """The vLLM engine."""
    from capcheck_vllm.engine import Vllm

    return (Vllm(),)


@hookimpl
def capcheck_formats() -> tuple[Format, ...]:
    """The engine's own `--config` YAML."""
    from capcheck_vllm.config_format import VllmConfig

    return (VllmConfig(),)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the memory accounting."""
    here = Path(__file__).parent
    return (here / "terms.jsonl", here / "encoder_terms.jsonl")
