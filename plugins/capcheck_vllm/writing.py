"""Neutral changes in vLLM's own option names, spelled as the user spells them."""

from __future__ import annotations

from capcheck import ARGS, Change, Deployment, Edit
from capcheck.option_reader import OptionReader
from capcheck_vllm.table import TABLE

OPTION_OF = {
    "max_request_tokens": "max_model_len",
    "max_sequences": "max_num_seqs",
    "max_step_tokens": "max_num_batched_tokens",
    "kv_dtype": "kv_cache_dtype",
    "tensor": "tensor_parallel_size",
    "pipeline": "pipeline_parallel_size",
    "data": "data_parallel_size",
    "memory_fraction": "gpu_memory_utilization",
    "graphs": "enforce_eager",
}
WORDS = {"fp8_e4m3": "fp8", "bf16": "bfloat16", "fp16": "float16"}


def spelled(name: str, deployment: Deployment) -> str:
    """The option with dashes where the user's own options have them."""
    words = {
        path[2]: value.origin.word
        for path, value in deployment.fields.items()
        if path[:2] == ARGS and len(path) > 2
    }
    if ("engine", "version") in deployment.fields:
        words.pop("model", None)  # the first word of a command, not an option
    engine = deployment.fields.get(("engine", "name"))
    keys = [word for key, word in words.items() if word.replace("-", "_") == key]
    started = not keys and engine is not None and engine.origin.kind == "derived"
    if started or any(word.startswith("--") for word in words.values()):
        return "--" + name.replace("_", "-")
    if any("-" in word for word in words.values()) and not any(
        "_" in word for word in words.values()
    ):
        return name.replace("_", "-")
    return name


def write(change: Change, deployment: Deployment) -> Edit | None:
    """The change as an edit; None for what is no vLLM option."""
    option = OPTION_OF.get(change.field)
    if option is None:
        return None
    to = change.to
    if change.field == "graphs":
        text = "false" if to else "true"
    else:
        text = (
            WORDS.get(to, to)
            if isinstance(to, str)
            else f"{to:g}"
            if isinstance(to, float)
            else str(to)
        )
    reader = OptionReader(deployment, TABLE, None)
    name = spelled(option, deployment)
    words = f"{name} {text}" if name.startswith("--") else f"{name}: {text}"
    return Edit(reader.path(option), text, words)
