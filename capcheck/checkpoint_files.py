"""What lies in a checkpoint's folder, read as one configuration; the weights are not read.

A folder holds config.json, or Mistral's params.json, or one GGUF file; its quantization may
stand in a file of its own. The result is what `ModelSource.build` takes.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from capcheck.gguf_header import GgufError, parts_of, read_whole

CONFIG, PARAMS = "config.json", "params.json"
LARGEST_CONFIG: Final = 5_000_000  # bytes of a config.json
_GGUF = ".gguf"
_LFS = b"version https://git-lfs"


class CheckpointError(ValueError):
    """There is no configuration to be had; the message completes "PATH: ..."."""


class Checkpoint(NamedTuple):
    """The configuration of a checkpoint, and the files that it was read from."""

    config: Mapping[str, Any]
    files: tuple[Path, ...]


Allowed = Callable[[Path], bool]


def is_checkpoint(path: Path) -> bool:
    """Whether a path leads to something that `read_checkpoint` is meant for."""
    try:
        if path.is_file():
            return path.name in (CONFIG, PARAMS) or path.suffix.lower() == _GGUF
        return any((path / name).is_file() for name in (CONFIG, PARAMS)) or bool(_ggufs(path))
    except (OSError, ValueError):
        return False


def read_checkpoint(path: Path, allowed: Allowed) -> Checkpoint:
    """The configuration of a folder or file. No file is opened that is not `allowed`.

    Raises CheckpointError.
    """
    try:
        file = _main_file(path) if allowed(path) else path
        if not allowed(file):
            raise CheckpointError(f"{file.name} leads out of the checked tree")
        if file.suffix.lower() == _GGUF:
            return _of_gguf(file, allowed)
        config = _json(file)
        more = () if file.name not in (CONFIG, PARAMS) else _quantization(file.parent, allowed)
    except OSError as wrong:
        raise CheckpointError(wrong.strerror or str(wrong)) from wrong
    if not more or config.get("quantization_config") or config.get("compression_config"):
        return Checkpoint(config, (file,))
    beside, told = more
    return Checkpoint({**config, "quantization_config": told}, (file, beside))


def _main_file(path: Path) -> Path:
    if not path.is_dir():
        return path
    for name in (CONFIG, PARAMS):
        if (path / name).is_file():
            return path / name
    found = _ggufs(path)
    if len(found) > 1:
        raise CheckpointError(f"holds {len(found)} models as .gguf files: name one of them")
    if found:
        return found[0]
    raise CheckpointError(f"holds neither {CONFIG} nor a .gguf file")


def _ggufs(folder: Path) -> list[Path]:
    """The models of a folder, the first file of each; encoders of images belong to another."""
    found = sorted(one for one in folder.glob(f"*{_GGUF}") if "mmproj" not in one.name.lower())
    return [one for one in found if parts_of(one)[0] == one]


def _of_gguf(file: Path, allowed: Allowed) -> Checkpoint:
    parts = parts_of(file)
    for part in parts:
        if part.exists() and not allowed(part):
            raise CheckpointError(f"{part.name} leads out of the checked tree")
    try:
        return Checkpoint({"gguf": read_whole(file)}, parts)
    except GgufError as wrong:
        raise CheckpointError(_lfs(file) or str(wrong)) from wrong


def _lfs(file: Path) -> str:
    """What a file is instead of itself: a note where Git keeps it; "" when it is no such note."""
    with file.open("rb") as stream:
        is_note = stream.read(len(_LFS)) == _LFS
    return "only the pointer of Git LFS is there, not the file itself" if is_note else ""


def _quantization(folder: Path, allowed: Allowed) -> tuple[Path, Mapping[str, Any]] | None:
    """The quantization that stands beside a configuration, and its file."""
    for name, read in _BESIDE.items():
        file = folder / name
        if file.is_file() and allowed(file):
            return file, read(_json(file))
    return None


def _modelopt(told: Mapping[str, Any]) -> Mapping[str, Any]:
    inner = told.get("quantization")
    return {"quant_method": "modelopt", **(inner if isinstance(inner, Mapping) else told)}


_BESIDE: Mapping[str, Callable[[Mapping[str, Any]], Mapping[str, Any]]] = {
    "hf_quant_config.json": _modelopt,
    "quantize_config.json": lambda told: {"quant_method": "gptq", **told},
    "quant_config.json": lambda told: {"quant_method": "awq", **told},
}


def _json(file: Path) -> dict[str, Any]:
    if file.stat().st_size > LARGEST_CONFIG:
        raise CheckpointError("larger than any config.json")
    return parse_config(file.read_bytes())


def parse_config(text: str | bytes) -> dict[str, Any]:
    """A config.json. Raises CheckpointError with what was expected."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"not JSON: {error}") from error
    if not isinstance(found, dict):
        raise CheckpointError("expected a JSON object")
    return found
