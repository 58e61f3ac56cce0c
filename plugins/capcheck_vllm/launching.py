"""Command lines and container images that start vLLM's server."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from capcheck import Image, Launch
from capcheck_vllm.releases import is_own

if TYPE_CHECKING:
    from capcheck.embedded import Word

MODEL = "model"
OTHER_SERVER = "--omni"  # `vllm serve` then starts vLLM-Omni, with options of its own
SERVE_ENTRY_POINT = (0, 12, 0)  # vllm/vllm-openai: api_server before, `vllm serve` since

# Options that no other engine has under this name.
TELLING = frozenset({
    "enable_prefix_caching", "enforce_eager", "gpu_memory_utilization", "kv_cache_memory_bytes",
    "max_model_len", "max_num_batched_tokens", "max_num_seqs", "num_gpu_blocks_override",
    "swap_space",
})  # fmt: skip

# Commands that run another command given in their own arguments.
WRAPPERS = frozenset({
    "accelerate", "chrt", "conda", "ddtrace-run", "doas", "dumb-init", "env", "exec", "gosu",
    "ionice", "micromamba", "mpirun", "nice", "nohup", "nsys", "numactl",
    "opentelemetry-instrument", "pixi", "poetry", "setsid", "stdbuf", "su-exec", "sudo",
    "taskset", "time", "timeout", "tini", "torchrun", "uv", "uvx", "xvfb-run",
})  # fmt: skip
SERVER_MODULES = frozenset({
    "vllm.entrypoints.openai.api_server", "vllm.entrypoints.api_server",
})  # fmt: skip
COMMAND_MODULES = frozenset({"vllm", "vllm.scripts", "vllm.entrypoints.cli.main"})

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
_PYTHON = re.compile(r"python(?:3(?:\.\d+)?)?")
_PYTHON_WITH_VALUE = frozenset({"-W", "-X"})

_VERSION = r"\d+\.\d+\.\d+(?:\.\d+)?(?:\.?(?:rc|post|dev|a|b)\.?\d+)*"
_TAG = re.compile(rf"v?({_VERSION})(?:[-_+].*)?")
_ROCM_TAG = re.compile(rf".*vllm[-_]?v?({_VERSION})(?:[-_+].*)?")
_SHORT_TAG = re.compile(r"v?\d+(?:\.\d+)?(?:[-_+].*)?")


def _base(text: str) -> str:
    return text.rpartition("/")[2]


def launch(words: Sequence[Word], image: Image | None) -> Launch | None:
    """The server that a command line starts; None when it starts something else.

    Without an image the words are a whole command. With one they are the arguments of the
    image's entry point.
    """
    texts = [word.text for word in words]
    if OTHER_SERVER in texts:
        return None
    at = _after_start(texts)
    if image is None:
        return None if at is None else _launch(words, *at)
    if at is not None:
        # An image without a server runs its arguments as the command. One with a server takes
        # these words for arguments, which makes each of them a stray one.
        start, positional = at
        return _launch(words, start, positional if not image.starts_server else "")
    if not image.starts_server and not _only_options(texts):
        return None
    return _launch(words, 0, MODEL if _serves(image) else "")


def _launch(words: Sequence[Word], start: int, positional: str) -> Launch:
    return Launch(tuple(words[start:]), positional)


def _serves(image: Image) -> bool:
    """Whether the entry point is `vllm serve`: an unpinned image is taken for a recent one."""
    found = re.match(r"(\d+)\.(\d+)\.(\d+)", image.version or "")
    return found is None or tuple(int(part) for part in found.groups()) >= SERVE_ENTRY_POINT


def _only_options(texts: Sequence[str]) -> bool:
    """Whether the words are options of vLLM's and nothing else, some of them only vLLM's."""
    from capcheck_vllm.table import TABLE

    if not texts or not texts[0].startswith("--"):
        return False
    names = [text.partition("=")[0] for text in texts if text.startswith("--")]
    found = [TABLE.resolve(name.partition(".")[0], None).option for name in names]
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
    base = _base(texts[at])
    if base == "vllm":
        return (at + 2, MODEL) if texts[at + 1 : at + 2] == ["serve"] else None
    if not _PYTHON.fullmatch(base):
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
    if script.endswith("vllm/entrypoints/openai/api_server.py"):
        return at + 1, ""
    if _base(script) == "vllm" and "/" in script:  # python3 /usr/local/bin/vllm serve
        return (at + 2, MODEL) if texts[at + 1 : at + 2] == ["serve"] else None
    return None


def _module(texts: Sequence[str], at: int) -> tuple[int, str] | None:
    name = texts[at] if at < len(texts) else ""
    if name in SERVER_MODULES:
        return at + 1, ""
    if name in COMMAND_MODULES and texts[at + 1 : at + 2] == ["serve"]:
        return at + 2, MODEL
    return None


class _Repository:
    """A repository that ships vLLM: how its tags tell the release, and what it starts."""

    def __init__(self, why: str = "", *, tag: re.Pattern[str] | None = None, serves: bool = True):
        self.why = why  # why a tag of it tells no release
        self.tag = tag  # None: no tag of it does
        self.serves = serves


NOT_OWN = "the image is not vLLM's own"
_OWN = _Repository(tag=_TAG)
_OTHERS: tuple[tuple[re.Pattern[str], _Repository], ...] = tuple(
    (re.compile(pattern, re.IGNORECASE), repository)
    for pattern, repository in (
        (r"(?:.*/)?aibrix/vllm-openai(?:-.*)?", _OWN),
        (r"(?:.*/)?lmcache/vllm-openai(?:-.*)?", _Repository("the tag counts LMCache's releases")),
        (r"(?:.*/)?vllm-tpu", _Repository("the tag counts the TPU plugin's releases")),
        (r"(?:.*/)?vllm-ascend", _Repository("the tag counts the Ascend plugin's releases")),
        (r"(?:.*/)?llm-d/llm-d(?:-.*)?(?<!-sim)(?<!-scheduler)(?<!-sidecar)(?<!-router)",
         _Repository("the tag counts llm-d's releases", serves=False)),
        (r"(?:.*/)?nvidia/vllm",
         _Repository("the tag counts NVIDIA's monthly releases", serves=False)),
        (r"(?:.*/)?pytorch-vllm-serve(?:-.*)?",
         _Repository("the tag is a date of Vertex AI's builds", serves=False)),
        (r"(?:.*/)?rhaiis/vllm(?:-.*)?", _Repository("the tag counts Red Hat's releases")),
        (r"(?:.*/)?rocm/vllm(?:-dev)?", _Repository(tag=_ROCM_TAG, serves=False)),
        (r"public\.ecr\.aws/.+/vllm", _OWN),
        (r".*\.dkr\.ecr\..+\.amazonaws\.com/vllm", _OWN),
        (r"(?:.*/)?vllm-openai(?:-(?:rocm|cpu|xpu|x86_64|aarch64))?", _OWN),
        (r"(?:.*/)?vllm-cpu(?:-release-repo|-env)?", _OWN),
        (r"(?:.*/)?vllm", _Repository(NOT_OWN)),
        # Somebody's own build, a template, or a router beside vLLM: its arguments must tell.
        (r"(?:.*/)?(?:[^/]*[^a-z/])?vllm(?:[^a-z/][^/]*)?", _Repository(NOT_OWN, serves=False)),
    )
)  # fmt: skip


def image(reference: str) -> Image | None:
    """An image of vLLM; None when it is somebody else's.

    `version` is None and `why` says why where the tag does not tell the release. A known
    version's `why` is "a CPU build" where the image serves on the processor.
    """
    name, _, digest = reference.strip().partition("@")
    path, tag = _split_tag(name)
    repository = next((one for pattern, one in _OTHERS if pattern.fullmatch(path)), None)
    if repository is None:
        return None
    version, why = _version(repository, tag, digest)
    cpu = "cpu" in re.split(r"[-_./]", f"{path}-{tag}")
    if cpu:
        why = f"{why}, a CPU build" if why else "a CPU build"
    return Image(version, why, repository.serves)


def _split_tag(name: str) -> tuple[str, str]:
    """`registry:5000/vllm/vllm-openai:v0.11.0` as its path and its tag."""
    folder, slash, last = name.rpartition("/")
    last, _, tag = last.partition(":")
    return folder + slash + last, tag


def _version(repository: _Repository, tag: str, digest: str) -> tuple[str | None, str]:
    if repository.tag is None:
        return None, repository.why
    found = repository.tag.fullmatch(tag)
    if found is not None:
        return (found[1] if repository.tag is _ROCM_TAG or is_own(tag) else tag.lstrip("v")), ""
    if not tag:
        return None, "the image is pinned by digest only" if digest else "the image has no tag"
    if _SHORT_TAG.fullmatch(tag):
        return None, f"the image's tag {tag} does not name the whole release"
    return None, f"the image's tag {tag} is not a release"
