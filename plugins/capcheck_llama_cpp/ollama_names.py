"""The models of Ollama's library: `llama3.1:8b-instruct-q4_K_M` as a model and a file type."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NamedTuple

from capcheck_llama_cpp.names import DEFAULT_TYPE, file_type
from capcheck_llama_cpp.table import HERE

_REGISTRIES = ("registry.ollama.ai/library/", "ollama.com/library/", "library/")
_HUBS = ("hf.co/", "huggingface.co/")
_WORDS = {"f16": "fp16", "f32": "fp32"}
# A word that names a file type, whether it is one that is known or not.
_TYPED = re.compile(r"(?:^|-)(?:i?q\d|tq\d|(?:b|mx|nv)?fp?\d|(?:u|mx)?int\d|k_|awq|gptq|mlx)")
_QAT = re.compile(r"(?:^|-)qat(?:-|$)")


class Tagged(NamedTuple):
    """What a name of the library stands for."""

    model: str
    type: str | None  # a word of `weights.precision`; None: it is not told


@lru_cache(maxsize=1)
def _library() -> Mapping[str, Mapping[str, Any]]:
    lines = (HERE / "ollama_models.jsonl").read_text(encoding="utf-8").splitlines()
    return {row["name"]: row for row in map(json.loads, lines)}


def tagged(name: str) -> Tagged | None:
    """The model of a name; None for one that is not in the library."""
    text = name.strip()
    for hub in _HUBS:
        if text.startswith(hub):
            return _of_hub(text.removeprefix(hub))
    for registry in _REGISTRIES:
        text = text.removeprefix(registry)
    bare, _, tag = text.lower().partition(":")
    row = _library().get(bare)
    if row is None:
        return None
    size = next((size for size in row["sizes"] if tag == size or tag.startswith(f"{size}-")), None)
    if size is None and tag not in ("", "latest") and re.match(r"\d", tag):
        return None  # another size
    kind = file_type(f"x-{tag}")
    if kind is None and not _TYPED.search(tag.removeprefix(size or "")):
        kind = "q4_0" if _QAT.search(tag) else _WORDS.get(row["type"], row["type"])
    return Tagged(row["sizes"][size or row["default"]], kind)


def _of_hub(name: str) -> Tagged:
    repository, _, tag = name.partition(":")
    plain = tag.lower() in ("", "latest")
    return Tagged(repository, DEFAULT_TYPE if plain else file_type(f"x-{tag}"))
