"""Neutral changes as launcher options, in the way that the user gives them."""

from __future__ import annotations

from capcheck import ENV, Change, Deployment, Edit
from capcheck_tgi.reading import Options

OPTION_OF = {
    "max_request_tokens": "max_total_tokens",
    "max_sequences": "max_batch_size",
    "max_step_tokens": "max_batch_prefill_tokens",
    "kv_dtype": "kv_cache_dtype",
    "tensor": "num_shard",
    "graphs": "cuda_graphs",
}
WORDS = {"fp8_e4m3": "fp8_e4m3fn", "bf16": "bfloat16", "fp16": "float16"}


def write(change: Change, deployment: Deployment) -> Edit | None:
    """The change as an edit; None for what is no option of the launcher.

    A longer prompt step than the requests' lengths is never needed, so shorter requests may leave
    max_input_tokens behind: where that is stated the length cannot be turned alone.
    """
    option = OPTION_OF.get(change.field)
    options = Options(deployment, None)
    if option is None or (change.field == "graphs" and change.to):
        return None
    if change.field == "max_request_tokens" and _prompt_reaches(options, change.to):
        return None
    text = "0" if change.field == "graphs" else WORDS.get(str(change.to), str(change.to))
    path = options.path(option)
    if path[: len(ENV)] == ENV:
        return Edit(path, text, f"{path[-1]}: {text}")
    name = _spelled(option, deployment, path[-1])
    words = f"{name} {text}" if name.startswith("--") else f"{name}: {text}"
    return Edit(path, text, words)


def _prompt_reaches(options: Options, total: int) -> bool:
    """Whether the stated longest prompt would not be below the whole length."""
    for name in ("max_input_tokens", "max_input_length"):
        stated = options.count(name)
        if stated is not None and (stated.either(0) or 0) >= total:
            return True
    return False


def _spelled(option: str, deployment: Deployment, key: str) -> str:
    """With two dashes where the user's own options have them."""
    words = [value.origin.word for value in deployment.under("engine", "args").values()]
    if any(word.startswith("--") for word in words):
        return "--" + option.replace("_", "-")
    if any("-" in word for word in words) and not any("_" in word for word in words):
        return key.replace("_", "-")
    return key
