"""vLLM's accounting eras: what stands in for a release that nobody tells."""

from __future__ import annotations

import re

from capcheck import Release
from capcheck.options import parse_release

# (first release of the era, its end, the release that stands for it)
ERAS = (
    ((0, 8, 0), (0, 11, 0), (0, 10, 2)),
    ((0, 11, 0), (0, 18, 0), (0, 14, 1)),
    ((0, 18, 0), (0, 20, 0), (0, 19, 1)),
    ((0, 20, 0), (0, 26, 0), (0, 22, 1)),
    ((0, 26, 0), (0, 34, 0), (0, 31, 0)),
)
V1 = (0, 8, 0)

# What a tag says beside the release without changing what vLLM takes.
_PACKAGING = re.compile(
    r"(?:a|b|rc|dev|post|cu|cuda|rocm|ubuntu|ubi|py|v)?\d*|g[0-9a-f]{6,}|d\d{8}|post\d+|cpu|gpu|xpu"
    r"|tpu|x86|nixl|lmcache|amd64|aarch64|arm64|ec2|eks|ecs|sagemaker|soci|openai|runtime|base|slim|devel"
)


def is_own(text: str) -> bool:
    """Whether a version or tag names vLLM's own release, packaged one way or another."""
    rest = re.sub(r"^v?\d+(?:\.\d+){1,3}", "", text.strip())
    return all(_PACKAGING.fullmatch(part) for part in re.split(r"[-_.+]", rest.lower()))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _era_name(first: tuple[int, ...], end: tuple[int, ...]) -> str:
    return f"{_dotted(first[:2])} to {_dotted((*end[:1], end[1] - 1))}"


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name, else one release for each accounting era.

    A development build counts as the release it precedes, somebody's patched build as the one it
    is named after; what it refuses is then not known. An unpinned image is judged under
    every era of the V1 engine: the older engine is older than any image still pulled as latest.
    """
    foreign = False
    if text is not None:
        parsed = parse_release(text.partition("(")[0])  # a remark behind it: somebody's build
        if parsed is not None and (0, 5, 0) <= parsed.version < (1, 0):
            if is_own(text):
                return (Release(text, parsed.version),)
            why = f"{text} is not a release of vLLM's own"
            return (Release(text, parsed.version, why=why, foreign=True),)
        older = parsed is not None and parsed.version < (0, 5, 0)
        why = f"{text} is older than the releases known here" if older else f"{text} is no release"
        foreign = not older
    return tuple(
        Release(
            _era_name(first, end),
            middle,
            known=False,
            why=why,
            foreign=foreign,
            among=(ERAS[0][0], ERAS[-1][1]),
        )
        for first, end, middle in ERAS
    )
