"""Neutral changes in SGLang's own option names, spelled as the user spells them."""

from __future__ import annotations

from capcheck import ARGS, Change, Deployment, Edit
from capcheck.option_reader import OptionReader
from capcheck_sglang.table import TABLE

OPTION_OF = {
    "max_request_tokens": "context_length",
    "max_sequences": "max_running_requests",
    "max_step_tokens": "chunked_prefill_size",
    "kv_dtype": "kv_cache_dtype",
    "tensor": "tp_size",
    "pipeline": "pp_size",
    "memory_fraction": "mem_fraction_static",
    "graphs": "disable_cuda_graph",
}
WORDS = {"bf16": "bfloat16", "fp16": "float16"}


def spelled(name: str, deployment: Deployment) -> str:
    """The option with dashes where the user's own options have them."""
    words = {
        path[2]: value.origin.word
        for path, value in deployment.fields.items()
        if path[:2] == ARGS and len(path) > 2
    }
    engine = deployment.fields.get(("engine", "name"))
    keys = [word for key, word in words.items() if word.replace("-", "_") == key]
    started = not keys and engine is not None and engine.origin.kind == "derived"
    if started or any(word.startswith("--") for word in words.values()):
        return "--" + name.replace("_", "-")
    dashed = any("-" in word for word in words.values())
    if dashed and not any("_" in word for word in words.values()):
        return name.replace("_", "-")
    return name


def _text(change: Change) -> str:
    to = change.to
    if change.field == "graphs":
        return "false" if to else "true"
    if isinstance(to, str):
        return WORDS.get(to, to)
    return f"{to:g}" if isinstance(to, float) else str(to)


def write(change: Change, deployment: Deployment) -> Edit | None:
    """The change as an edit; None for what is no SGLang option."""
    option = OPTION_OF.get(change.field)
    if option is None:
        return None
    text = _text(change)
    reader = OptionReader(deployment, TABLE, None)
    name = spelled(reader.path(option)[2], deployment)
    words = f"{name} {text}" if name.startswith("--") else f"{name}: {text}"
    return Edit(reader.path(option), text, words)
