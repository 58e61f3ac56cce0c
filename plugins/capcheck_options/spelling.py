"""Option names in advice, spelled the way the user spells options."""

from __future__ import annotations

import re

from capcheck import OptionTable

Version = tuple[int, ...]

# `use max_num_seqs`, `use runner: pooling`, `disable_log_stats turns them off`; keys of a JSON
# option keep their underscores in every spelling.
_NAME = re.compile(
    r"(?<!the key )(?<![-\w.])(use )?([a-z][a-z0-9]*(?:_[a-z0-9]+)*)\b(?!\.\w)(: (?=\w))?"
)


def spelled(name: str, like: str) -> str:
    """`max_num_seqs` as --max-num-seqs or max-num-seqs where `like` is written that way."""
    own = name if "_" in like else name.replace("_", "-")
    if like.startswith("-"):
        return f"--{own}"
    return own if "-" in like else name


def advice(text: str, like: str, table: OptionTable, version: Version | None) -> str:
    """A sentence with every option of this release in it spelled like `like`."""

    def replaced(found: re.Match[str]) -> str:
        use, name, colon = found[1] or "", found[2], found[3] or ""
        # A single word is an option's name only where the sentence says to use it.
        if "_" not in name and not use:
            return found[0]
        if table.resolve(name, version, prefixes=False).verdict not in ("known", "unsure"):
            return found[0]
        between = " " if colon and like.startswith("-") else colon
        return f"{use}{spelled(name, like)}{between}"

    if "-" not in like:
        return text
    made = _NAME.sub(replaced, text)
    return made.removesuffix(" true") if made.startswith("--") else made  # a switch on its own
