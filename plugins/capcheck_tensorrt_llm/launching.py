"""Command lines and container images that start trtllm-serve."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capcheck import Image, Launch
from capcheck.options import parse_release

if TYPE_CHECKING:
    from capcheck.embedded import Word

MODEL = "model"
SERVER, STARTER = "trtllm-serve", "trtllm-llmapi-launch"
OTHER_COMMANDS = frozenset({"disaggregated", "disaggregated_mpi_worker", "mm_embedding_serve"})
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
WRAPPERS = frozenset({
    "env", "exec", "mpirun", "mpiexec", "nice", "nohup", "nsys", "numactl", "srun", "sudo",
    "stdbuf", "time", "timeout", "tini", "dumb-init", STARTER,
})  # fmt: skip
_RELEASE = re.compile(r"(?:.*/)?nvidia/tensorrt-llm/(?:release|devel)|(?:.*/)?tensorrt[-_]llm")
_TRITON = re.compile(r"(?:.*/)?nvidia/tritonserver")
_TAG = re.compile(r"v?(\d+\.\d+\.\d+(?:\.?(?:rc|post|dev)\d+)*(?:\.post\d+)?)(?:[-_+].*)?")


def launch(words: Sequence[Word], image: Image | None) -> Launch | None:
    """The server's arguments behind `trtllm-serve [serve]`; None for any other command.

    The image's entry point is a shell: it runs its arguments.
    """
    del image
    wrapped = False
    for at, word in enumerate(words):
        base = word.text.rpartition("/")[2]
        if base == SERVER:
            return _arguments(words, at + 1)
        wrapped |= base in WRAPPERS
        if not wrapped and not _ASSIGNMENT.match(word.text):
            return None
    return None


def _arguments(words: Sequence[Word], at: int) -> Launch | None:
    first = words[at].text if at < len(words) else ""
    if first in OTHER_COMMANDS:
        return None
    return Launch(tuple(words[at + (first == "serve") :]), MODEL)


def image(reference: str) -> Image | None:
    """An image of TensorRT-LLM; None when it is somebody else's.

    Triton's images carry it, too, in a release that their tags do not tell.
    """
    name, _, digest = reference.strip().partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    path = folder + slash + last
    if _TRITON.fullmatch(path):
        return Image(None, "the tag counts Triton's releases", False) if "trtllm" in tag else None
    if not _RELEASE.fullmatch(path):
        return None
    found = _TAG.fullmatch(tag)
    if found is not None and parse_release(found[1]) is not None:
        return Image(found[1], starts_server=False)
    if tag:
        return Image(None, f"the image's tag {tag} is not a release", False)
    why = "the image is pinned by digest only" if digest else "the image has no tag"
    return Image(None, why, False)
