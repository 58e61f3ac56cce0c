"""Command lines and container images that start llama.cpp's server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capcheck import Image, Launch
from capcheck_llama_cpp.releases import build_of, packaged

if TYPE_CHECKING:
    from capcheck.embedded import Word

PROGRAMS = frozenset({"llama-server", "llama-cli", "llama-server.exe", "llama-cli.exe"})
OLD_PROGRAM = "server"  # ./server, before programs had the prefix
UNIFIED_PROGRAM = {"llama": "serve"}  # `llama serve`
MODULE = "llama_cpp.server"
WRAPPERS = frozenset({
    "env", "exec", "nice", "nohup", "numactl", "setsid", "stdbuf", "sudo", "taskset", "time",
    "timeout", "tini", "dumb-init", "uv", "poetry",
})  # fmt: skip
# Options that tell the old, nameless server from others.
TELLING = frozenset({"-m", "--model", "-ngl", "--n-gpu-layers", "--gpu-layers", "-c", "--ctx-size"})

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_OWN = re.compile(r"(?:.*/)?(?:ggml-org|ggerganov)/llama\.cpp")
_PACKAGED = re.compile(r"(?:.*/)?(?:abetlen/)?llama-cpp-python(?:[-_][^/]*)?")
_OTHERS = re.compile(r"(?:.*/)?(?:[^/]*[^a-z/])?(?:ik[-_])?llama[._-]?cpp(?:[^a-z/][^/]*)?")
_FULL = re.compile(r"(?:full|light)(?:-.*)?")


def _base(text: str) -> str:
    return text.replace("\\", "/").rpartition("/")[2]


def launch(words: Sequence[Word], image: Image | None) -> Launch | None:
    """The server that a command line starts; None when it starts something else."""
    texts = [word.text for word in words]
    start = _after_start(texts)
    if image is None:
        return None if start is None else Launch(tuple(words[start:]))
    if start is not None:
        return Launch(tuple(words[start:]))
    if image.starts_server:
        return Launch(tuple(words))
    if texts[:1] in (["--server"], ["-s"]):  # the image with all programs
        return Launch(tuple(words[1:]))
    return Launch(tuple(words)) if texts and texts[0] in TELLING else None


def _after_start(texts: Sequence[str]) -> int | None:
    """Where the server's arguments begin."""
    first = 0
    while first < len(texts) and _ASSIGNMENT.match(texts[first]):
        first += 1
    if first == len(texts):
        return None
    if _base(texts[first]) not in WRAPPERS:
        return _start_at(texts, first)
    for at in range(first + 1, len(texts)):
        found = _start_at(texts, at)
        if found is not None:
            return found
    return None


def _start_at(texts: Sequence[str], at: int) -> int | None:
    base = _base(texts[at])
    if base in PROGRAMS:
        return at + 1
    if base in UNIFIED_PROGRAM and texts[at + 1 : at + 2] == [UNIFIED_PROGRAM[base]]:
        return at + 2
    if base == OLD_PROGRAM and "/" in texts[at] and TELLING & set(texts[at + 1 :]):
        return at + 1
    if _PYTHON.fullmatch(base) and texts[at + 1 : at + 3] == ["-m", MODULE]:
        return at + 3
    return None


def image(reference: str) -> Image | None:
    """An image of llama.cpp; None when it is somebody else's."""
    name, _, _ = reference.strip().partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    path = (folder + slash + last).lower()
    if _OWN.fullmatch(path):
        build = build_of(tag)
        why = "" if build is not None else _why(tag)
        serves = not _FULL.fullmatch(tag)
        return Image(f"b{build}" if build is not None else None, why, serves)
    if _PACKAGED.fullmatch(path):
        known = packaged(tag) is not None
        return Image(tag if known else None, "" if known else _why(tag), starts_server=True)
    if _OTHERS.fullmatch(path):
        return Image(None, "the image is not llama.cpp's own", starts_server=False)
    return None


def _why(tag: str) -> str:
    return f"the image's tag {tag} names no build" if tag else "the image has no tag"
