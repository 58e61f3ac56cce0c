"""Releases of Text Generation Inference, and the eras of its memory accounting."""

from __future__ import annotations

from capcheck import Release
from capcheck.options import dotted, parse_release

OLDEST, END = (1, 0, 0), (4,)
CHUNKING = (3, 0, 0)  # prompts are chunked, lengths are fitted at start
WARM_UP_LEAVES_ROOM = (1, 4, 1)

# (first release of the era, its end, the release that stands for it)
ERAS = (
    ((2, 3, 0), (3, 0, 0), (2, 4, 1)),
    ((3, 0, 0), (3, 3, 0), (3, 2, 3)),
    ((3, 3, 0), (3, 4, 0), (3, 3, 5)),
)

# What the warm-up takes of the free memory; from 3.0 on of the whole device.
ROOM = (
    ((1, 0, 0), 1.0), ((1, 4, 1), 0.95), ((2, 4, 0), 0.90), ((3, 0, 0), 0.95), ((3, 1, 0), 0.93),
    ((3, 3, 0), 0.90),
)  # fmt: skip


def room(version: tuple[int, ...]) -> float:
    """The share that is not kept back at warm-up, unless TGI_WIGGLE_ROOM says otherwise."""
    return next((share for first, share in reversed(ROOM) if version >= first), ROOM[0][1])


def releases(text: str | None, why: str) -> tuple[Release, ...]:
    """The release of that name, else one for each accounting era that is still pulled."""
    if text is not None:
        parsed = parse_release(text)
        if parsed is not None and OLDEST <= parsed.version < END:
            return (Release(text, parsed.version),)
        older = parsed is not None and parsed.version < OLDEST
        why = f"{text} is older than the releases known here" if older else f"{text} is no release"
    return tuple(
        Release(
            f"{dotted(first[:2])} to {dotted((end[0], end[1] - 1) if end[1] else (2, 4))}",
            middle,
            known=False,
            why=why,
            among=(ERAS[0][0], ERAS[-1][1]),
        )
        for first, end, middle in ERAS
    )
