"""llama.cpp's builds as releases, and its accounting eras where nobody tells the build."""

from __future__ import annotations

import re

from capcheck import Release

FORK = "ik_llama"
# (first build of the era, its end, the build that stands for it)
ERAS = (
    (4070, 5427, 5000),
    (5427, 5913, 5700),
    (5913, 6325, 6200),
    (6325, 7407, 6800),
    (7407, 12000, 9000),
)
FORK_BUILD = 5310  # the fork went its own way before sliding caches and streams
_BUILD = re.compile(r"(?:.*[-_:])?b(\d{3,5})(?:\b.*)?", re.DOTALL)
_PYTHON = re.compile(r"v?(0\.[23]\.\d+)(?:\D.*)?")

# llama-cpp-python's releases, and about which build each carries.
PACKAGED = (
    ((0, 2, 20), 1600), ((0, 2, 25), 1690), ((0, 2, 70), 2800), ((0, 2, 79), 3190),
    ((0, 2, 90), 3640), ((0, 3, 2), 4070), ((0, 3, 9), 5310), ((0, 3, 16), 6160),
    ((0, 3, 18), 8450), ((0, 3, 20), 8530), ((0, 3, 28), 9600), ((0, 3, 36), 11500),
)  # fmt: skip


def build_of(text: str) -> int | None:
    """The build that a version or an image tag names: b2824 (4426e298), server-cuda-b5427."""
    word = text.strip()
    if re.fullmatch(r"\d{3,5}", word):
        return int(word)
    found = _BUILD.fullmatch(word)
    return int(found[1]) if found else None


def packaged(text: str) -> int | None:
    """About the build that a release of llama-cpp-python carries."""
    found = _PYTHON.fullmatch(text.strip())
    if found is None:
        return None
    version = tuple(int(part) for part in found[1].split("."))
    builds = [build for first, build in PACKAGED if first <= version]
    return builds[-1] if builds else None


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The build of that name, else one for each accounting era.

    The fork ik_llama.cpp counts otherwise and has options of its own: what it refuses is not
    known.
    """
    if text is not None:
        build = build_of(text)
        if build is not None:
            return (Release(text, (build,)),)
        if FORK in text.lower():
            why = f"{text} is a fork with options of its own"
            return (Release(text, (FORK_BUILD,), why=why, foreign=True),)
        build = packaged(text)
        if build is not None:
            return (Release(text, (build,)),)
        why = f"{text} names no build"
    return tuple(
        Release(
            f"b{first} to b{end - 1}", (middle,), known=False, why=why,
            among=((ERAS[0][0],), (ERAS[-1][1],)),
        )
        for first, end, middle in ERAS
    )  # fmt: skip
