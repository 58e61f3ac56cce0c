"""vLLM's accounting eras: what stands in for a release that nobody tells."""

from __future__ import annotations

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


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(str(part) for part in version)


def _era_name(first: tuple[int, ...], end: tuple[int, ...]) -> str:
    return f"{_dotted(first[:2])} to {_dotted((*end[:1], end[1] - 1))}"


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name, else one release for each accounting era.

    A development build counts as the release it precedes. An unpinned image is judged under
    every era of the V1 engine: the older engine is older than any image still pulled as latest.
    """
    foreign = False
    if text is not None:
        parsed = parse_release(text)
        if parsed is not None and (0, 5, 0) <= parsed.version < (1, 0):
            return (Release(text, parsed.version),)
        why, foreign = f"{text} is not a vLLM release", True
    return tuple(
        Release(_era_name(first, end), middle, known=False, why=why, foreign=foreign, until=end)
        for first, end, middle in ERAS
    )
