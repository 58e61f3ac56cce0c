"""llama.cpp and Ollama for capcheck: options, defaults, weights, cells and buffers by build."""

from __future__ import annotations

from pathlib import Path

from capcheck import Engine, hookimpl


@hookimpl
def capcheck_engines() -> tuple[Engine, ...]:
    """llama.cpp, and Ollama that runs it."""
    from capcheck_llama_cpp.engine import LlamaCpp
    from capcheck_llama_cpp.ollama import Ollama

    return LlamaCpp(), Ollama()


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the memory accounting."""
    return (Path(__file__).parent / "terms.jsonl",)
