"""SGLang for capcheck: options, defaults, memory ledger and token pools by release."""

from __future__ import annotations

from pathlib import Path

from capcheck import Engine, Format, Platform, hookimpl


@hookimpl
def capcheck_engines() -> tuple[Engine, ...]:
    """The SGLang engine."""
    from capcheck_sglang.engine import SGLang

    return (SGLang(),)


@hookimpl
def capcheck_platforms() -> tuple[Platform, ...]:
    """What differs on AMD's devices."""
    from capcheck_sglang.platforms import OnAmd

    return (OnAmd(),)


@hookimpl
def capcheck_formats() -> tuple[Format, ...]:
    """The engine's own `--config` YAML."""
    from capcheck_sglang.config_format import SGLangConfig

    return (SGLangConfig(),)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the memory accounting."""
    return (Path(__file__).parent / "terms.jsonl",)
