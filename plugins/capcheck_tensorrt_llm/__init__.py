"""TensorRT-LLM for capcheck: options, defaults, memory profile and KV blocks by release."""

from __future__ import annotations

from pathlib import Path

from capcheck import Engine, Format, hookimpl


@hookimpl
def capcheck_engines() -> tuple[Engine, ...]:
    """The TensorRT-LLM engine."""
    from capcheck_tensorrt_llm.engine import TensorRtLlm

    return (TensorRtLlm(),)


@hookimpl
def capcheck_formats() -> tuple[Format, ...]:
    """The YAML that trtllm-serve takes beside its command line."""
    from capcheck_tensorrt_llm.config_format import TensorRtLlmConfig

    return (TensorRtLlmConfig(),)


@hookimpl
def capcheck_terms() -> tuple[Path, ...]:
    """Constants of the memory accounting."""
    return (Path(__file__).parent / "terms.jsonl",)
