"""Releases of TensorRT-LLM: what serves by default, and what stands in for an unknown one."""

from __future__ import annotations

from capcheck import Release
from capcheck.options import parse_release

OLDEST, END = (0, 17, 0), (2,)
PYTORCH = (1, 0, 0)  # serves with PyTorch by default; before, it builds an engine
BENCH_PYTORCH = (0, 20, 0)  # trtllm-bench does so from here on
STRICT_MERGE = (1, 3, 0)  # kv_cache_config of a file is merged with the command line
REPLACES = (1, 2, 0)  # before, it replaces what the command line says of the KV cache

# The 1.x releases account alike: one of them stands for an image that names none.
MIDDLE = (1, 1, 0)


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name; a development build counts as the one it precedes."""
    if text is not None:
        parsed = parse_release(text)
        if parsed is not None and OLDEST <= parsed.version < END:
            return (Release(text, parsed.version),)
        older = parsed is not None and parsed.version < OLDEST
        why = (
            f"{text} serves engines that were built before: what they hold is not known here"
            if older
            else f"{text} is no release"
        )
        if parsed is not None and older:
            return (Release(text, parsed.version, known=False, why=why),)
    return (Release("1.x", MIDDLE, known=False, why=why, among=(PYTORCH, (1, 4, 0))),)
