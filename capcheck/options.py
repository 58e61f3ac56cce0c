"""An engine's option table: which release knows which option, under which names."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, NamedTuple

Version = tuple[int, ...]
OptionType = Literal["int", "float", "bool", "text", "json", "list", "tokens", "choice"]


class Since(NamedTuple):
    """An edge known only to lie between two inspected releases."""

    last_without: Version
    first_with: Version


class Option(NamedTuple):
    """One option over all releases. `None` bounds mean older or newer than what was inspected."""

    name: str  # canonical: snake case, e.g. max_model_len
    type: OptionType
    first: Version | None  # first inspected release that has it; None: the oldest one already did
    before_first: Version | None  # the inspected release before `first` (lacks it)
    gone: Version | None  # first inspected release without it again; None: the newest still has it
    last: Version | None  # the inspected release before `gone` (still has it)
    defaults: tuple[tuple[Version, Any], ...] = ()  # (from release, default), oldest first
    choices: tuple[tuple[Version, tuple[str, ...]], ...] = ()
    shorts: tuple[str, ...] = ()  # -tp
    aliases: tuple[str, ...] = ()  # other long names
    negatable: bool = False  # --no-x exists
    minimum: float | None = None
    maximum: float | None = None
    human: bool = False  # takes 32k
    replaced_by: str = ""  # what to write instead, in words
    group: Literal["engine", "frontend", "environment"] = "engine"


class Standing(NamedTuple):
    """What one release says of one option name."""

    verdict: Literal["known", "unknown", "removed", "not yet", "ambiguous", "unsure"]
    option: Option | None
    candidates: tuple[str, ...] = ()  # ambiguous: the options it could be; unknown: near misses


Names = Mapping[str, Option]
