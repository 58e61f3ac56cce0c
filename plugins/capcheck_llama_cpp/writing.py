"""Neutral changes in llama.cpp's own option names, spelled as the user spells them."""

from __future__ import annotations

from capcheck import ARGS, Change, Deployment, Edit
from capcheck_llama_cpp.reading import Reading

OPTION_OF = {
    "max_request_tokens": "ctx_size",
    "max_sequences": "parallel",
    "max_step_tokens": "ubatch_size",
}


def dashed(name: str, deployment: Deployment) -> str:
    """The option as a flag where the user's options are flags, else with their dashes."""
    words = [
        value.origin.word
        for path, value in deployment.fields.items()
        if path[:2] == ARGS and len(path) > 2
    ]
    if any(word.startswith("-") for word in words):
        return "--" + name.replace("_", "-")
    dashes = any("-" in word for word in words) or not any("_" in word for word in words)
    return name.replace("_", "-") if dashes else name


def write(change: Change, deployment: Deployment) -> Edit | None:
    """The change as an edit; None for what is no option here."""
    option = OPTION_OF.get(change.field)
    if option is None:
        return None
    read = Reading(deployment, None)
    to = int(change.to)
    if option == "ctx_size":
        slots = read.count("parallel")
        shared = read.switch("kv_unified")
        many = max(1, slots.either(1)) if slots is not None else 1
        to *= 1 if shared is not None and shared.either(False) else many
    name = dashed(option, deployment)
    words = f"{name} {to}" if name.startswith("--") else f"{name}: {to}"
    return Edit(read.options.path(option), str(to), words)
