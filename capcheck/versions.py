"""Release numbers as engines, packages and image tags write them."""

from __future__ import annotations

import re
from typing import NamedTuple

Version = tuple[int, ...]

_NUMBER = r"""v?(?P<release>\d+(?:\.\d+){1,3})
    (?P<early>[._-]?(?:a|b|c|rc|alpha|beta|pre|preview)[._-]?\d*)?
    (?:[._-]?post(?P<post>\d+))?
    (?P<dev>[._-]?dev\d*)?
    (?:\+[0-9a-z._-]*)?(?P<tag>-[0-9a-z._-]*)?"""
SHORTEST = 3  # 0.11 is 0.11.0


class ReleaseName(NamedTuple):
    """A release as it is written. `development`: a build that precedes `version`."""

    text: str
    version: Version
    development: bool = False


def parse_release(text: str) -> ReleaseName | None:
    """The release that a version or an image tag names; None for `latest` and other words.

    v0.11.0, v0.11.0-aarch64 and 0.11.2+cu129 are that release; 0.20.2rc1.dev249 is a build on
    the way to 0.20.2; a post-release counts as a fourth number (0.8.5.post1 is (0, 8, 5, 1)), as
    in 0.10.1.1.
    """
    match = re.fullmatch(_NUMBER, text.strip(), re.VERBOSE | re.IGNORECASE)  # compiled once asked
    if match is None:
        return None
    numbers = [int(number) for number in match["release"].split(".")]
    if match["tag"] and len(numbers) < SHORTEST:
        return None  # 24.08-py3
    numbers += [0] * (SHORTEST - len(numbers))
    if match["post"] and len(numbers) == SHORTEST:
        numbers.append(int(match["post"]))
    return ReleaseName(text.strip(), tuple(numbers), bool(match["early"] or match["dev"]))


def parse_version(text: str) -> Version | None:
    """The numbers of `parse_release`; a development build has those of the release it precedes."""
    release = parse_release(text)
    return release.version if release else None


def dotted(version: Version) -> str:
    """0.11.0 for (0, 11, 0); a lone number is a build: b2824."""
    if len(version) == 1:
        return f"b{version[0]}"
    return ".".join(str(number) for number in version)
