"""SGLang's accounting eras: what stands in for a release that nobody tells."""

from __future__ import annotations

import re

from capcheck import Release
from capcheck.options import parse_release

# (first release of the era, its end, the release that stands for it)
ERAS = (
    ((0, 4, 0), (0, 4, 7), (0, 4, 6)),  # a table of shares by parallel size
    ((0, 4, 7), (0, 5, 3), (0, 4, 10)),  # reserved memory by size of the device
    ((0, 5, 3), (0, 5, 10), (0, 5, 6)),  # reserved for chunk, graphs and parallel size
    ((0, 5, 10), (0, 5, 14), (0, 5, 12)),  # and for graphs of prefill
    ((0, 5, 14), (0, 5, 24), (0, 5, 18)),  # drafts are loaded and counted before the pool
)
OLDEST = (0, 2, 0)

# What a tag says beside the release without changing what SGLang takes.
_PACKAGING = re.compile(
    r"(?:a|b|rc|dev|post|cu|cuda|rocm|ubuntu|py|v)?\d*|g[0-9a-f]{6,}|d\d{8}|post\d+|amd64|aarch64"
    r"|arm64|x86|srt|runtime|slim|base|devel|cann\d*|npu|xpu|cpu|gpu|xeon|mi\d\w*|b200|gb200|gb300"
    r"|blackwell|spark|image"
)


def is_own(text: str) -> bool:
    """Whether a version or tag names SGLang's own release, packaged one way or another."""
    rest = re.sub(r"^v?\d+(?:\.\d+){1,3}", "", text.strip())
    return all(_PACKAGING.fullmatch(part) for part in re.split(r"[-_.+ ()]", rest.lower()))


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _era_name(first: tuple[int, ...], end: tuple[int, ...]) -> str:
    return f"{_dotted(first)} to before {_dotted(end)}"


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name, else one release for each accounting era.

    A development build counts as the release it precedes, somebody's patched build as the one it
    is named after; what it refuses is then not known.
    """
    foreign = False
    if text is not None:
        words = text.split()  # "0.5.12 (patched tree)"
        parsed = parse_release(words[0]) if words else None
        if parsed is not None and OLDEST <= parsed.version < (1, 0):
            if is_own(text):
                return (Release(text, parsed.version),)
            why = f"{text} is not a release of SGLang's own"
            return (Release(text, parsed.version, why=why, foreign=True),)
        older = parsed is not None and (0, 1) <= parsed.version < OLDEST
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
