"""A checkpoint of the Hugging Face hub: its configuration and headers, when asked for.

Needs the extra `capcheck[hub]`. Weights are not downloaded, and nothing of the repository runs.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from capcheck.config import UsageError
from capcheck.safetensors_header import SafetensorsError, StoredTensor, stored_tensor

FILES = (
    "config.json", "params.json", "hf_quant_config.json", "quantize_config.json",
    "quant_config.json",
)  # fmt: skip
_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9_][\w.-]{0,95}")


class Fetched(NamedTuple):
    """What was fetched; the files lie in the folder that was given."""

    revision: str  # the commit
    tensors: tuple[StoredTensor, ...]  # () when the repository holds no safetensors


def is_id(text: str) -> bool:
    """Whether a text can be a repository of the hub: `owner/name`."""
    return _ID.fullmatch(text) is not None and ".." not in text


def fetch(id: str, revision: str | None, folder: Path) -> Fetched:
    """Put the configuration files of a repository into a folder. Raises UsageError."""
    hub = _library()
    try:
        api = hub.HfApi()
        info = api.model_info(id, revision=revision)
        commit = str(info.sha)
        names = {one.rfilename for one in info.siblings or ()}
        for name in FILES:
            if name in names:
                hub.hf_hub_download(id, name, revision=commit, local_dir=folder)
        indexed = {"model.safetensors", "model.safetensors.index.json"} & names
        told = api.get_safetensors_metadata(id, revision=commit) if indexed else None
        return Fetched(commit, _tensors(told))
    except SafetensorsError as wrong:
        raise UsageError(f"{id}: {wrong}") from wrong
    except Exception as wrong:  # the library and what it stands on raise what they like
        first = (str(wrong).strip().splitlines() or [""])[0]
        raise UsageError(
            f"{id} cannot be had from the hub: {first or type(wrong).__name__}"
        ) from wrong


def _library() -> ModuleType:
    try:
        return import_module("huggingface_hub")
    except ImportError as missing:
        why = "--hub needs the package huggingface_hub: pip install 'capcheck[hub]'"
        raise UsageError(why) from missing


def _tensors(told: Any) -> tuple[StoredTensor, ...]:
    if told is None:
        return ()
    return tuple(
        stored_tensor(name, one.dtype, one.shape)
        for file in told.files_metadata.values()
        for name, one in file.tensors.items()
    )
