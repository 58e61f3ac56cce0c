"""Command lines and container images that start the launcher."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capcheck import Image, Launch
from capcheck.options import parse_release

if TYPE_CHECKING:
    from capcheck.embedded import Word

LAUNCHER = "text-generation-launcher"
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
WRAPPERS = frozenset({
    "env", "exec", "gosu", "nice", "nohup", "numactl", "opentelemetry-instrument", "sudo",
    "tini", "dumb-init", "time", "timeout", "sagemaker-entrypoint.sh", "tgi-entrypoint.sh",
    "entrypoint.sh",
})  # fmt: skip
_OWN = re.compile(r"(?:.*/)?text-generation-inference")
_SAGEMAKER = re.compile(r"(?:.*/)?huggingface-pytorch-tgi-inference")
_VERTEX = re.compile(r"(?:.*/)?huggingface-text-generation-inference-[^/]*")
_TAG = re.compile(r"v?(\d+\.\d+\.\d+)(?:-.*)?")
_SAGEMAKER_TAG = re.compile(r".*tgi(\d+\.\d+\.\d+)(?:-.*)?")
OTHER_BACKENDS = ("trtllm", "llamacpp", "neuron", "gaudi")


def launch(words: Sequence[Word], image: Image | None) -> Launch | None:
    """The launcher's arguments; None when the words start something else.

    The image's entry point is the launcher: with it the words are arguments, unless they name the
    launcher themselves.
    """
    at = _launcher(words)
    if at is not None:
        return Launch(tuple(words[at + 1 :]))
    if image is None or (words and not words[0].text.startswith("-")):
        return None
    return Launch(tuple(words))


def _launcher(words: Sequence[Word]) -> int | None:
    """Where the launcher's name stands at the head of a command."""
    wrapped = False
    for at, word in enumerate(words):
        base = word.text.rpartition("/")[2]
        if base == LAUNCHER:
            return at
        wrapped |= base in WRAPPERS
        if not wrapped and not _ASSIGNMENT.match(word.text):
            return None
    return None


def image(reference: str) -> Image | None:
    """An image of the launcher; None when it is somebody else's, or of another backend."""
    name, _, digest = reference.strip().partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    path = folder + slash + last
    if any(backend in tag or backend in last for backend in OTHER_BACKENDS):
        return None
    if _SAGEMAKER.fullmatch(path):
        return _image(_SAGEMAKER_TAG, tag, digest)
    if _VERTEX.fullmatch(path):
        return Image(None, "the tag counts Vertex AI's builds")
    return _image(_TAG, tag, digest) if _OWN.fullmatch(path) else None


def _image(pattern: re.Pattern[str], tag: str, digest: str) -> Image:
    found = pattern.fullmatch(tag)
    if found is not None and parse_release(found[1]) is not None:
        return Image(found[1])
    if tag:
        return Image(None, f"the image's tag {tag} does not name the whole release")
    return Image(None, "the image is pinned by digest only" if digest else "the image has no tag")
