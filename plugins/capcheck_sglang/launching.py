"""Command lines and container images that start SGLang's server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capcheck import Image, Launch
from capcheck_sglang.releases import is_own

if TYPE_CHECKING:
    from capcheck.embedded import Word

MODEL = "model_path"

# Options that no other engine has under this name.
TELLING = frozenset({
    "mem_fraction_static", "max_running_requests", "chunked_prefill_size", "disable_radix_cache",
    "disable_cuda_graph", "cuda_graph_max_bs", "max_total_tokens", "schedule_conservativeness",
    "enable_dp_attention", "speculative_algorithm", "attention_backend", "context_length",
})  # fmt: skip

# Commands that run another command given in their own arguments.
WRAPPERS = frozenset({
    "chrt", "conda", "ddtrace-run", "doas", "dumb-init", "env", "exec", "gosu", "ionice", "mpirun",
    "nice", "nohup", "nsys", "numactl", "opentelemetry-instrument", "poetry", "setsid", "stdbuf",
    "su-exec", "sudo", "taskset", "time", "timeout", "tini", "torchrun", "uv", "uvx",
})  # fmt: skip
SERVER_MODULES = frozenset({"sglang.launch_server", "sglang.srt.entrypoints.http_server"})
COMMAND_MODULES = frozenset({"sglang", "sglang.cli.main"})

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_PYTHON_WITH_VALUE = frozenset({"-W", "-X"})
_TAG = re.compile(r"v?(\d+\.\d+\.\d+(?:\.?(?:rc|post|dev|a|b)\.?\d+)*)(?:[-_+].*)?")
_SHORT_TAG = re.compile(r"v?\d+(?:\.\d+)?(?:[-_+].*)?")
_IMAGES = (
    (re.compile(r"(?:.*/)?lmsysorg/sglang(?:-rocm|-spark)?", re.IGNORECASE), ""),
    (re.compile(r"(?:.*/)?rocm/sgl-dev", re.IGNORECASE), "the tag is a date of AMD's builds"),
    (re.compile(r"(?:.*/)?nvidia/sglang", re.IGNORECASE), "the tag counts NVIDIA's releases"),
    (re.compile(r"(?:.*/)?ai-dynamo/sglang-runtime", re.IGNORECASE),
     "the tag counts Dynamo's releases"),
    (re.compile(r"(?:.*/)?(?:[^/]*[^a-z/])?sglang(?:[^a-z/][^/]*)?", re.IGNORECASE),
     "the image is not SGLang's own"),
)  # fmt: skip


def _base(text: str) -> str:
    return text.rpartition("/")[2]


def launch(words: Sequence[Word], image: Image | None) -> Launch | None:
    """The server that a command line starts; None when it starts something else.

    SGLang's images start no server: the words are a whole command, unless the entry point is
    hidden and they are nothing but SGLang's options.
    """
    texts = [word.text for word in words]
    at = _after_start(texts)
    if at is not None:
        start, positional = at
        return Launch(tuple(words[start:]), positional)
    if image is not None and _only_options(texts):
        return Launch(tuple(words))
    return None


def _only_options(texts: Sequence[str]) -> bool:
    """Whether the words are options of SGLang's and nothing else, some of them only SGLang's."""
    from capcheck_sglang.table import TABLE

    if not texts or not texts[0].startswith("--"):
        return False
    names = [text.partition("=")[0] for text in texts if text.startswith("--")]
    found = [TABLE.resolve(name, None).option for name in names]
    return None not in found and any(one.name in TELLING for one in found if one is not None)


def _after_start(texts: Sequence[str]) -> tuple[int, str] | None:
    """Where the server's arguments begin, and what a positional one is."""
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


def _start_at(texts: Sequence[str], at: int) -> tuple[int, str] | None:
    """As `_after_start`, when the server's own command begins exactly there."""
    if _base(texts[at]) == "sglang":
        return (at + 2, MODEL) if texts[at + 1 : at + 2] == ["serve"] else None
    if not _PYTHON.fullmatch(_base(texts[at])):
        return None
    at += 1
    while at < len(texts) and texts[at].startswith("-"):
        option = texts[at]
        if option == "-c":
            return None
        if option == "-m":
            return _module(texts, at + 1)
        if option.startswith("-m"):
            return _module([*texts[:at], option[2:], *texts[at + 1 :]], at)
        at += 2 if option in _PYTHON_WITH_VALUE else 1
    script = texts[at] if at < len(texts) else ""
    return (at + 1, "") if script.endswith("sglang/launch_server.py") else None


def _module(texts: Sequence[str], at: int) -> tuple[int, str] | None:
    name = texts[at] if at < len(texts) else ""
    if name in SERVER_MODULES:
        return at + 1, ""
    if name in COMMAND_MODULES and texts[at + 1 : at + 2] == ["serve"]:
        return at + 2, MODEL
    return None


def image(reference: str) -> Image | None:
    """An image of SGLang; None when it is somebody else's. None of them starts a server.

    `version` is None and `why` says why where the tag does not tell the release.
    """
    name, _, digest = reference.strip().partition("@")
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    path = folder + slash + last
    why = next((reason for pattern, reason in _IMAGES if pattern.fullmatch(path)), None)
    if why is None:
        return None
    if why:
        return Image(None, why, starts_server=False)
    found = _TAG.fullmatch(tag)
    if found is not None:
        return Image(found[1] if is_own(tag) else tag.lstrip("v"), "", starts_server=False)
    if not tag:
        lost = "the image is pinned by digest only" if digest else "the image has no tag"
    elif _SHORT_TAG.fullmatch(tag):
        lost = f"the image's tag {tag} does not name the whole release"
    else:
        lost = f"the image's tag {tag} is not a release"
    return Image(None, lost, starts_server=False)
