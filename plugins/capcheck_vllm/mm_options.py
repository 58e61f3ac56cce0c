"""What a deployment allows of images, videos and sound: limits a prompt and processor options."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, NamedTuple

from capcheck import Case, Unknown, Value
from capcheck.option_reader import OptionReader
from capcheck.source import Node, to_plain
from capcheck_vllm.table import TABLE

V1_MOST = 999  # of each modality in one prompt when nothing is said
V0_MOST = 1


class Limit(NamedTuple):
    """How many items of one modality a prompt may have, and the size of the profiled ones."""

    number: int
    frames: int = 0  # 0: as many as the processor takes
    width: int = 0  # pixels; 0: the largest
    height: int = 0


def _reader(case: Case) -> OptionReader:
    return OptionReader(case.deployment, TABLE, case.release.version)


def _plain(name: str, value: Value[Node]) -> Any:
    if not value.known:
        raise Unknown(value, name)
    return to_plain(value.options[0])


def _of_text(name: str, text: str, value: Value[Node]) -> dict[str, Any]:
    """A JSON object, or the older `image=2,video=0`. Raises Unknown for anything else."""
    if "=" in text and not text.lstrip().startswith("{"):
        pairs = [part.partition("=") for part in text.split(",")]
        return {key.strip(): told.strip() for key, _, told in pairs}
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise Unknown(Value((), value.origin).because(f"{name} is no JSON object"), name)
    return found


def options_of(case: Case, name: str) -> Mapping[str, Any]:
    """An option that is a mapping, however it is written. Raises Unknown."""
    found: dict[str, Any] = {}
    for path, value in case.deployment.under(*_reader(case).path(name)).items():
        plain = _plain(name, value)
        if not path:
            found |= plain if isinstance(plain, dict) else _of_text(name, str(plain), value)
            continue
        at = found
        for key in path[:-1]:
            if not isinstance(at.get(key), dict):
                at[key] = {}
            at = at[key]
        at[path[-1]] = plain
    return found


def whole(told: Any, otherwise: int = 0) -> int:
    """A whole number that is not negative, or `otherwise` for anything else."""
    if isinstance(told, str) and told.strip().isascii() and told.strip().isdigit():
        return int(told)
    if isinstance(told, bool) or not isinstance(told, int) or told < 0:
        return otherwise
    return told


def limit_of(limits: Mapping[str, Any], modality: str, most: int) -> Limit:
    """The limit of one modality; `most` where nothing is said of it."""
    told = limits.get(modality)
    if not isinstance(told, Mapping):
        return Limit(whole(told, most))
    sizes = (whole(told.get(key)) for key in ("num_frames", "width", "height"))
    return Limit(whole(told.get("count"), most), *sizes)
